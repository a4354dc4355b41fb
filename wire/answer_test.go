package wire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

var digest = strings.Repeat("0af7", 16)

func TestAnswerForms(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]wire.Answer{
		"answer": {Digest: digest, Decision: wire.Reject, Reason: "over the budget", By: "ann"},
		"answer_approve": {Digest: digest, Decision: wire.Approve, Arguments: json.RawMessage(`{"amount":40.0}`),
			By: "approver-acme/UANN", Verified: true},
		"answer_value":  {Digest: digest, Value: json.RawMessage(`null`), By: "ann"},
		"answer_expire": {Digest: digest, Decision: wire.Expire},
		"answer_error":  {Digest: digest, Error: fault.New(fault.UnresolvedRef, "$ref:a.b: there is no b").WithHint("refer to what is there")},
	} {
		h, body := a.Message()
		golden(t, name, h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
			read := wire.ParseAnswer(m.Data)
			require.Equal(t, a, read)
			h, body := read.Message()
			return nats.Msg{Header: h, Data: body}
		})
	}
	require.Equal(t, wire.Answer{}, wire.ParseAnswer([]byte(`not json`)), "without a digest it is void")
	require.Less(t, len(wire.ParseAnswer([]byte(`{"reason":"`+strings.Repeat("x", 10_000)+`"}`)).Reason), 4200)
	_, body := wire.Answer{Digest: digest, Value: json.RawMessage(`{`)}.Message()
	require.Empty(t, wire.ParseAnswer(body).Digest)
}

func TestSameAnswers(t *testing.T) {
	t.Parallel()
	a := wire.Answer{Digest: digest, Decision: wire.Approve, Arguments: json.RawMessage(`{"amount": 40}`), By: "ann"}
	b := a
	b.By, b.Arguments = "bob", json.RawMessage(`{"amount":40}`)
	require.True(t, a.Same(b))
	b.Arguments = json.RawMessage(`{"amount":41}`)
	require.False(t, a.Same(b))
	b = a
	b.Digest = "other"
	require.False(t, a.Same(b))
}

