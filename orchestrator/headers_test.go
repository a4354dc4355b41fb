package orchestrator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// published sends a plan as any NATS client can, with any headers, and gives the document as it lies in its key.
func (s *system) published(run, plan string, h nats.Header) *outcome.Run {
	s.t.Helper()
	name := subjects.NewRun("default", run)
	js, err := natstest.Connect(s.t, s.srv).JetStream()
	require.NoError(s.t, err)
	_, err = js.PublishMsg(&nats.Msg{Subject: s.store.Ledger.SubmitSubject(name), Header: h, Data: []byte(plan)})
	require.NoError(s.t, err)
	var head *outcome.Run
	require.Eventually(s.t, func() bool {
		head, err = s.store.Archive.HistoryHead(ctx(s.t), name)
		return err == nil
	}, patience, 10*time.Millisecond)
	return head
}

// Each attempt is sent with a span of its own in the plan's trace, and its record says so.
func TestStepsHaveSpansOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := start(t)
	sent := make(chan *nats.Msg, 10)
	steps, err := s.nc.ChanSubscribe("step.>", sent)
	require.NoError(t, err)
	trace := wire.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	h := nats.Header{subjects.HeaderTraceparent: {trace.Parent}, subjects.HeaderTracestate: {trace.State}}
	plan := `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}},{"id":"b","tool":"echo","arguments":{"v":"$ref:a"}}]}`
	head := s.published("traced", plan, h)
	require.Equal(t, outcome.Succeeded, head.Status)
	require.NoError(t, steps.Unsubscribe())
	for _, id := range []string{"a", "b"} {
		m := <-sent
		a := subjects.Attempt{Run: subjects.NewRun("default", "traced"), Generation: head.Generation, Tool: "echo", Step: id, Number: 1}
		require.Equal(t, a.Key(), m.Header.Get(subjects.HeaderKey))
		require.Equal(t, trace.Of(a), wire.TraceOf(m.Header))
	}
}

// An endless trace goes to no step, and so to no record.
func TestAnEndlessTraceIsCopiedNowhere(t *testing.T) {
	t.Parallel()
	s := start(t)
	steps := make(chan *nats.Msg, 100)
	sub, err := s.nc.ChanSubscribe("step.>", steps)
	require.NoError(t, err)
	records, err := s.nc.ChanSubscribe("$KV.runs_0.>", steps)
	require.NoError(t, err)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	one := `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}}]}`
	for run, trace := range map[string][2]string{"parent": {strings.Repeat("x", 60_000), "a=b"}, "state": {parent, strings.Repeat("y", 60_000)}} {
		h := nats.Header{subjects.HeaderTraceparent: {trace[0]}, subjects.HeaderTracestate: {trace[1]}}
		require.Equal(t, outcome.Succeeded, s.published(run, one, h).Status)
	}
	require.NoError(t, sub.Unsubscribe())
	require.NoError(t, records.Unsubscribe())
	require.NoError(t, s.nc.Flush())
	close(steps)
	seen := 0
	for m := range steps {
		seen++
		require.Less(t, len(m.Header.Get(subjects.HeaderTraceparent)), 60, m.Subject)
		require.Empty(t, m.Header.Get(subjects.HeaderTracestate), m.Subject)
	}
	require.GreaterOrEqual(t, seen, 6)
}

// What becomes a part of subjects is not endless either: the server would close the orchestrator's connection.
func TestAnEndlessRunToTryAgainIsAProblem(t *testing.T) {
	t.Parallel()
	s := start(t)
	one := `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}}]}`
	for _, of := range []string{strings.Repeat(" é", 15_000), strings.Repeat("x", subjects.MaxRunID+1)} {
		head := s.published("again"+of[:2], one, nats.Header{subjects.HeaderRetryOf: {of + "!"}})
		require.Equal(t, outcome.Rejected, head.Status)
		require.Equal(t, fault.InvalidID, head.Outcome.Problems[0].Code)
		require.Less(t, len(head.JSON()), 4096)
	}
	require.Equal(t, outcome.Succeeded, s.published("fine", one, nil).Status)
}

// A plan that is too large comes to an outcome that says so where everybody looks.
func TestAPlanOneByteOverTheLimitSaysSoInItsHead(t *testing.T) {
	t.Parallel()
	s := start(t)
	one, err := json.Marshal(map[string]any{"steps": []any{map[string]any{"id": "a", "tool": "echo", "arguments": map[string]any{"v": "?"}}}})
	require.NoError(t, err)
	fill := strings.Repeat("x", plan.MaxBytes+1-len(one))
	head := s.published("large", strings.Replace(string(one), "?", "?"+fill, 1), nil)
	require.NotNil(t, head.Blob)
	require.Equal(t, outcome.Rejected, head.Status)
	require.Len(t, head.Outcome.Problems, 1)
	require.Equal(t, fault.LimitExceeded, head.Outcome.Problems[0].Code)
	require.NotEmpty(t, head.Outcome.Problems[0].Hint)
}
