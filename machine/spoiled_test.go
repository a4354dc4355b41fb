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

// One failure skips both the last and, through it, the optional step that the last one needs too: the end of the
// optional one must not make the last one ready on the way.
func TestWhatIsToBeSkippedIsNeverDispatched(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"steps":[{"id":"last","tool":"t","depends_on":["fails","optional"]},{"id":"fails","tool":"t"},
		{"id":"optional","tool":"t","optional":true,"depends_on":["fails"]}]}`), nil)
	require.NotNil(t, p, "%v", report)
	m := machine.New(p, machine.Start{Key: "t/r/1", Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}})
	var e machine.Effects
	m.Begin(&e)
	e.Reset()
	now := time.Unix(1, 0)
	m.Apply(machine.Record{Seq: 2, Time: now, Result: &machine.Result{Call: machine.Call{Step: 1}, Attempt: 1, Error: fault.New(fault.ToolFailed, "no")}}, now, &e)
	require.Empty(t, e.Dispatch)
	require.True(t, m.Finished())
	require.Equal(t, outcome.StepSkipped, m.StepStatus(0))
}
