package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// asker hosts tools that ask a person: "seat" once, and returns what it was told; "nosy" again and again; "shy" without
// having said so.
func (s *system) asker() {
	s.t.Helper()
	w, err := worker.New(s.nc, worker.Config{Name: "asker", Logger: logger(s.t)})
	require.NoError(s.t, err)
	host := func(name string, o *tool.Orchestration, fn worker.Handler) {
		require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: name, Orchestration: o}, fn))
	}
	seat := func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		if r, ok := worker.Answered(ctx); ok {
			body, err := json.Marshal(map[string]any{"args": args, "answer": r.Answer, "state": r.State, "attempt": r.Attempt})
			return worker.Output{Body: body}, err
		}
		return worker.Output{}, worker.Ask(ctx, worker.Question{
			Text: "Which seat?", Schema: json.RawMessage(`{"type":"string"}`), State: json.RawMessage(`{"hold":7}`),
		})
	}
	host("seat", &tool.Orchestration{Asks: true}, seat)
	host("shy", nil, seat)
	host("nosy", &tool.Orchestration{Asks: true}, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
		return worker.Output{}, worker.Ask(ctx, worker.Question{Text: fmt.Sprintf("And after %d?", worker.MayAsk(ctx))})
	})
	s.background(w.Run, w.Ready())
}

// answered answers the next question of a step.
func (s *system) answered(run, step string, number int, value string) {
	s.t.Helper()
	var q *outcome.Question
	require.Eventually(s.t, func() bool {
		q = s.asked(run, step)
		return q.Number == number
	}, patience, time.Millisecond)
	_, err := s.client.Answer(ctx(s.t), q, json.RawMessage(value), client.Answer{By: "ann"})
	require.NoError(s.t, err)
}

