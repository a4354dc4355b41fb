package orchestrator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// TestWhatIsWithheldIsNotNew: an attempt that is held back because somebody asks for its step to be discarded is handed on
// once, when that is told. Until then it counts for nothing that follows what is to be sent: a run that was taken over
// would be compared anew each time, with nothing in between.
func TestWhatIsWithheldIsNotNew(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"open":true,"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]}`), nil)
	require.NotNil(t, p, "%v", report)
	at := time.Unix(1000, 0)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 9}}})
	c := changesOf(&run{progress: progress{plan: p, machine: m}})
	told := false
	c.waiting = []amender{{&machine.Amendment{Scope: "=", Revision: 1, Discard: []string{"a"}}, func() bool { return told }}}

	var out machine.Effects
	m.Begin(&out)
	require.Len(t, out.Dispatch, 2)
	require.True(t, c.hold(out.Dispatch[0]))
	require.False(t, c.hold(out.Dispatch[1]))
	held := out.Dispatch[0]
	for range 3 {
		out.Reset()
		c.settle(&out)
		require.Empty(t, out.Dispatch)
	}
	told = true
	c.settle(&out)
	require.Equal(t, []machine.Dispatch{held}, out.Dispatch)
	out.Reset()
	c.settle(&out)
	require.Empty(t, out.Dispatch)
}
