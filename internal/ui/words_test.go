package ui_test

import (
	"context"
	"encoding/json"
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

// An operator says something to an agent, once under each id, and its rounds say what they took; nobody else may say anything.
func TestAnAgentIsSpokenTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	asked, answer := w.planning()
	_, err := w.client("acme").Submit(w.ctx(), []byte(`{"steps":[{"id":"a","agent":{"planner":{"tool":"planner"},"tools":["echo","fail"]}}]}`), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	<-asked
	type heard struct {
		ID      string
		Round   *int
		Already bool
	}
	generation := get[struct{ Generation uint64 }](w, "runs/acme.r").Generation
	word := func(id, text string) map[string]any {
		return map[string]any{"step": "a", "id": id, "text": text, "generation": generation}
	}
	body := func(v any) string {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return string(raw)
	}
	h := post[heard](w, "runs/acme.r/say", body(word("m1", "Hurry.")))
	require.Equal(t, heard{ID: "m1"}, h)
	require.True(t, post[heard](w, "runs/acme.r/say", body(word("m1", "Hurry."))).Already, "what is sent twice is said once")
	refused(w, w.request(http.MethodPost, "/api/v1/runs/acme.r/say", []byte(body(word("m1", "Wait.")))), http.StatusConflict)
	for _, without := range []string{"step", "id", "text"} {
		bad := word("m2", "x")
		bad[without] = ""
		refused(w, w.request(http.MethodPost, "/api/v1/runs/acme.r/say", []byte(body(bad))), http.StatusBadRequest)
	}
	answer <- map[string]any{
		"steps": []any{map[string]any{"id": "x", "tool": "echo", "arguments": map[string]any{}}, map[string]any{"id": "y", "tool": "fail", "arguments": map[string]any{"message": "no", "terminal": true}}},
		"usage": map[string]any{"input_tokens": 120, "output_tokens": 7, "cost_usd": 0.25},
	}
	<-asked
	again := post[heard](w, "runs/acme.r/say", body(word("m1", "Hurry.")))
	require.Equal(t, 1, *again.Round)
	stop := word("m2", "Stop.")
	stop["interrupt"] = true
	post[heard](w, "runs/acme.r/say", body(stop))
	<-asked // the planner of round 2; that of round 1 may not know yet that its call was given up, and take an answer
	require.Eventually(t, func() bool {
		select {
		case answer <- map[string]any{"output": 1}:
		default:
		}
		return get[sheet](w, "runs/acme.r").Status == "succeeded"
	}, patience, 10*time.Millisecond)
	type round struct {
		Round, Calls, Failed int
		Planner              string
		Usage                *struct {
			Input  int     `json:"input_tokens"`
			Output int     `json:"output_tokens"`
			Cost   float64 `json:"cost_usd"`
		}
	}
	d := get[struct {
		Rounds []round
		Whole  string
		Said   []outcome.Said
	}](w, "runs/acme.r/steps/a")
	require.Len(t, d.Rounds, 3)
	require.Equal(t, []int{2, 1}, []int{d.Rounds[0].Calls, d.Rounds[0].Failed})
	require.Equal(t, 120, d.Rounds[0].Usage.Input)
	require.Equal(t, 7, d.Rounds[0].Usage.Output)
	require.InDelta(t, 0.25, d.Rounds[0].Usage.Cost, 1e-9)
	require.Nil(t, d.Rounds[2].Usage)
	require.Contains(t, d.Whole, "120 tokens in, 7 out, $0.25")
	require.True(t, d.Said[1].Interrupt)
	require.Equal(t, "local", d.Said[0].By)
}