func TestAnswerRequestForms(t *testing.T) {
	t.Parallel()
	r := wire.AnswerRequest{Step: "pay", Answer: wire.Answer{Digest: digest, Decision: wire.Approve, Arguments: json.RawMessage(`{"amount":40}`), By: "ann"}}
	body, err := r.Body()
	require.NoError(t, err)
	golden(t, "answer_request", wire.Versioned(), body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseAnswerRequest(&m)
		require.NoError(t, err)
		require.Equal(t, r, read)
		body, err := read.Body()
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: body}
	})
	reply := wire.AnswerReply{Run: "order-42", Step: "pay", Already: true,
		Answered: outcome.Answered{Decision: outcome.DecisionApproved, By: "ann", Arguments: json.RawMessage(`{"amount":40}`), At: at}}
	golden(t, "answer_reply", wire.Versioned(), reply.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		var read wire.AnswerReply
		require.NoError(t, json.Unmarshal(m.Data, &read))
		require.Equal(t, reply, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
	for body, code := range map[string]fault.Code{
		`not json`:                                                           fault.InvalidValue,
		`{"digest":"x","decision":"approve"}`:                                fault.InvalidValue,
		`{"step":"a","decision":"approve"}`:                                  fault.InvalidValue,
		`{"step":"a","digest":"x"}`:                                          fault.InvalidValue,
		`{"step":"a","digest":"x","decision":"approve","value":1}`:           fault.InvalidValue,
		`{"step":"a","digest":"x","decision":"expire"}`:                      fault.InvalidValue,
		`{"step":"a","digest":"x","decision":"reject","arguments":{}}`:       fault.InvalidValue,
		`{"step":"a","digest":"x","value":1,"arguments":{}}`:                 fault.InvalidValue,
		`{"step":"a","digest":"x","decision":"reject","decision":"approve"}`: fault.InvalidValue,
		`{"step":"a","digest":"x","Decision":"approve"}`:                     fault.InvalidValue,
		`{"step":["a"],"digest":"x","decision":"approve"}`:                   fault.InvalidValue,
		`["a"]`: fault.InvalidValue,
		`null`:  fault.InvalidValue,
		`{"step":"` + strings.Repeat("a", wire.InlineLimit) + `"}`: fault.TooLarge,
	} {
		_, err := wire.ParseAnswerRequest(&nats.Msg{Data: []byte(body)})
		require.Equal(t, code, fault.CodeOf(err), body[:min(80, len(body))])
		require.NotEmpty(t, fault.As(err).Hint)
		require.NotContains(t, err.Error(), "Go ", "in the words of whoever reads it")
	}
	for _, key := range keysOf(reflect.TypeFor[wire.AnswerRequest]()) {
		_, err := wire.ParseAnswerRequest(&nats.Msg{Data: fmt.Appendf(nil, `{"step":"a","digest":"x","decision":"approve",%q:null}`, strings.ToUpper(key))})
		require.Error(t, err, key)
		require.Contains(t, err.Error(), fmt.Sprintf("which is written %q", key))
	}
	newer := `{"step":"a","digest":"x","decision":"approve","one day":{"a":1,"a":2}}`
	_, err = wire.ParseAnswerRequest(&nats.Msg{Data: []byte(newer)})
	require.NoError(t, err, "what a newer client says besides")
}

// TestOnlyTheServerVerifiesWhoAnswers: what a request says of itself is not believed, whatever header it has.
func TestOnlyTheServerVerifiesWhoAnswers(t *testing.T) {
	t.Parallel()
	body := []byte(`{"step":"a","digest":"x","decision":"approve","by":"ann","verified":true}`)
	info := nats.Header{"Nats-Request-Info": {`{"acc":"approver-acme","user":"UBOB"}`}}
	ask := func(reply string, h nats.Header) wire.AnswerRequest {
		r, err := wire.ParseAnswerRequest(&nats.Msg{Reply: reply, Header: h, Data: body})
		require.NoError(t, err)
		return r
	}
	forged := ask("_INBOX.x", info)
	require.Equal(t, "ann", forged.By)
	require.False(t, forged.Verified)
	quiet := ask("_R_.x", nats.Header{"Nats-Request-Info": {`{"acc":"approver-acme"}`}})
	require.Equal(t, "ann", quiet.By, "the import does not share who asks")
	require.False(t, quiet.Verified)
	told := ask("_R_.x", info)
	require.Equal(t, "approver-acme/UBOB", told.By)
	require.True(t, told.Verified)
}

func TestQuestionForms(t *testing.T) {
	t.Parallel()
	until := at.Add(24 * 3600e9)
	for name, q := range map[string]*outcome.Question{
		"question": {Run: "order-42", Tenant: "acme", Generation: 17, Step: "pay=3", Number: 2, Kind: outcome.Approval, Tool: "pay",
			Text: "Refund 40 €?", Arguments: json.RawMessage(`{"amount":40.0}`), Digest: digest, Since: at, Until: &until, OnTimeout: wire.Reject},
		"question_plan": {Run: "order-42", Tenant: "acme", Generation: 17, Step: "=", Number: 1, Kind: outcome.Approval, Digest: digest, Since: at},
	} {
		h, body := wire.QuestionMessage(q)
		golden(t, name, h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
			read, err := wire.ParseQuestion(m.Header, m.Data, name)
			require.NoError(t, err)
			require.Equal(t, q, read)
			h, body := wire.QuestionMessage(read)
			return nats.Msg{Header: h, Data: body}
		})
	}
	amendment := &outcome.Question{Run: "order-42", Tenant: "acme", Generation: 17, Step: "=", Number: 3, Kind: outcome.Approval, Text: "May this run?",
		Revision: 2, Change: json.RawMessage(`{"add":[{"id":"walk","tool":"walk_dog"}]}`), By: "agent-acme/UBOT", Verified: true, Reason: "it rains",
		Digest: digest, Since: at,
	}
	h, body := wire.QuestionMessage(amendment)
	wiretest.Golden(t, *update, "question_amendment", nats.Msg{Header: h, Data: body})
	read, err := wire.ParseQuestion(h, body, "a")
	require.NoError(t, err)
	require.Equal(t, amendment, read)
	n := 3
	round := &outcome.Question{Run: "order-42", Tenant: "acme", Generation: 17, Step: "a", Number: 4, Kind: outcome.Approval, Tool: "researcher",
		Text: "May it pay?", Round: &n, Plan: json.RawMessage(`{"steps":[{"id":"pay","tool":"pay","arguments":{"amount":40.0}}]}`), Digest: digest, Since: at,
	}
	h, body = wire.QuestionMessage(round)
	wiretest.Golden(t, *update, "question_round", nats.Msg{Header: h, Data: body})
	read, err = wire.ParseQuestion(h, body, "a")
	require.NoError(t, err)
	require.Equal(t, round, read)
	guarded := &outcome.Question{Run: "order-42", Tenant: "acme", Generation: 17, Step: "a/=1/pay", Number: 1, Kind: outcome.Approval, Tool: "pay",
		Text: "More than 100 at once?", Guard: "call", Arguments: json.RawMessage(`{"amount":140.0}`), Digest: digest, Since: at,
	}
	h, body = wire.QuestionMessage(guarded)
	wiretest.Golden(t, *update, "question_guard", nats.Msg{Header: h, Data: body})
	read, err = wire.ParseQuestion(h, body, "a/=1/pay")
	require.NoError(t, err)
	require.Equal(t, guarded, read)
	h, _ = wire.QuestionMessage(round)
	require.False(t, wire.KindGathering.Known(h), "who knew of no amendments that wait would ask about something else")
	_, err = wire.ParseQuestion(nats.Header{"Stepjet-Version": {"9"}}, nil, "a")
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
	_, err = wire.ParseQuestion(nil, []byte("x"), "a")
	require.Equal(t, fault.Internal, fault.CodeOf(err))
	e := wire.QuestionEvent{Run: "order-42", Step: "pay=3", Number: 2, Kind: outcome.Approval, Text: "Refund 40 €?", Digest: digest, Time: at, Until: &until}
	event(t, "question_event", e, wire.QuestionEvent.Body)
}

