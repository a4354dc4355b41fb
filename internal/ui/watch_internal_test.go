package ui

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// sent is one frame, and when it was told.
type sent struct {
	kind string
	data any
	at   time.Duration
}

// frames returns what is told of a run, by a clock that only this test moves.
func frames(t *testing.T, follow func(context.Context, func(client.Event)) error) (all []sent) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		watch(t.Context(), follow, func(kind string, data any) { all = append(all, sent{kind, data, time.Since(began)}) })
	})
	return all
}

func ended(step int) client.Event {
	return client.Event{Kind: subjects.EventStep, Step: fmt.Sprint(step), Status: outcome.StepSucceeded}
}

// However fast steps end, a browser has ten frames a second; each step is told once, and the last before the end.
func TestFramesOfARunAreTenASecond(t *testing.T) {
	require.Equal(t, 100*time.Millisecond, frameEvery)
	const steps, each = 1_000, 3 * time.Millisecond
	all := frames(t, func(_ context.Context, tell func(client.Event)) error {
		for i := range steps {
			tell(ended(i))
			time.Sleep(each)
		}
		return nil
	})
	seen := map[string]bool{}
	for i, f := range all[:len(all)-1] {
		require.Equal(t, "steps", f.kind)
		if i > 0 {
			require.GreaterOrEqual(t, f.at-all[i-1].at, frameEvery, "at most ten frames a second")
		}
		for _, c := range f.data.([]change) {
			require.False(t, seen[c.Step], c.Step)
			seen[c.Step] = true
		}
	}
	require.Len(t, seen, steps)
	require.Equal(t, "end", all[len(all)-1].kind)
	require.InDelta(t, steps*each/frameEvery, len(all)-1, 2, "no fewer frames than there is something to tell in")
}

// What ends between two frames is told before the end is, and what can't be followed any more has no end.
func TestTheLastFrameComesBeforeTheEnd(t *testing.T) {
	for gone, kinds := range map[error][]string{nil: {"steps", "steps", "end"}, errors.New("gone"): {"steps", "steps"}} {
		all := frames(t, func(_ context.Context, tell func(client.Event)) error {
			tell(ended(1))
			time.Sleep(frameEvery / 2) // the first frame is out
			tell(ended(2))
			return gone
		})
		var came []string
		for _, f := range all {
			came = append(came, f.kind)
		}
		require.Equal(t, kinds, came)
	}
}
