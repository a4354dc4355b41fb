package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

func short(e client.Event) string {
	switch e.Kind {
	case subjects.EventStep:
		return fmt.Sprintf("step %s %s %d", e.Step, e.Status, e.Attempt)
	case subjects.EventEnd:
		return "end " + string(e.Outcome.Status)
	case subjects.EventStart:
		return fmt.Sprintf("start %d", e.Steps)
	case subjects.EventMessage:
		return fmt.Sprintf("message %s %s %s", e.Agent, e.Step, e.Message.Text)
	}
	return e.Kind
}

func TestFollowReportsWhatHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watcher, err := w.client.NewWatcher(w.ctx(), "r")
	require.NoError(t, err)
	defer watcher.Close()
	doc := chainDocument()
	for _, e := range [][2]string{
		{subjects.EventStart, `{"run":"r","steps":4}`},
		{subjects.EventStart, `{"run":"r","steps":4}`}, // events may come twice
		{subjects.EventStep, `{"run":"r","step":"a","tool":"echo","status":"succeeded","attempt":1,"ms":1.5}`},
		{subjects.EventStep, `{"run":"r","step":"a","tool":"echo","status":"succeeded","attempt":1,"ms":1.5}`},
		{subjects.EventStep, `{"run":"r","step":"b","tool":"echo","status":"retrying","attempt":1}`},
		{subjects.EventStep, `not json`},
		{"future", `{}`},
		{subjects.EventStep, `{"run":"r","step":"b","tool":"echo","status":"succeeded","attempt":2}`},
		{subjects.EventMessage, `{"run":"r","agent":"b","step":"b/=0/m","round":0,"text":"Hi."}`},
		{subjects.EventMessage, `{"run":"r","agent":"b","step":"b/=0/m","round":0,"text":"Hi."}`}, // by the next owner
		{subjects.EventMessage, `{"run":"r","agent":"b","step":"b/=1/m","round":1,"text":"Hi."}`}, // said once more
		{subjects.EventConflict, `{"run":"r","problems":[{"code":"conflict","path":"","message":"another plan"}]}`},
		{subjects.EventStep, `{"run":"r","step":"c","tool":"echo","status":"failed","attempt":1,"error":{"code":"tool_terminal","message":"no"}}`},
		{subjects.EventStep, `{"run":"r","step":"d","tool":"echo","status":"skipped"}`},
		{subjects.EventEnd, string(doc.Outcome.JSON())},
	} {
		w.event("r", e[0], e[1])
	}
	var seen []string
	require.NoError(t, watcher.Follow(w.ctx(), func(e client.Event) {
		require.Equal(t, "r", e.Run)
		seen = append(seen, short(e))
	}))
	require.Equal(t, []string{
		"start 4", "step a succeeded 1", "step b retrying 1", "step b succeeded 2", "message b b/=0/m Hi.", "message b b/=1/m Hi.", "conflict", "step c failed 1", "step d skipped 0", "end partial",
	}, seen)
}

// Events are lost as soon as somebody looks away. The end comes all the same, and no step is left out.
func TestFollowMakesUpForLostEvents(t *testing.T) {
	t.Parallel()
	for name, announced := range map[string]func(w *world, doc *outcome.Run){
		"only the end":       func(w *world, doc *outcome.Run) { w.event("r", subjects.EventEnd, string(doc.Outcome.JSON())) },
		"only its short end": func(w *world, doc *outcome.Run) { w.event("r", subjects.EventEnd, string(doc.Head())) },
		"nothing":            func(*world, *outcome.Run) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			watcher, err := w.client.NewWatcher(w.ctx(), "r")
			require.NoError(t, err)
			defer watcher.Close()
			w.event("r", subjects.EventStep, `{"run":"r","step":"b","tool":"echo","status":"succeeded","attempt":2}`)
			var seen []string
			require.NoError(t, watcher.Follow(w.ctx(), func(e client.Event) {
				seen = append(seen, short(e))
				if len(seen) == 1 { // the run goes on while we watch
					doc := chainDocument()
					w.keep(doc)
					announced(w, doc)
				}
			}))
			require.Equal(t, []string{
				"step b succeeded 2", "start 4", "step a succeeded 1", "step c failed 1", "step d skipped 0", "end partial",
			}, seen)
		})
	}
}

// Items of a for_each are told of too, and don't count as steps: an end with too few steps still is made up for.
func TestFollowTellsItemsFromSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watcher, err := w.client.NewWatcher(w.ctx(), "r")
	require.NoError(t, err)
	defer watcher.Close()
	doc := chainDocument()
	doc.Steps[0].Items = []outcome.Step{
		{ID: "a=0", Tool: "echo", Status: outcome.StepSucceeded, Attempts: 1}, {ID: "a=1", Tool: "echo", Status: outcome.StepFailed, Attempts: 3},
	}
	for _, item := range []string{"a=0", "a=2", "a=3", "a=4"} {
		w.event("r", subjects.EventStep, `{"run":"r","step":"`+item+`","tool":"echo","status":"succeeded","attempt":1}`)
	}
	w.keep(doc)
	w.event("r", subjects.EventEnd, string(doc.Outcome.JSON()))
	var seen []string
	require.NoError(t, watcher.Follow(w.ctx(), func(e client.Event) { seen = append(seen, short(e)) }))
	for _, step := range []string{"step a=0 succeeded 1", "step a=1 failed 3", "step a succeeded 0", "step c failed 1", "step d skipped 0", "end partial"} {
		require.Equal(t, 1, count(seen, step), "%s: %v", step, seen)
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func TestWatchOfAFinishedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keep(chainDocument())
	var seen []string
	require.NoError(t, w.client.Watch(w.ctx(), "r", func(e client.Event) { seen = append(seen, short(e)) }))
	require.Equal(t, []string{"start 4", "step a succeeded 1", "step b succeeded 2", "step c failed 1", "step d skipped 0", "end partial"}, seen)

	err := w.client.Watch(w.ctx(), "nobody", func(client.Event) {})
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
	err = w.client.Watch(w.ctx(), "", func(client.Event) {})
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("r")
	ctx, cancel := context.WithTimeoutCause(w.ctx(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	require.EqualError(t, w.client.Watch(ctx, "r", func(client.Event) {}), "enough")
}