// Who asks is the server's word alone: of a request that came through an import, which may not hide it behind a header.
func TestRequester(t *testing.T) {
	t.Parallel()
	const info = `{"acc":"approver-acme","user":"UANN","start":"2026-01-02T03:04:05Z"}`
	with := func(reply string, h nats.Header) (string, error) {
		return wire.Requester(&nats.Msg{Subject: "api.0.approve.acme.r", Reply: reply, Header: h, Data: []byte("{}")})
	}
	said := nats.Header{"Nats-Request-Info": {info}}
	for _, c := range []struct {
		reply  string
		header nats.Header
		who    string
		code   fault.Code
	}{
		{"_R_.abc.def", said, "approver-acme/UANN", ""},
		{"_R_.abc.def", nats.Header{"Nats-Request-Info": {info}, "Stepjet-Version": {"1"}}, "approver-acme/UANN", ""},
		{"_INBOX.x", said, "", ""},
		{"_INBOX.x", nats.Header{"Nats-Request-Info": {info}, "X": {"y"}}, "", ""},
		{"_R_.abc.def", nil, "", ""},
		{"_R_.abc.def", nats.Header{"Stepjet-Version": {"1"}}, "", ""},
		{"_R_.abc.def", nats.Header{"Nats-Request-Info": {`{"acc":"approver-acme"}`}}, "", ""},
		{"_R_.abc.def", nats.Header{"Nats-Request-Info": {info, info}}, "", fault.Permission},
		{"_R_.abc.def", nats.Header{"Nats-Request-Info": {info}, "X": {"y"}}, "", fault.Permission},
		{"_R_.abc.def", nats.Header{"nats-request-info": {info}}, "", fault.Permission},
		{"_R_.abc.def", nats.Header{"Nats-Request-Info": {info}, "Stepjet-Version": {"1", "1"}}, "", fault.Permission},
		{"_R_.abc.def", nats.Header{"X": {"y"}}, "", fault.Permission},
	} {
		who, err := with(c.reply, c.header)
		require.Equal(t, c.who, who, "%s %v", c.reply, c.header)
		require.Equal(t, c.code, fault.CodeOf(err), "%s %v", c.reply, c.header)
	}
}

// keysOf returns the members that a struct has in JSON, with those of what it embeds.
func keysOf(of reflect.Type) (keys []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			keys = append(keys, keysOf(f.Type)...)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return keys
}
