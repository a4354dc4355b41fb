package doctor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/wire"
)

// TestStepsThatAreHeldBackCount: a consumer knows of one step that waits, an orchestrator of 4,872 more.
func TestStepsThatAreHeldBackCount(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	busy := register(t, s, "busy", 2)
	dispatch(t, s, kv.Dispatch{Attempt: attempt("busy", "a"), Shard: busy.Shard})
	r, err := doctor.Examine(ctx(t), s.Conn(), doctor.Options{})
	require.NoError(t, err)
	require.Contains(t, finding(t, r, "demand", "").Found, "not known", "nobody guesses")
	require.Contains(t, finding(t, r, "worker", "busy").Found, "1 waiting step")

	hold(t, s.Conn(), 1, map[string]wire.DemandNow{"busy": {Held: 4872, OldestMS: (6 * time.Minute).Milliseconds()}})
	r, err = doctor.Examine(ctx(t), s.Conn(), doctor.Options{})
	require.NoError(t, err)
	require.Contains(t, finding(t, r, "worker", "busy").Found, "4873 waiting steps")
	f := finding(t, r, "demand", "busy")
	require.Equal(t, doctor.Notable, f.Health)
	require.Contains(t, f.Found, "4873 steps wanted, of which 0 are leased of 2; the oldest has waited for 6m0s")
	require.Equal(t, "start more workers of busy", f.Fix)
}
