package machine_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/tool"
)

// allocation is how much was allocated, in how many pieces.
type allocation struct{ bytes, pieces uint64 }

// allocations returns what is allocated meanwhile. Nothing else may run.
func allocations(of func()) allocation {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	of()
	runtime.ReadMemStats(&after)
	return allocation{after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs}
}

// medians are those of bytes and of pieces, each by itself.
func medians(each []allocation) (m allocation) {
	median := func(of func(allocation) uint64) uint64 {
		var all []uint64
		for _, x := range each {
			all = append(all, of(x))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return allocation{median(func(x allocation) uint64 { return x.bytes }), median(func(x allocation) uint64 { return x.pieces })}
}

// amendments adds a step each time to a run of so many, and returns what each amendment allocates.
func amendments(t *testing.T, size, count int) (each []allocation) {
	steps := make([]string, size)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"id":"s%d","tool":"t"}`, i)
	}
	p := parsed(t, `{"open":true,"steps":[`+strings.Join(steps, ",")+`]}`)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}})
	var out machine.Effects
	m.Begin(&out)
	for n := 1; n <= count; n++ {
		add := json.RawMessage(fmt.Sprintf(`{"id":"a%d","tool":"t","arguments":{"x":"$ref:s0"}}`, n))
		r := machine.Record{Seq: uint64(n), Time: epoch, Amendment: &machine.Amendment{Scope: "=", Revision: n, Add: []json.RawMessage{add}}}
		each = append(each, allocations(func() {
			out.Reset()
			m.Apply(r, epoch, &out)
		}))
	}
	require.Nil(t, m.Amendments()[count-1].Stale())
	return each
}

// TestAmendmentsAllocateAlike: what an amendment of one step allocates does not follow from how many steps the run has. The
// arrays of a run are copied when it is amended for the first time, with room to grow, and when that is full: a few
// times in a thousand amendments, and no more than what the run has.
func TestAmendmentsAllocateAlike(t *testing.T) {
	const count = 400
	of := map[int]allocation{}
	for _, size := range []int{10, 1_000, 9_000} {
		each := amendments(t, size, count)
		of[size] = medians(each)
		var all uint64
		copies := 0
		for _, x := range each {
			all += x.bytes
			if x.bytes > 100*of[size].bytes {
				copies++
			}
		}
		t.Logf("%d steps: half of the amendments within %d bytes in %d pieces, the first %d bytes, all %d",
			size, of[size].bytes, of[size].pieces, each[0].bytes, all)
		require.LessOrEqual(t, copies, 2, "of all that the run has")
		require.Less(t, all, uint64(count*16_000+1_000*size))
	}
	for _, size := range []int{1_000, 9_000} {
		require.LessOrEqual(t, of[size].bytes, of[10].bytes+of[10].bytes/10)
		require.LessOrEqual(t, of[size].pieces, of[10].pieces+of[10].pieces/10)
	}
}
