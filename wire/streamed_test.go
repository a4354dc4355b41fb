package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestStreamForms: how a planner is told that it may hand over steps, how it does, what it is answered, and what is recorded.
func TestStreamForms(t *testing.T) {
	t.Parallel()
	a := subjects.Attempt{Run: subjects.NewRun("acme", "order-42"), Generation: 17, Tool: "model", Step: "a/=0/=plan", Number: 2}
	s := wire.Step{Result: subjects.StepRecord(a, 1), Stream: subjects.ClaimRecord(a, 1), Key: a.Key(), Attempt: 2}
	golden(t, "step_streams", s.Header(), []byte(`{"round":0}`), wiretest.Opaque, recodeStep(t))
	require.NoError(t, s.Check(a, 1, 1<<20))
	s.Stream = subjects.StepRecord(a, 1)
	require.Error(t, s.Check(a, 1, 1<<20), "no claim is created on a subject that is another's")

	form := func(body []byte) nats.Msg { return nats.Msg{Header: wire.Versioned(), Data: body} }
	h := wire.HandOver{Nonce: "Xv3", Add: []json.RawMessage{[]byte(`{"id":"tides","tool":"search","arguments":{"q":"$ref:r0.a"}}`)}}
	body, err := h.Body()
	require.NoError(t, err)
	golden(t, "hand_over", wire.Versioned(), body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseHandOver(m.Data)
		require.NoError(t, err)
		require.Equal(t, h, read)
		body, err := read.Body()
		require.NoError(t, err)
		return form(body)
	})
	reply := wire.HandedOver{Begun: []string{"tides"}, Held: []wire.Held{{ID: "pay", Why: "its tool is hinted destructive"}}}
	golden(t, "handed_over", wire.Versioned(), reply.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, ok := wire.ParseHandedOver(m.Data)
		require.True(t, ok)
		require.Equal(t, reply, read)
		return form(read.Body())
	})
	begins := wire.Amend{
		Digest: digest, Approved: true, Change: wire.Change{Add: h.Add}, Streamed: &wire.Streamed{Attempt: 2, Nonce: "Xv3"},
		Round: &wire.AmendedRound{Tools: map[string]string{"search": "web.search"}, Earlier: map[string][]string{"r0": {"a"}}},
	}
	header, body, err := begins.Message()
	require.NoError(t, err)
	golden(t, "amend_streamed", header, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read := wire.ParseAmend(m.Data)
		require.Equal(t, begins, read)
		h, body, err := read.Message()
		require.NoError(t, err)
		return nats.Msg{Header: h, Data: body}
	})
	begun := wire.Round{
		Fragment: json.RawMessage(`{"steps":[{"id":"tides","tool":"search"}]}`), Tools: map[string]string{"search": "web.search"}, Begun: []string{"tides"},
		End: "output", Output: json.RawMessage(`"done"`),
	}
	header, body, err = begun.Message()
	require.NoError(t, err)
	golden(t, "round_begun", header, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read := wire.ParseRound(m.Data)
		require.Equal(t, begun, read)
		h, body, err := read.Message()
		require.NoError(t, err)
		return nats.Msg{Header: h, Data: body}
	})
}

// TestHostileHandOvers: who hosts a planner may say anything, and is told what is wrong with it.
func TestHostileHandOvers(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]fault.Code{
		"": fault.InvalidValue, "[]": fault.InvalidValue, `{"nonce":"x"}`: fault.InvalidValue, `{"nonce":"x","add":[]}`: fault.InvalidValue, `{"add":[{"id":"a"}]}`: fault.InvalidValue,
		`{"nonce":3,"add":[{}]}`: fault.InvalidValue, `{"nonce":"` + strings.Repeat("x", 4096) + `","add":[{}]}`: fault.InvalidValue,
		`{"nonce":"x","add":[` + strings.Repeat("1,", wire.MaxHandedOver) + `1]}`: fault.InvalidValue,
		`{"nonce":"x","add":[{}` + strings.Repeat(" ", wire.MaxAmendment) + `]}`:  fault.TooLarge,
	} {
		h, err := wire.ParseHandOver([]byte(body))
		require.Equal(t, code, fault.CodeOf(err), "%.60s", body)
		require.Zero(t, h)
	}
	_, err := wire.HandOver{Nonce: "x", Add: []json.RawMessage{[]byte("{")}}.Body()
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	_, ok := wire.ParseHandedOver([]byte("yes"))
	require.False(t, ok)
}

// TestWhatNeedsStreamedPlans: an agent that says so, and no other.
func TestWhatNeedsStreamedPlans(t *testing.T) {
	t.Parallel()
	require.Contains(t, wire.NeedsOfAgent([]byte(`{"stream_plan":true}`)), wire.StreamedPlans)
	for _, not := range []string{`{}`, `{"stream_plan":false}`, `{"stream_plan":null}`} {
		require.NotContains(t, wire.NeedsOfAgent([]byte(not)), wire.StreamedPlans, not)
	}
}
