package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
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
