package client

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// TestARunIsWaitedForAWhile: a run that is left alone is waited for up to a bound, counted anew once it was not in between.
func TestARunIsWaitedForAWhile(t *testing.T) {
	t.Parallel()
	w, told, noon := &Watcher{run: "r"}, 0, time.Unix(0, 0)
	why := fault.New(fault.NewerVersion, "it is newer")
	each := func(e Event) {
		told++
		require.Equal(t, []any{EventLeftAlone, "r", fault.NewerVersion}, []any{e.Kind, e.Run, e.Error.Code})
	}
	require.NoError(t, w.leftAlone(why, noon, each))
	require.NoError(t, w.leftAlone(why, noon.Add(MostAlone-1), each))
	require.Equal(t, 1, told)
	require.ErrorIs(t, w.leftAlone(why, noon.Add(MostAlone), each), why)
	w.alone = time.Time{} // its owner has answered
	require.NoError(t, w.leftAlone(why, noon.Add(2*MostAlone), each))
	require.Equal(t, 2, told)
}

// TestWhoIsBusyIsNobody: a server says at once that nobody listens; where it does not, somebody does, and to start another is no
// help.
func TestWhoIsBusyIsNobody(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	for cause, hint := range map[error]string{nats.ErrNoResponders: "start one", context.DeadlineExceeded: "ask again in a moment"} {
		err := fault.As(nobody(nc, "api.ping", cause))
		require.Equal(t, fault.NotReady, err.Code)
		require.ErrorContains(t, err, "no orchestrator answers on api.ping")
		require.Contains(t, err.Hint, hint)
	}
}
