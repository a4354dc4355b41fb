package orchestrator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Messages of a run that stops are taken back tool by tool, whatever lies there, once all that is out of it is decided.
// A step that was to be decided by itself, and is when the run has stopped meanwhile, is not all.
func TestMessagesAreTakenBackTogetherWhereAllAreDecided(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"on_failure":"stop","steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t"},{"id":"d","tool":"t"}]}`), nil)
	require.NotNil(t, p, "%v", report)
	at := time.Unix(1000, 0)
	r := &run{progress: progress{plan: p, machine: machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 9}}})}}
	e := &env{clock: wall{}}
	d := newDecider(e, newLedgerTime(e))
	r.time.Heard(at, e.clock.Mono())
	var out machine.Effects
	r.machine.Begin(&out)
	two := []machine.Decide{{Call: out.Dispatch[1].Call, Attempt: 1}, {Call: out.Dispatch[2].Call, Attempt: 1}}
	require.False(t, d.isAll(r, len(two)), "nothing stops")
	out.Reset()
	r.machine.Apply(machine.Record{Seq: 9, Time: at, Result: &machine.Result{Attempt: 1, Error: fault.New(fault.ToolFailed, "no"), Worker: "w"}}, at, &out)
	require.True(t, r.machine.Stopping())
	require.Len(t, out.Decide, 3)
	require.True(t, d.isAll(r, len(out.Decide)))
	require.False(t, d.isAll(r, len(two)))
	require.False(t, d.isAll(r, 1))
}
