package machine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// TestValuesThatDouble: a chain in which each holds the one before twice ends with the first that there is no room for,
// which is not built.
func TestValuesThatDouble(t *testing.T) {
	t.Parallel()
	steps := []string{`{"id":"v0","value":"` + strings.Repeat("x", 998) + `"}`}
	for i := 1; i < 400; i++ {
		steps = append(steps, fmt.Sprintf(`{"id":"v%d","value":["$ref:v%[2]d","$ref:v%[2]d"]}`, i, i-1))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var out machine.Effects
	m := of(t, `{"steps":[`+strings.Join(steps, ",")+`]}`, tool.Contract{}, &out)
	seq := uint64(10)
	for !m.Finished() { // the larger ones are built beside it, and recorded
		require.Len(t, out.Derive, 1)
		d := out.Derive[0]
		out.Reset()
		m.Apply(machine.Record{Seq: seq, Time: began, Told: &machine.Told{Call: machine.Call{Step: d.Step}, Value: built(m, d)}}, began, &out)
		seq++
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*plan.MaxValues), "nothing was built that there was no room for")
	held, last := int64(0), 0
	for i := range steps {
		if res := m.Result(machine.Call{Step: i}); res != nil {
			held, last = held+res.Size, i
		}
	}
	require.LessOrEqual(t, held, int64(plan.MaxValues))
	require.Greater(t, held, int64(plan.MaxValues/2-1<<20))
	err, _ := m.Failure(machine.Call{Step: last + 1})
	require.Equal(t, fault.TooLarge, err.Code)
	require.Equal(t, outcome.StepSkipped, m.StepStatus(last+2))
}

// built is what an orchestrator makes of a value beside the machine.
func built(m *machine.Run, d machine.Derive) *machine.Result {
	effort := plan.FullEffort
	value, err := m.Plan().NewResolver().Fates(m.Fate).Derive(d.Step, d.Room, &effort, func(dep int) ([]byte, bool) {
		v := m.Value(dep)
		return v, v != nil
	})
	return &machine.Result{Value: value, Size: int64(len(value)), Error: err}
}

// TestARecordedValueIsCountedWhereItsRecordStands: two that were built at the same time may not both have the same room.
func TestARecordedValueIsCountedWhereItsRecordStands(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, `{"steps":[{"id":"a","tool":"t"},{"id":"v","value":["$ref:a"]},{"id":"w","value":["$ref:a"]}]}`, tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
	blob := &outcome.Handle{Name: "a", Size: 40 << 20, Checked: true}
	m.Apply(machine.Record{Seq: 10, Time: began, Result: &machine.Result{Attempt: 1, Handle: blob}}, began, &out)
	require.Equal(t, []machine.Derive{{Step: 1, Room: plan.MaxValues}, {Step: 2, Room: plan.MaxValues}}, out.Derive)
	for i, step := range []int{2, 1} {
		value := &machine.Result{Handle: &outcome.Handle{Name: "v", Size: 40 << 20, Checked: true}, Size: 40 << 20}
		m.Apply(machine.Record{Seq: uint64(11 + i), Time: began, Told: &machine.Told{Call: machine.Call{Step: step}, Value: value}}, began, &out)
	}
	require.True(t, m.Finished())
	require.Equal(t, outcome.StepSucceeded, m.StepStatus(2))
	err, _ := m.Failure(machine.Call{Step: 1})
	require.Equal(t, fault.TooLarge, err.Code)
}

