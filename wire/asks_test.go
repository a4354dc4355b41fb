package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

var seat = wire.Asks{
	Asked: tool.Asked{
		Question: "Which seat?", Schema: json.RawMessage(`{"type":"string"}`), Choices: []json.RawMessage{[]byte(`"12A"`), []byte(`"14C"`)},
	},
	State: json.RawMessage(`{"hold":"h-1"}`),
}

// The record of an attempt whose worker asks, the step that follows it, and the question as it is listed.
func TestWhatAWorkerAsksOnTheWire(t *testing.T) {
	t.Parallel()
	r := wire.Result{Asks: &seat, Worker: "w1", Started: at, Ended: at}
	h, body := r.Message()
	golden(t, "result_asks", h, body, wiretest.Ignored, recodeResult)
	require.Equal(t, r, wire.ParseResult(h, body))

	a := subjects.Attempt{Run: subjects.NewRun("acme", "order-42"), Generation: 17, Tool: "book", Step: "seat", Number: 2}
	s := wire.Step{
		Result: subjects.StepRecord(a, 1), Key: a.Key(), Attempt: 2, MayAsk: 15,
		Reply: &wire.Reply{Attempt: 1, Answer: json.RawMessage("\n \"12A\" "), State: json.RawMessage("{\n\"hold\": \"<h&1>\"}")},
	}
	wiretest.Golden(t, *update, "step_answer", nats.Msg{Header: s.Header()})
	back, err := wire.ParseStep(s.Header())
	require.NoError(t, err)
	require.Equal(t, &wire.Reply{Attempt: 1, Answer: json.RawMessage(`"12A"`), State: json.RawMessage(`{"hold":"<h&1>"}`)}, back.Reply)
	require.Equal(t, 15, back.MayAsk)
	require.True(t, wire.KindStep.Known(s.Header()))
	require.False(t, wire.KindAnswer.Known(s.Header()), "a worker that knows the versions of before leaves it to others")
	for _, broken := range []string{"{", "7", `{"attempt":0,"answer":1}`, `{"attempt":1}`} {
		h := s.Header()
		h[subjects.HeaderAnswer] = []string{broken}
		_, err := wire.ParseStep(h)
		require.Error(t, err, broken)
	}

	q := &outcome.Question{
		Run: "order-42", Tenant: "acme", Generation: 17, Step: "seat", Number: 1, Kind: outcome.Ask, Tool: "book", Text: seat.Question,
		Schema: seat.Schema, Choices: json.RawMessage(`["12A","14C"]`), Attempt: 1, Digest: digest, Since: at,
	}
	qh, qb := wire.QuestionMessage(q)
	golden(t, "question_asks", qh, qb, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseQuestion(m.Header, m.Data, "seat")
		require.NoError(t, err)
		require.Equal(t, q, read)
		h, body := wire.QuestionMessage(read)
		return nats.Msg{Header: h, Data: body}
	})
}

// What nobody can be asked is a failure of the tool, and says what is wrong.
func TestWhatNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{
		`{`:                             "can't be read",
		`{}`:                            "question",
		`{"question":""}`:               "question",
		`{"question":7}`:                "can't be read",
		`{"question":"a","schema":7}`:   "schema",
		`{"question":"a","choices":[]}`: "",
		`{"question":"a","later":true}`: "",
		`{"question":"a","state":"s"}`:  "",
		`{"question":"` + strings.Repeat("a", 1<<15) + `"}`:                            "question",
		`{"question":"a","state":"` + strings.Repeat("a", wire.MaxNote) + `"}`:         "state",
		`{"question":"a","schema":{"type":"string"},"choices":[7]}`:                    "7",
		`{"question":"a","choices":["` + strings.Repeat("a", tool.MaxQuestion) + `"]}`: "bytes",
	} {
		r := wire.ParseResult(nats.Header{subjects.HeaderStatus: {subjects.StatusAsks}}, []byte(body))
		if says == "" {
			require.Nil(t, r.Error, body)
			require.Equal(t, "a", r.Asks.Question)
			continue
		}
		require.Nil(t, r.Asks, body)
		require.Equal(t, fault.ToolTerminal, r.Error.Code, body)
		require.Contains(t, r.Error.Message, says)
	}
	broken := wire.Asks{Asked: tool.Asked{Question: "a", Schema: json.RawMessage("{")}}
	require.Equal(t, fault.ToolTerminal, broken.Check().Code)
}
