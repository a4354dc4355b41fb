package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// TestItemsThatAreTakenOver: whatever the order in which an owner learns of list and records, they are never sent, and count.
func TestItemsThatAreTakenOver(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"steps":[{"id":"p","tool":"t","for_each":{"in":[1,2,3,4]},"arguments":{}},{"id":"q","tool":"t","arguments":{"x":"$ref:p"}}]}`), nil)
	require.NotNil(t, p, "%v", report)
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	taken := func(items ...int) map[int]*machine.Result {
		all := map[int]*machine.Result{}
		for _, i := range items {
			all[i] = &machine.Result{Call: machine.Call{Item: i}, Attempt: 1, Value: []byte(`1`), Size: 1, ByOwner: true}
		}
		return all
	}
	record := func(seq uint64, item int, err *fault.Error) machine.Record {
		return machine.Record{Seq: seq, Time: at.Add(time.Duration(seq)), Result: &machine.Result{Call: machine.Call{Item: item}, Attempt: 1, Body: []byte(`2`), Error: err}}
	}
	begin := func(errors tool.Propagation) (*machine.Run, *machine.Effects) {
		m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {ErrorPropagation: errors, Limit: 9, MaxAttempts: 1}}})
		e := &machine.Effects{}
		m.Begin(e)
		require.Equal(t, []int{0}, e.Expand)
		return m, e
	}
	sent := func(e *machine.Effects) (items []int) {
		for _, d := range e.Dispatch {
			items = append(items, d.Item)
		}
		return items
	}

	m, e := begin(tool.PartialSuccess)
	m.TakeOver(0, taken(1, 3, 9))
	m.Expand(0, 4, at, e)
	require.Equal(t, []int{2, 4}, sent(e))
	require.True(t, m.Step(machine.Call{Item: 1}, at).Reused)
	require.Zero(t, m.Step(machine.Call{Item: 1}, at).Attempts)
	e.Reset()
	m.Apply(record(2, 4, nil), at, e)
	m.Apply(record(1, 2, nil), at, e) // out of order: computed anew, and nothing is sent that was taken over
	require.Equal(t, outcome.StepSucceeded, m.StepStatus(0))
	require.Equal(t, int64(4), m.Result(machine.Call{}).Size)

	m, e = begin(tool.FailFast)
	m.Apply(record(1, 2, fault.New(fault.ToolTerminal, "no")), at, e) // the record is there before the list
	m.TakeOver(0, taken(1, 3))
	m.Expand(0, 4, at, e)
	require.Empty(t, sent(e), "an item failed already")
	require.Len(t, e.Decide, 1)
	require.Equal(t, 4, e.Decide[0].Item, "nobody is asked to decide what was taken over")
	m.Apply(record(2, 4, fault.New(fault.Cancelled, "no more")), at, e)
	require.Equal(t, outcome.StepFailed, m.StepStatus(0))
	require.Equal(t, outcome.StepSucceeded, m.Step(machine.Call{Item: 3}, at).Status)

	m, e = begin(tool.FailFast)
	m.TakeOver(0, taken(1, 2, 3, 4))
	m.Expand(0, 4, at, e)
	require.Equal(t, outcome.StepSucceeded, m.StepStatus(0), "nothing is left to be executed")
	require.Len(t, e.Dispatch, 1)
	require.Equal(t, 1, e.Dispatch[0].Step)
}
