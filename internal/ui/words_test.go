package ui_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// planning hosts a planner whose answers a test gives: each call is told of by its round.
func (w *world) planning() (asked chan int, answer chan any) {
	w.t.Helper()
	asked, answer = make(chan int), make(chan any)
	host, err := worker.New(w.connect(), worker.Config{})
	require.NoError(w.t, err)
	worker.Handle(host, "planner", func(ctx context.Context, in map[string]any) (any, error) {
		round, _ := in["round"].(float64)
		select {
		case asked <- int(round):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case a := <-answer:
			return a, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, worker.Contract(tool.Orchestration{Request: tool.WholeRequest}))
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- host.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	<-host.Ready()
	return asked, answer
}

// What was said to an agent, and which answers of its planner were refused, is shown with the agent and with the planner of
// the round that it is for; a word that no round has taken with the agent alone.
func TestWhatWasSaidToAnAgentIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	asked, answer := w.planning()
	c := w.client("acme")
	_, err := c.Submit(w.ctx(), []byte(`{"steps":[{"id":"a","agent":{"planner":{"tool":"planner"},"tools":["echo"]}}]}`), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	type detail struct {
		Said    []outcome.Said
		Refused []outcome.Refused
	}
	of := func(step string) detail { return get[detail](w, "runs/acme.r/steps/"+step) }
	say := func(id, text, by string) {
		_, err := client.Say(w.ctx(), c, "r", client.Word{Step: "a", ID: id, Text: text, By: by})
		require.NoError(t, err)
	}
	round := func(n int) { // waits until the planner of a round is asked
		t.Helper()
		select {
		case at := <-asked:
			require.Equal(t, n, at)
		case <-w.ctx().Done():
			require.FailNow(t, "nobody asked the planner", "round %d: %v", n, get[any](w, "runs/acme.r"))
		}
	}
	round(0)
	say("m1", "<b>In words.</b>", "ann")
	require.Nil(t, of("a").Said[0].Round, "no round has taken it")
	require.Empty(t, of("a%2F%3D0%2F%3Dplan").Said)
	answer <- map[string]any{"steps": []any{map[string]any{"id": "x", "tool": "nobody"}}}
	round(1)
	say("m2", "And soon.", "")

	var d detail
	require.Eventually(t, func() bool { // what was read a moment ago is shown for that long
		d = of("a")
		return len(d.Said) == 2
	}, patience, 10*time.Millisecond)
	require.Equal(t, []string{"m1", "m2"}, []string{d.Said[0].ID, d.Said[1].ID})
	require.Equal(t, "ann", d.Said[0].By)
	require.False(t, d.Said[0].Verified)
	require.Equal(t, 1, *d.Said[0].Round)
	require.Nil(t, d.Said[1].Round)
	require.JSONEq(t, `"<b>In words.</b>"`, string(d.Said[0].Content))
	require.Len(t, d.Refused, 1)
	require.Equal(t, 0, d.Refused[0].Round)
	require.Equal(t, fault.UnknownTool, d.Refused[0].Problems[0].Code)
	require.Equal(t, detail{Refused: d.Refused}, of("a%2F%3D0%2F%3Dplan"))
	require.Equal(t, detail{Said: d.Said[:1]}, of("a%2F%3D1%2F%3Dplan"))
	answer <- map[string]any{"output": 1}
	round(2)
	answer <- map[string]any{"output": 2}
	require.Eventually(t, func() bool { return get[sheet](w, "runs/acme.r").Status == "succeeded" }, patience, 10*time.Millisecond)
	require.Equal(t, "m2", of("a%2F%3D2%2F%3Dplan").Said[0].ID, "it stands in the history")
	refused(w, w.request(http.MethodGet, "/api/v1/runs/acme.r/steps/a%2F%3D3%2F%3Dplan", nil), http.StatusNotFound)
}

// What an agent tells people is shown with the agent and with the planner of its round, as text, while it goes on and after the end.
func TestWhatAnAgentTellsPeopleIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	asked, answer := w.planning()
	_, err := w.client("acme").Submit(w.ctx(), []byte(`{"steps":[{"id":"a","agent":{"planner":{"tool":"planner"},"tools":["communicate"]}}]}`), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	of := func(step string) []outcome.Message {
		return get[struct{ Messages []outcome.Message }](w, "runs/acme.r/steps/"+step).Messages
	}
	tell := func(text string) map[string]any {
		return map[string]any{"steps": []any{map[string]any{"id": "m", "tool": "communicate", "arguments": map[string]any{"message": text}}}}
	}
	shown := func() {
		t.Helper()
		require.Eventually(t, func() bool { return len(of("a")) == 2 }, patience, 10*time.Millisecond)
		require.Equal(t, []string{"<img src=x>", "Two."}, []string{of("a")[0].Text, of("a")[1].Text})
		require.Equal(t, of("a")[:1], of("a%2F%3D0%2F%3Dplan"))
		require.Equal(t, of("a")[1:], of("a%2F%3D1%2F%3Dplan"))
	}
	for _, text := range []string{"<img src=x>", "Two."} {
		<-asked
		answer <- tell(text)
	}
	<-asked
	shown()
	answer <- map[string]any{"output": 1}
	require.Eventually(t, func() bool { return get[sheet](w, "runs/acme.r").Status == "succeeded" }, patience, 10*time.Millisecond)
	shown()
}
