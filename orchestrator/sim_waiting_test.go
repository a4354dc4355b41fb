//go:build !race

package orchestrator

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// In a waiting world some runs wait for a tool whose steps nobody takes, while others come and go: for a while under
// faults, then in peace. When the tool is served again, all has to come to its end as in any other world.
const (
	waitingFaults = 25 * time.Second
	waitingPeace  = 60 * time.Second
	// waitingStays is how long a run that is over may lie in the ledger then: its grace, what it waits for longer ones,
	// and some turns of its owner.
	waitingStays = simGrace + purgeAtLast + 10*time.Second
)

func newWaitingWorld(seed int64) *world {
	w := newWorld(seed, none, false)
	w.held = simTools[len(simTools)-1]
	w.register(w.held, 1)
	w.steps.consumers[w.held].limit = 0
	w.knobs.faults, w.knobs.between = waitingFaults, 3*time.Second
	w.knobs.crash, w.knobs.long = pickOne(w, 0, 400, 100), 0 // else few runs would come to their end
	w.plague()
	for i := range 5 {
		w.at(w.upTo(waitingFaults), func() { w.submitWaiting(fmt.Sprint("waiting", i), true) })
	}
	w.stream(0)
	return w
}

// stream submits one run after the other.
func (w *world) stream(i int) {
	if w.now < waitingFaults+waitingPeace {
		w.submitWaiting(fmt.Sprint("short", i), false)
		w.at(w.upTo(2*time.Second), func() { w.stream(i + 1) })
	}
}

// submitWaiting submits a plan that calls the tool that is held at each of its steps, or at none.
func (w *world) submitWaiting(id string, waits bool) {
	c := generated(w.seed/generatedFor, w.Int63n(generatedPlans))
	body := c.Plan
	for i, name := range simTools[:len(simTools)-1] {
		if waits {
			body = bytes.ReplaceAll(body, []byte(name), []byte(w.held))
		} else if i == 0 {
			body = bytes.ReplaceAll(body, []byte(w.held), []byte(name))
		}
	}
	w.truths.cases[plan.Digest(body)] = c
	w.submit(subjects.NewRun("t", id), body, nil)
}

// waiting counts the runs that have waited through the peace, and names one that was over long ago and lies in the
// ledger still.
func (w *world) waiting() (n int, held string) {
	for _, x := range w.truths.order {
		h := w.truths.history[x.id]
		if h != nil && (free(h.doc, x.gen) || h.gen != x.gen && (h.expired || h.removed)) {
			h = nil // of a plan that was rejected, or whose outcome is kept no longer: its id was left to this one
		}
		switch {
		case h == nil && w.time().Sub(x.submitted) > waitingPeace-waitingFaults:
			n++
		case h != nil && !x.gone && w.time().Sub(h.doc.Finished) > waitingStays:
			held = fmt.Sprintf("%s/%d was over %v ago: %s", x.id.ID, x.gen, w.time().Sub(h.doc.Finished), w.known(x))
		}
	}
	return n, held
}

// TestSimulatedWaitingRuns sees that runs that wait hold nothing up but themselves, whoever dies in the middle of a
// purge and however many take themselves for its owner.
func TestSimulatedWaitingRuns(t *testing.T) {
	t.Parallel()
	byName, waited := 0, 0
	for seed := range int64(40) {
		w := newWaitingWorld(seed)
		w.run(waitingFaults)
		w.heal()
		w.run(waitingFaults + waitingPeace)
		require.NoError(t, w.bad, "seed %d", seed)
		n, held := w.waiting()
		require.Empty(t, held, "seed %d: %d runs wait", seed, n)
		if n > 0 {
			waited++
		}
		byName += w.stats["a run was purged by its name"]
		w.steps.consumers[w.held].limit = 40
		w.steps.kick(w.held)
		require.NoError(t, w.rest(), "seed %d", seed)
	}
	require.Greater(t, waited, 30, "in most worlds runs wait to the end")
	require.Greater(t, byName, 500)
}
