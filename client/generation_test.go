package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

var noTool = []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: "no tool"}}

// reject ends a run as the owner of a rejected plan does, but for the plan's record.
func (w *world) reject(run, plan string, generation uint64) *outcome.Run {
	w.t.Helper()
	doc := document(run, plan, nil)
	doc.Generation, doc.Status = generation, outcome.Rejected
	doc.Outcome = &outcome.Outcome{Run: run, Status: outcome.Rejected, Generation: generation, Results: outcome.Results{}, Problems: noTool}
	created, err := w.store.Archive.CreateHistory(w.ctx(), subjects.NewRun("default", run), "", doc)
	require.NoError(w.t, err)
	require.True(w.t, created)
	return doc
}

// replace ends a run whose id had a rejected one before.
func (w *world) replace(run, plan string, generation uint64) *outcome.Run {
	w.t.Helper()
	name := subjects.NewRun("default", run)
	_, seq, err := w.store.Archive.HistoryAt(w.ctx(), name)
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.Archive.PurgeHistory(w.ctx(), name, seq))
	doc := document(run, plan, resultA)
	doc.Generation, doc.Outcome.Generation = generation, generation
	created, err := w.store.Archive.CreateHistory(w.ctx(), name, "", doc)
	require.NoError(w.t, err)
	require.True(w.t, created)
	return doc
}

func TestTheIDOfARejectedRunIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := subjects.NewRun("default", "r")
	first := w.submit("r")
	rejected := w.reject("r", planA, first.Generation())
	w.announce("r", rejected.Outcome.JSON())
	out, err := first.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, noTool, out.Problems)

	// While the rejected plan is still there, a submit waits for it to go.
	type answer struct {
		r   *client.Run
		err error
	}
	submitted := make(chan answer, 1)
	go func() {
		r, err := w.client.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "r"})
		submitted <- answer{r, err}
	}()
	select {
	case a := <-submitted:
		require.Fail(t, "the plan of before is still there", "%v", a.err)
	case <-time.After(200 * time.Millisecond):
	}
	require.NoError(t, w.store.Ledger.PurgeRun(w.ctx(), name, first.Generation()))
	a := <-submitted
	require.NoError(t, a.err)
	require.False(t, a.r.Attached())
	require.Greater(t, a.r.Generation(), first.Generation())

	// What is told and kept of the plan before is not this one's outcome: not by notice, not in history, not for a
	// stranger.
	w.announce("r", rejected.Outcome.JSON())
	stranger, err := w.newClient(client.Config{}).Attach("r")
	require.NoError(t, err)
	for _, r := range []*client.Run{a.r, stranger} {
		short, cancel := context.WithTimeout(w.ctx(), 1500*time.Millisecond)
		_, err = r.Wait(short)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	list, err := w.client.List(w.ctx(), client.ListOptions{Status: []outcome.RunStatus{outcome.Running}})
	require.NoError(t, err)
	require.Len(t, list, 1, "it goes on")
	short, cancel := context.WithTimeout(w.ctx(), 300*time.Millisecond)
	defer cancel()
	doc, err := w.client.Get(short, "r")
	require.Error(t, err, "nobody is there to answer for the active run: %v", doc)

	w.replace("r", planB, a.r.Generation())
	for _, r := range []*client.Run{a.r, stranger} {
		out, err = r.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status)
	}
	doc, err = w.client.Get(w.ctx(), "r")
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, doc.Status)

	_, err = w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "an id that was not rejected is used: %v", err)
}

// One handle waits for the plan that was rejected, unnoticed, the other for the plan after it.
func TestAHandleOfEachPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.submit("r")
	w.reject("r", planA, first.Generation())
	require.NoError(t, w.store.Ledger.PurgeRun(w.ctx(), subjects.NewRun("default", "r"), first.Generation()))
	second, err := w.client.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	done := w.replace("r", planB, second.Generation())
	w.announce("r", done.Outcome.JSON())
	out, err := second.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	_, err = first.Wait(w.ctx())
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "not what came of the other plan: %v", err)
}

// An orchestrator of before rejected ids were free answers with the old rejection, and removes the new plan.
func TestAPlanThatAnOlderOrchestratorRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("before") // the rejected plan's place in the ledger
	w.reject("r", planA, 1)
	w.reject("same", planA, 1)
	other, err := w.client.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	same, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "same"})
	require.NoError(t, err)
	for _, r := range []*client.Run{other, same} {
		require.NoError(t, w.store.Ledger.PurgeRun(w.ctx(), subjects.NewRun("default", r.ID()), r.Generation()))
	}
	// Without generation, as it told it.
	w2 := outcome.Outcome{Run: "same", Status: outcome.Rejected, Results: outcome.Results{}, Problems: noTool}
	w.event("same", subjects.EventEnd, string(w2.JSON()))
	_, err = other.Wait(w.ctx())
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	out, err := same.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, noTool, out.Problems)
}

func TestWatchingAPlanWhoseIDHadARejection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("before") // the rejected plan's place in the ledger
	old := w.reject("r", planA, 1)
	watcher, err := w.client.NewWatcher(w.ctx(), "r")
	require.NoError(t, err)
	defer watcher.Close()
	r, err := w.client.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	watcher.Of(r)
	w.event("r", subjects.EventEnd, string(old.Outcome.JSON()))
	w.event("r", subjects.EventStart, `{"run":"r","steps":1}`)
	judged, err := watcher.Judged(w.ctx())
	require.NoError(t, err)
	require.Nil(t, judged, "it has begun")

	w.replace("r", planB, r.Generation())
	var last client.Event
	require.NoError(t, watcher.Follow(w.ctx(), func(e client.Event) { last = e }))
	require.Equal(t, outcome.Succeeded, last.Outcome.Status)
}
