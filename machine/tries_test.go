package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// TestTriesAreListedWhereThereWasMoreThanOne: those that were decided, in the order of the attempts.
func TestTriesAreListedWhereThereWasMoreThanOne(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"steps":[{"id":"once","tool":"t"},{"id":"twice","tool":"t"},{"id":"often","tool":"t","retry":{"max_attempts":20}}]}`), nil)
	require.NotNil(t, p, "%v", report)
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	m, e := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {Limit: 9, MaxAttempts: 3}}}), &machine.Effects{}
	m.Begin(e)
	require.Nil(t, machine.Tries(m))
	seq := uint64(0)
	decide := func(res machine.Result) {
		seq++
		e.Reset()
		m.Apply(machine.Record{Seq: seq, Time: at.Add(time.Duration(seq) * time.Minute), Result: &res}, at.Add(time.Hour), e)
	}
	luck := fault.New(fault.ToolFailed, "no luck")
	luck.Retryable = true
	decide(machine.Result{Call: machine.Call{Step: 0}, Attempt: 1, Body: []byte(`1`), Worker: "w1", Deliveries: 2})
	decide(machine.Result{Call: machine.Call{Step: 1}, Attempt: 1, Error: luck, ByOwner: true, Worker: "o1"})
	require.Nil(t, machine.Tries(m), "one was decided of each")
	decide(machine.Result{Call: machine.Call{Step: 1}, Attempt: 3, Body: []byte(`1`), Worker: "forger"})
	require.Nil(t, machine.Tries(m), "nobody asked for it")
	decide(machine.Result{Call: machine.Call{Step: 1}, Attempt: 2, Body: []byte(`1`), Worker: "w2", Started: at, Ended: at.Add(time.Second), Deliveries: 3})
	require.Equal(t, map[machine.Call][]outcome.Try{{Step: 1}: {
		{Attempt: 1, Code: fault.ToolFailed}, {Attempt: 2, Started: at, Ended: at.Add(time.Second), Worker: "w2", Deliveries: 3},
	}}, machine.Tries(m))
	for i := range 20 {
		decide(machine.Result{Call: machine.Call{Step: 2}, Attempt: i + 1, Error: luck, Worker: fmt.Sprint("w", i+1)})
	}
	often := machine.Tries(m)[machine.Call{Step: 2}]
	require.Len(t, often, 20)
	require.Equal(t, outcome.Try{Attempt: 20, Worker: "w20", Code: fault.ToolFailed}, often[19])
	require.Len(t, machine.Tries(m.View()), 2)
}
