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

// TestItemsThatAreTakenOver: whatever the order in which an owner learns of list and records, they are never sent, and
// count.
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

// TestNothingNewIsSentWhileAListMayHaveStoppedTheRun: an owner that takes over reads the failed item of a list that it
// has yet to count. Whether that stopped the run it learns with the length, so what became ready since is not sent
// before.
func TestNothingNewIsSentWhileAListMayHaveStoppedTheRun(t *testing.T) {
	t.Parallel()
	const text = `{"on_failure":"stop","steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","depends_on":["a"]},
		{"id":"c","tool":"t","depends_on":["b"]},{"id":"s","tool":"t","depends_on":["a"],"for_each":{"in":[1,2]},"arguments":{}}]}`
	decided := func(seq uint64, step, item int, err *fault.Error) machine.Record {
		return machine.Record{Seq: seq, Time: began, Result: &machine.Result{Call: machine.Call{Step: step, Item: item}, Attempt: 1, Body: []byte("1"), Error: err}}
	}
	takeOver := func(item *fault.Error) (*machine.Run, *machine.Effects) {
		e := &machine.Effects{}
		m := of(t, text, tool.Contract{MaxAttempts: 1, Limit: 9, ErrorPropagation: tool.FailFast, WaitTimeout: time.Minute}, e)
		e.Reset()
		m.Apply(decided(1, 0, 0, nil), began, e)
		require.Equal(t, []int{3}, e.Expand)
		require.Len(t, e.Dispatch, 1, "nothing says that somebody else has counted the list")
		for _, rec := range []machine.Record{decided(2, 3, 1, item), decided(3, 3, 2, item), decided(4, 1, 0, nil)} {
			e.Reset()
			m.Apply(rec, began, e)
			require.Empty(t, e.Dispatch)
		}
		e.Reset()
		m.Outstanding(began, e)
		require.Equal(t, []int{3}, e.Expand)
		require.Empty(t, e.Dispatch, "nor does the sweep send it")
		e.Reset()
		m.Tick(began.Add(2*time.Minute), e)
		require.Empty(t, e.Late)
		m.Expand(3, 2, began, e)
		return m, e
	}

	m, e := takeOver(fault.New(fault.ToolTerminal, "no"))
	require.Empty(t, e.Dispatch, "the list failed before its dependency had succeeded")
	require.True(t, m.Finished())
	require.Equal(t, outcome.StepCancelled, m.StepStatus(2))

	m, e = takeOver(nil)
	require.Equal(t, []machine.Dispatch{{Call: machine.Call{Step: 2}, Attempt: 1}}, e.Dispatch, "the list is over, and nothing was lost")
	e.Reset()
	m.Tick(began.Add(2*time.Minute), e)
	require.Len(t, e.Late, 1, "nor was its wait")
}
