package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// event freezes an event that decodes to what it was made of.
func event[E wire.StartEvent | wire.StepEvent | wire.ProgressEvent | wire.MessageEvent | wire.TokenEvent | wire.QuestionEvent | wire.AmendEvent | wire.ConflictEvent](t *testing.T, name string, e E, body func(E) []byte) {
	t.Helper()
	plain, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, string(plain), string(body(e)), "written by hand as by encoding/json")
	golden(t, name, wire.Versioned(), body(e), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, ok := wire.ParseEvent[E](m.Data)
		require.True(t, ok)
		require.Equal(t, e, read)
		return nats.Msg{Header: wire.Versioned(), Data: body(read)}
	})
}

func TestEventForms(t *testing.T) {
	t.Parallel()
	later := at.Add(time.Second)
	failed := &fault.Error{Code: fault.ToolFailed, Message: "503 from upstream", Retryable: true, RetryAfter: time.Second}
	event(t, "start_event", wire.StartEvent{Run: "order-42", Steps: 3, Time: at}, wire.StartEvent.Body)
	step := wire.StepEvent{Run: "order-42", Step: "tokyo", Tool: "get_weather", Status: outcome.StepSucceeded, Attempt: 1, Time: at, MS: 1.5, Worker: "w1"}
	event(t, "step_event", step, wire.StepEvent.Body)
	event(t, "message_event", wire.MessageEvent{Run: "order-42", Agent: "a", Message: outcome.Message{Step: "a/=1/tell", Round: 1, At: at, Text: "It has <b>3</b>.", Bytes: 5000}}, wire.MessageEvent.Body)
	retry := wire.StepEvent{Run: "order-42", Step: "tokyo=3", Tool: "get_weather", Status: outcome.StepRetrying, Attempt: 1, Time: at, Worker: "w1", Error: failed, RetryAt: &later}
	event(t, "retry_event", retry, wire.StepEvent.Body)
	problem := fault.Problem{
		Code:    fault.Conflict,
		Message: "the run id 'order-42' was used for another plan (sha256 ab12…, not cd34…)",
		Hint:    "send the same bytes to get the same outcome, or choose another run id",
	}
	event(t, "amend_event", wire.AmendEvent{Run: "order-42", Step: "=", Revision: 2, Steps: 9, By: "ann", Time: at}, wire.AmendEvent.Body)
	event(t, "question_amendment_event", wire.QuestionEvent{Run: "order-42", Step: "=", Number: 3, Kind: outcome.Approval, Digest: digest, Revision: 2, Time: at}, wire.QuestionEvent.Body)
	round := 3
	event(t, "question_round_event", wire.QuestionEvent{Run: "order-42", Step: "a", Number: 4, Kind: outcome.Approval, Text: "May it pay?", Digest: digest, Round: &round, Time: at}, wire.QuestionEvent.Body)
	event(t, "conflict_event", wire.ConflictEvent{Run: "order-42", Problems: []fault.Problem{problem}}, wire.ConflictEvent.Body)
	_, ok := wire.ParseEvent[wire.StepEvent]([]byte("not json"))
	require.False(t, ok)
}

// Of every event the fast form says what the plain one does, whatever stands in it.
func TestEventsAreWrittenAsTheirStructs(t *testing.T) {
	t.Parallel()
	for _, e := range []wire.StepEvent{
		{Run: "é #1", Step: "a", Tool: "crm/get", Status: outcome.StepSucceeded, Attempt: 1, Time: at, MS: 1, QueuedMS: 0.5, Worker: `w "1"`},
		{Run: "<&>\n", Step: "a=1", Tool: "t", Status: outcome.StepSkipped, Time: at},
		{Run: "r", Step: "b", Tool: "t", Status: outcome.StepFailed, Attempt: 1, Time: at, QueuedMS: 2, Worker: "w", Error: fault.New(fault.ToolTerminal, "x < y")},
	} {
		plain, err := json.Marshal(e)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(e.Body()))
	}
	e := wire.StartEvent{Run: "<é>", Steps: 1, Time: at}
	plain, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, string(plain), string(e.Body()))
}

func TestAnEventSplitsTheTimeOfAStep(t *testing.T) {
	t.Parallel()
	ms := func(n float64) time.Time { return at.Add(time.Duration(n * float64(time.Millisecond))) }
	s := &outcome.Step{ID: "a", Tool: "t", Status: outcome.StepSucceeded, Attempts: 2, Ready: at, Started: ms(7), Ended: ms(9.5), Decided: ms(10), Worker: "w1"}
	want := wire.StepEvent{Run: "r", Step: "a", Tool: "t", Status: outcome.StepSucceeded, Attempt: 2, Time: ms(10), MS: 2.5, QueuedMS: 7.5, Worker: "w1"}
	require.Equal(t, want, wire.StepEventOf("r", s, false))
	want.Attempt = 0
	require.Equal(t, want, wire.StepEventOf("r", s, true))
}