// TestAValueThatTakesLongIsRecorded: an owner's loop builds what is small, and all owners agree which that is.
func TestAValueThatTakesLongIsRecorded(t *testing.T) {
	t.Parallel()
	for size, recorded := range map[int]bool{1 << 10: false, 200 << 10: true} {
		var out machine.Effects
		m := of(t, `{"steps":[{"id":"a","tool":"t"},{"id":"v","value":{"$calc":"len($ref:a.x)"},"for_each":{"in":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24]}}]}`,
			tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
		body := []byte(`{"x":"` + strings.Repeat("x", size) + `"}`)
		m.Apply(machine.Record{Seq: 10, Time: began, Result: &machine.Result{Attempt: 1, Body: body}}, began, &out)
		require.Equal(t, recorded, m.Asks(1) == machine.AskedValue, size)
		require.Equal(t, recorded, len(out.Derive) == 1, size)
		if recorded {
			m.Apply(machine.Record{Seq: 11, Time: began, Told: &machine.Told{Call: machine.Call{Step: 1}, Value: built(m, out.Derive[0])}}, began, &out)
		}
		require.Equal(t, outcome.StepSucceeded, m.StepStatus(1))
		require.Contains(t, string(m.Value(1)), fmt.Sprintf(`{"index":23,"status":"ok","data":%d}`, size))
	}
}

// TestALargeValueIsNotHeld: what has more than 256 KiB is recorded, so that it can lie in a blob.
func TestALargeValueIsNotHeld(t *testing.T) {
	t.Parallel()
	for size, recorded := range map[int]bool{256<<10 - 4: false, 256<<10 - 3: true} {
		var out machine.Effects
		m := of(t, `{"steps":[{"id":"a","tool":"t"},{"id":"v","value":["$ref:a"]}]}`, tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
		body := []byte(`"` + strings.Repeat("x", size) + `"`)
		m.Apply(machine.Record{Seq: 10, Time: began, Result: &machine.Result{Attempt: 1, Body: body}}, began, &out)
		require.Equal(t, recorded, m.Asks(1) == machine.AskedValue, size)
		require.Equal(t, recorded, len(out.Derive) == 1, size)
	}
}

// TestManyValuesLeaveTheLoopInPeace: what all of a run's values take at once is bounded too.
func TestManyValuesLeaveTheLoopInPeace(t *testing.T) {
	t.Parallel()
	steps := []string{`{"id":"a","tool":"t"}`}
	for i := range 400 {
		steps = append(steps, fmt.Sprintf(`{"id":"v%d","value":"$ref:a.n"}`, i))
	}
	var out machine.Effects
	m := of(t, `{"steps":[`+strings.Join(steps, ",")+`]}`, tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
	body := []byte(`{"n":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	m.Apply(machine.Record{Seq: 10, Time: began, Result: &machine.Result{Attempt: 1, Body: body}}, began, &out)
	require.Greater(t, len(out.Derive), 100)
	require.Less(t, len(out.Derive), 200)
}

// TestConditionsOfARunShareWhatIsDoneAtOnce: what all conditions of a plan take on the goroutine that other runs wait for is
// bounded. The others are evaluated beside it and told, and come to the same.
func TestConditionsOfARunShareWhatIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	steps := []string{`{"id":"a","value":"` + strings.Repeat("a", 60_000) + `"}`, `{"id":"s","tool":"t"}`}
	const heavy, light = 300, 300
	for i := range light {
		steps = append(steps, fmt.Sprintf(`{"id":"l%d","tool":"t","if":"$ref:s == 1"}`, i))
	}
	for i := range heavy {
		steps = append(steps, fmt.Sprintf(`{"id":"h%d","tool":"t","if":"$ref:s == 1 and ($ref:a matches '(a|b|ab)*c' or $ref:a matches '(b|a|ab)*%d')"}`, i, i))
	}
	var out machine.Effects
	m := of(t, `{"steps":[`+strings.Join(steps, ",")+`]}`, tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
	out.Reset()
	m.Apply(machine.Record{Seq: 10, Time: began, Result: &machine.Result{Call: machine.Call{Step: 1}, Attempt: 1, Value: []byte("1")}}, began, &out)
	require.Greater(t, len(out.Judge), heavy/2, "what takes more than is done at once is asked for")
	require.Len(t, out.Dispatch, light, "what takes little is done at once, as long as something is left")
	for i, step := range out.Judge {
		m.Apply(machine.Record{Seq: uint64(11 + i), Time: began, Told: &machine.Told{Call: machine.Call{Step: step}}}, began, &out)
		require.Equal(t, outcome.StepNotTaken, m.StepStatus(step))
	}
}