// TestAToolAsksInTheMiddleOfACall: the question is listed as any other, what does not fit it is refused, and the answer
// begins the next attempt with the same arguments and what the tool had kept.
func TestAToolAsksInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.asker()
	r := s.submit(`{"steps":[{"id":"a","tool":"seat","arguments":{"flight":"LH 400"}},{"id":"hold","tool":"ask","arguments":{"question":"Done?"}}]}`, "r")
	q := s.asked("r", "a")
	require.Equal(t, outcome.Ask, q.Kind)
	require.Equal(t, "seat", q.Tool)
	require.Equal(t, "Which seat?", q.Text)
	require.Equal(t, 1, q.Attempt)
	require.JSONEq(t, `{"type":"string"}`, string(q.Schema))
	doc, err := s.client.Get(ctx(t), "r")
	require.NoError(t, err)
	require.Equal(t, outcome.StepAsking, doc.Steps[0].Status)
	require.Equal(t, "an answer to its tool", doc.Steps[0].Waiting)

	for value, code := range map[string]fault.Code{
		`7`: fault.InvalidValue, `"` + strings.Repeat("x", machine.MaxAnswer) + `"`: fault.TooLarge,
	} {
		_, err = s.client.Answer(ctx(t), q, json.RawMessage(value), client.Answer{})
		require.Equal(t, code, fault.CodeOf(err), "%v", err)
	}
	_, err = s.client.Approve(ctx(t), q, client.Answer{})
	require.Error(t, err, "there is nothing to approve of")
	stale := *q
	stale.Digest = strings.Repeat("0", 64)
	_, err = s.client.Answer(ctx(t), &stale, json.RawMessage(`"12A"`), client.Answer{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	for range 2 { // answering twice is answering once
		stands, err := s.client.Answer(ctx(t), q, json.RawMessage(`"12A"`), client.Answer{By: "ann"})
		require.NoError(t, err)
		require.Equal(t, outcome.DecisionAnswered, stands.Decision)
	}
	for _, again := range []*outcome.Question{q, {Run: "r", Step: "a", Kind: outcome.Ask, Digest: q.Digest}, {Run: "r", Step: "a", Kind: outcome.Ask}} {
		stands, err := s.client.Answer(ctx(t), again, json.RawMessage(`"12A"`), client.Answer{By: "bob"})
		require.NoError(t, err, "who answers second is told what stands, with the digest and without")
		require.Equal(t, []string{outcome.DecisionAnswered, "ann", q.Digest}, []string{stands.Decision, stands.By, stands.Digest})
		_, err = s.client.Answer(ctx(t), again, json.RawMessage(`"30F"`), client.Answer{By: "bob"})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "answered already by ann")
		_, err = s.client.Reject(ctx(t), again, client.Answer{})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	}
	s.answered("r", "hold", 1, `"yes"`)
	o := s.unasked(r, "a", "hold")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"args":{"flight":"LH 400"},"answer":"12A","state":{"hold":7},"attempt":1}`, result(t, o, "a"))
	done := s.history("default", "r")
	require.Nil(t, done.Steps[0].Answer)
	require.Len(t, done.Steps[0].Answers, 1)
	require.Equal(t, "ann", done.Steps[0].Answers[0].By)
	require.Equal(t, []bool{true, false}, []bool{done.Steps[0].Tries[0].Asked, done.Steps[0].Tries[1].Asked})
	for _, again := range []*outcome.Question{q, {Run: "r", Step: "a", Kind: outcome.Ask}} {
		stands, err := s.client.Answer(ctx(t), again, json.RawMessage(`"12A"`), client.Answer{By: "ann"})
		require.NoError(t, err, "so it is once the run is over")
		require.Equal(t, &client.Answered{Answered: *done.Steps[0].Answers[0], Already: true}, stands)
		_, err = s.client.Reject(ctx(t), again, client.Answer{})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	}
	_, err = s.client.Answer(ctx(t), &stale, json.RawMessage(`"12A"`), client.Answer{By: "ann"})
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
	s.noQuestions()
	start, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "r"), done.Generation, s.store.Ledger.Shards()))
	if fault.CodeOf(err) != fault.NotFound { // else it was purged already
		require.NoError(t, err)
		read, _, err := wire.ParseStart(start.Header, start.Data)
		require.NoError(t, err)
		require.Contains(t, read.Needs, wire.Asking)
	}
}

// TestWhatComesOfAToolThatAsks: rejected, asked without an end, asked without having said so, and in a run that is tried
// again.
func TestWhatComesOfAToolThatAsks(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.asker()
	r := s.submit(`{"steps":[{"id":"a","tool":"seat"},{"id":"b","tool":"echo"}]}`, "rejected")
	_, err := s.client.Reject(ctx(t), s.asked("rejected", "a"), client.Answer{Reason: "no seat"})
	require.NoError(t, err)
	o := s.wait(r)
	require.Equal(t, fault.Rejected, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, "no seat")
	letters, err := s.client.DeadLetters(ctx(t), client.DeadOptions{})
	require.NoError(t, err)
	require.Empty(t, letters, "a person decided it")

	again, err := s.client.Retry(ctx(t), "rejected", client.RetryOptions{Run: "again"})
	require.NoError(t, err)
	s.answered("again", "a", 1, `"14C"`)
	o = s.wait(again)
	require.Equal(t, outcome.Succeeded, o.Status, "it is asked anew: %s", o.JSON())

	r = s.submit(`{"steps":[{"id":"a","tool":"nosy"}]}`, "nosy")
	for n := 1; n <= machine.MaxAsked; n++ {
		s.answered("nosy", "a", n, `1`)
	}
	o = s.wait(r)
	require.Equal(t, fault.ToolTerminal, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, "too often")
	require.Equal(t, machine.MaxAsked+1, o.Errors[0].Attempts)

	o = s.run(`{"steps":[{"id":"a","tool":"shy"}]}`, "shy")
	require.Equal(t, fault.ToolTerminal, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, "does not say that it asks")

	r = s.submit(`{"steps":[{"id":"a","tool":"seat"}]}`, "stopped")
	s.asked("stopped", "a")
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "stopped", "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	s.noQuestions()
}

// TestAnotherOwnerKnowsWhatAToolAsks: the run's owner changes while somebody thinks; items ask each by themselves, and so do
// steps of a plan within.
func TestAnotherOwnerKnowsWhatAToolAsks(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.asker()
	r := s.submit(`{"steps":[{"id":"a","tool":"seat","for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"}},
		{"id":"p","plan":{"steps":[{"id":"b","tool":"seat","arguments":{"n":3}}]}}]}`, "r")
	before := s.asked("r", "a=1")
	s.asked("r", "p/b")
	s.leave()
	s.leave = s.orchestrator()
	require.Equal(t, before, s.asked("r", "a=1"), "what is asked follows from the records")
	for _, step := range []string{"a=0", "a=1", "p/b"} {
		s.answered("r", step, 1, `"12A"`)
	}
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	const second = `{"index":1,"status":"ok","data":{"answer":"12A","args":{"n":2},"attempt":1,"state":{"hold":7}}}`
	require.Contains(t, result(t, o, "a"), second)
}
