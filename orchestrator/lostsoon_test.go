package orchestrator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/few"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
)

// After a step stream lost what lay in it, only what was there, and what no worker can still be at, is looked for
// before its turn.
func TestWhatAWorkerMayBeAtIsNotLookedFor(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	w := newWindow(4, 1, nil, &neighbours{})
	p := &plan.Plan{Steps: []plan.Step{{ID: "a", Tool: "t"}}}
	r := &run{progress: progress{plan: p, machine: machine.New(p, machine.Start{})}}
	f := &flight{attempt: 1, lane: &lane{run: r, window: w}, sent: at}
	rc := &reconciler{dispatcher: &dispatcher{windows: map[string]*window{"t": w}}, noticed: at.Add(time.Second)}
	first, again, scheduled := machine.Dispatch{Attempt: 1}, machine.Dispatch{Attempt: 2}, machine.Dispatch{Attempt: 2, At: at}

	require.True(t, rc.tooSoon(r, first, time.Hour), "it was not sent")
	r.flights.Put(first.Call, f)
	require.True(t, rc.tooSoon(r, first, time.Hour), "it is on its way to the stream")
	require.False(t, rc.tooSoon(r, first, longGone), "the sweep looks for all")
	f.sending.Add(1)
	require.True(t, rc.tooSoon(r, first, longGone), "but for what is being made or sent right now")
	f.sending.Add(-1)
	f.seq.Store(7)
	require.False(t, rc.tooSoon(r, first, time.Second))
	w.took(1500 * time.Millisecond)
	require.True(t, rc.tooSoon(r, first, time.Second), "a worker may be at it")
	require.False(t, rc.tooSoon(r, first, 2*time.Second))
	for range 200 {
		w.took(time.Millisecond)
	}
	require.False(t, rc.tooSoon(r, first, time.Second), "its tool has become quicker")
	f.sent = at.Add(2 * time.Second)
	require.True(t, rc.tooSoon(r, first, time.Hour), "it was sent since")
	f.sent = time.Time{}
	f.seq.Store(0)
	require.False(t, rc.tooSoon(r, first, time.Second), "it was found there when the run was taken over")

	r.flights = few.Map[machine.Call, *flight]{}
	require.False(t, rc.tooSoon(r, again, time.Second))
	require.False(t, rc.tooSoon(r, scheduled, time.Second))
	w.took(time.Minute)
	require.True(t, rc.tooSoon(r, again, time.Second), "a worker may be at a retry")
	require.False(t, rc.tooSoon(r, scheduled, time.Second), "no worker is given what waits for its time")
}
