package machine_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// spent returns the processor's time that some tries take. Nothing else may run.
func spent(t *testing.T, tries int, of func()) time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	for range tries {
		of()
	}
	return used() - before
}

// allocated returns how many bytes are allocated meanwhile. Nothing else may run.
func allocated(of func()) uint64 { return allocations(of).bytes }

// TestScopesCostWhatTheirStepsDo: sixteen times as many scopes are about sixteen times the work, whatever becomes of
// them, and by far not 256 times.
func TestScopesCostWhatTheirStepsDo(t *testing.T) {
	for _, shape := range scopeShapes {
		t.Run(shape.name, func(t *testing.T) {
			run := func(n int) func() {
				p := parsed(t, shape.plan(n, 3))
				return func() {
					m := newCrowd(p)
					m.run(shape.fails)
					require.True(t, m.Finished())
				}
			}
			few, many := run(125), run(2_000)
			require.Less(t, allocated(many), 24*allocated(few))
			require.Less(t, spent(t, 3, many), 4*spent(t, 3*16, few))
		})
	}
}

// TestNestedStepsHoldWhatFlatOnesDo: 10,000 steps in scopes take little more memory than beside each other.
func TestNestedStepsHoldWhatFlatOnesDo(t *testing.T) {
	held := func(body string) float64 {
		p := parsed(t, body)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := newCrowd(p)
		m.run(nil)
		m.out = machine.Effects{}
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.True(t, m.Finished())
		require.GreaterOrEqual(t, m.Stats().Steps, 9_990)
		return float64(after.HeapAlloc - before.HeapAlloc)
	}
	flat := held(scopeShapes[0].plan(2_000, 5))
	nested := held(scopeShapes[1].plan(1_666, 5))
	t.Logf("flat %.0f bytes, nested %.0f", flat, nested)
	require.Less(t, nested, 1.3*flat)
}

// TestADeepPlanOfManySteps: as many plans within each other as there may be, and as many steps.
func TestADeepPlanOfManySteps(t *testing.T) {
	branch := func(i int) string {
		step := `{"id":"s","tool":"t"}`
		for range subjects.MaxComposites - 1 {
			step = `{"id":"p","plan":{"steps":[` + step + `]}}`
		}
		return fmt.Sprintf(`{"id":"b%d","plan":{"steps":[%s]}}`, i, step)
	}
	const branches = plan.MaxSteps / (subjects.MaxComposites + 1)
	var m *crowd
	run := func() {
		m = newCrowd(parsed(t, beside(branches, branch)))
		m.run(nil)
	}
	require.Less(t, allocated(run), uint64(64<<20))
	require.Less(t, spent(t, 1, run), 2*time.Second)
	require.Equal(t, branches*(subjects.MaxComposites+1), m.Stats().Succeeded)
}

// TestListsWithinListsAreRefused: what would be a power of steps fails before any of it is built.
func TestListsWithinListsAreRefused(t *testing.T) {
	list := "[" + strings.TrimSuffix(strings.Repeat("0,", plan.MaxItems), ",") + "]"
	step := `{"id":"s","tool":"t"},{"id":"u","tool":"t"}`
	for i := range subjects.MaxComposites {
		in := `"$input.list"`
		if i == subjects.MaxComposites-1 {
			in = list
		}
		step = `{"id":"p","for_each":{"in":` + in + `},"arguments":{"list":` + list[:1] + `]},"plan":{"steps":[` + step + `]}}`
	}
	p := parsed(t, `{"steps":[`+step+`]}`)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch})
	var out machine.Effects
	m.Begin(&out)
	items := make([][]byte, plan.MaxItems)
	for i := range items {
		items[i] = []byte("0")
	}
	require.Equal(t, []int{0}, out.Expand)
	m.Elements(0, items)
	require.Less(t, allocated(func() { m.Expand(0, plan.MaxItems, epoch, &out) }), uint64(64<<10))
	require.True(t, m.Finished())
	require.Equal(t, outcome.StepFailed, m.StepStatus(0))
	err, _ := m.Failure(machine.Call{})
	require.Equal(t, fault.LimitExceeded, err.Code)
}
