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
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

func TestAmendForms(t *testing.T) {
	t.Parallel()
	walk := json.RawMessage(`{"id":"walk","tool":"walk_dog","arguments":{"where":"$ref:weather.park"}}`)
	for name, a := range map[string]wire.Amend{
		"amend": {
			Digest: digest, By: "agent-acme/UBOT", Verified: true, Reason: "it rains",
			Change: wire.Change{
				Add: []json.RawMessage{walk}, Discard: wire.Discard{Steps: []string{"walk", "feed"}}, OutputSteps: []string{"walk"},
			},
			Tools: map[string]*wire.FrozenTool{"walk_dog": {Digest: digest, Shard: 3, AckWait: 30_000, Contract: tool.Contract{MaxAttempts: 2}}},
		},
		"amend_keep": {Digest: digest, By: "ann", Change: wire.Change{KeepOpen: true}},
		"amend_close": {Digest: digest, Change: wire.Change{
			Discard: wire.Discard{Rest: true}, Output: json.RawMessage(`{"was":"$ref:walk"}`), Close: true,
		}},
	} {
		h, body, err := a.Message()
		require.NoError(t, err)
		golden(t, name, h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
			read := wire.ParseAmend(m.Data)
			require.Equal(t, a, read)
			h, body, err := read.Message()
			require.NoError(t, err)
			return nats.Msg{Header: h, Data: body}
		})
	}
	needing := wire.Amend{
		Digest: digest, By: "ann", Change: wire.Change{Add: []json.RawMessage{walk}}, Approved: true, Needs: []string{wire.ApprovedAmendments},
	}
	h, body, err := needing.Message()
	require.NoError(t, err)
	wiretest.Golden(t, *update, "amend_approved", nats.Msg{Header: h, Data: body})
	require.Equal(t, needing, wire.ParseAmend(body))
	require.Equal(t, []string{wire.ApprovedAmendments}, wire.RecordNeeds(h, body))
	require.Nil(t, wire.RecordNeeds(wire.Versioned(), body), "of that version nobody says it")
	require.True(t, wire.KindAmend.Known(h))
	require.False(t, wire.KindStop.Known(h), "as who knew of no such amendments takes it")
	ofRound := wire.Amend{
		Digest: digest, By: "ann", Change: wire.Change{Add: []json.RawMessage{walk}}, Needs: []string{wire.AmendedRounds, wire.RoundReferences},
		Round: &wire.AmendedRound{
			Tools: map[string]string{"walk": "walk_dog"}, Own: []string{"db"}, Settled: map[string]wire.Settled{"db": {Result: json.RawMessage(`"a guide"`)}},
			Waits: map[string][]string{"walk": {"feed"}}, Earlier: map[string][]string{"r0": {"weather"}}, Direct: []string{"walk"}, Again: []string{"walk"},
			Reaches: map[string][]string{"r1": {"leash"}},
		},
	}
	h, body, err = ofRound.Message()
	require.NoError(t, err)
	wiretest.Golden(t, *update, "amend_round", nats.Msg{Header: h, Data: body})
	require.Equal(t, ofRound, wire.ParseAmend(body))
	require.Equal(t, []string{wire.AmendedRounds, wire.RoundReferences}, wire.RecordNeeds(h, body))
	edited := wire.Amend{
		Digest: digest, By: "ann", Change: wire.Change{Add: []json.RawMessage{walk}}, Approved: true, Approves: digest,
		Needs: []string{wire.ApprovedAmendments, wire.EditedApprovals},
	}
	h, body, err = edited.Message()
	require.NoError(t, err)
	wiretest.Golden(t, *update, "amend_approves", nats.Msg{Header: h, Data: body})
	require.Equal(t, edited, wire.ParseAmend(body))
	require.Equal(t, edited.Needs, wire.RecordNeeds(h, body))
	closing := wire.Amend{Digest: digest, Change: wire.Change{Close: true}, ByOwner: true, Needs: []string{wire.OwnClose}}
	h, body, err = closing.Message()
	require.NoError(t, err)
	wiretest.Golden(t, *update, "amend_by_owner", nats.Msg{Header: h, Data: body})
	require.Equal(t, closing, wire.ParseAmend(body))
	require.Equal(t, closing.Needs, wire.RecordNeeds(h, body))
	require.Equal(t, wire.Amend{}, wire.ParseAmend([]byte(`not json`)), "without a digest it changes nothing")
	require.Equal(t, wire.Amend{}, wire.ParseAmend([]byte(`{"close":true}`)))
	require.Less(t, len(wire.ParseAmend([]byte(`{"digest":"x","reason":"`+strings.Repeat("x", 10_000)+`"}`)).Reason), 4200)
	_, _, err = (&wire.Amend{Change: wire.Change{Output: json.RawMessage(`{`)}}).Message()
	require.Equal(t, fault.Internal, fault.CodeOf(err))
}

func TestAmendRequestForms(t *testing.T) {
	t.Parallel()
	r := wire.AmendRequest{
		Scope: "day=2/plan", Revision: 2, By: "bot", Reason: "it rains",
		Change: wire.Change{Add: []json.RawMessage{[]byte(`{"id":"a","value":1.0}`)}, Discard: wire.Discard{Steps: []string{"b"}}},
	}
	body, err := r.Body()
	require.NoError(t, err)
	golden(t, "amend_request", wire.Versioned(), body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseAmendRequest(&m)
		require.NoError(t, err)
		require.Equal(t, r, read)
		body, err := read.Body()
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: body}
	})
	for name, reply := range map[string]wire.AmendReply{
		"amend_reply": {Run: "order-42", Scope: "=", Revision: 3, Steps: 7, Already: true},
		"amend_reply_warnings": {Run: "order-42", Scope: "=", Revision: 3, Steps: 7, Warnings: []fault.Problem{
			{Code: fault.UnknownField, Path: "/add/0/thought", Step: "walk", Message: `"thought" is not a field of a step; it is ignored`},
		}},
		"amend_reply_waits": {Run: "order-42", Scope: "day=2/plan", Revision: 3, Steps: 7, Waits: true},
	} {
		golden(t, name, wire.Versioned(), reply.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
			var read wire.AmendReply
			require.NoError(t, json.Unmarshal(m.Data, &read))
			require.Equal(t, reply, read)
			return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
		})
	}
}

// The details of a refusal are part of its form: by them a program mends its amendment.
func TestAmendRefusals(t *testing.T) {
	t.Parallel()
	conflict := fault.New(fault.Conflict, "the scope was amended meanwhile: revision 2")
	conflict.Details, _ = json.Marshal(wire.AmendConflict{Revision: 2})
	problems := fault.New(fault.UnknownRef, `there is no step "b"`)
	problems.Details, _ = json.Marshal(wire.AmendProblems{Problems: []fault.Problem{
		{Code: fault.UnknownRef, Path: "/add/0/arguments/x", Message: `there is no step "b"`, Step: "a"},
		{Code: fault.DuplicateStep, Path: "/add/1/id", Message: `the id "c" is used already`, Step: "c"},
	}})
	stream := fault.New(fault.UnknownTool, `there is no tool "wlak_dog"; the run order-42 is cancelled, and 1 step had begun: a`)
	stream.Details, _ = json.Marshal(wire.StreamDetails{
		Run: "order-42", Status: outcome.Cancelled, Began: []string{"a"},
		Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/1/tool", Message: `there is no tool "wlak_dog"`, Step: "b", Hint: `did you mean "walk_dog"?`}},
	})
	for name, err := range map[string]*fault.Error{"amend_conflict": conflict, "amend_problems": problems, "stream_details": stream} {
		h, body := wire.Refusal(err)
		golden(t, name, h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
			read := fault.As(wire.ParseRefusal(m.Header, m.Data))
			require.Equal(t, err, read)
			h, body := wire.Refusal(read)
			return nats.Msg{Header: h, Data: body}
		})
	}
}

func TestBadAmendRequests(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]fault.Code{
		`not json`:                                 fault.InvalidValue,
		`{}`:                                       fault.InvalidValue,
		`{"add":[]}`:                               fault.InvalidValue,
		`{"revision":-1,"close":true}`:             fault.InvalidValue,
		`{"revision":1.5,"close":true}`:            fault.InvalidValue,
		`{"discard":"all"}`:                        fault.InvalidValue,
		`{"discard":{"a":1}}`:                      fault.InvalidValue,
		`{"discards":["a"]}`:                       fault.InvalidValue,
		`{"plan":{},"add":[{}]}`:                   fault.InvalidValue,
		`{"plan":{},"discard":"rest"}`:             fault.InvalidValue,
		`{"output":1,"output_steps":["a"]}`:        fault.InvalidValue,
		`{"close":true}`:                           "",
		`{"discard":"rest"}`:                       "",
		`{"plan":{"steps":[]},"close":true}`:       "",
		`{"scope":"a/b","add":[{}],"revision":12}`: "",
		strings.Repeat(" ", wire.MaxAmendment+1):   fault.TooLarge,
	} {
		r, err := wire.ParseAmendRequest(&nats.Msg{Data: []byte(body)})
		require.Equal(t, code, fault.CodeOf(err), body)
		if err == nil {
			require.NotEmpty(t, r.Scope)
		}
	}
}

func TestAmendDigest(t *testing.T) {
	t.Parallel()
	of := func(body string) string {
		r, err := wire.ParseAmendRequest(&nats.Msg{Data: []byte(body)})
		require.NoError(t, err)
		return r.Digest()
	}
	one := of(`{"revision":1,"add":[{"id":"a", "value":1}],"by":"ann"}`)
	require.Len(t, one, 64)
	require.Equal(t, one, of(`{"scope":"=","add":[{"id":"a","value":1}],"revision":1,"by":"bob","reason":"why not"}`))
	for _, other := range []string{
		`{"revision":2,"add":[{"id":"a","value":1}]}`, `{"revision":1,"add":[{"id":"a","value":2}]}`,
		`{"revision":1,"add":[{"id":"a","value":1}],"close":true}`, `{"revision":1,"scope":"b","add":[{"id":"a","value":1}]}`,
	} {
		require.NotEqual(t, one, of(other), other)
	}
}

// TestNoKeyOfAnAmendmentCountsTwice: what one reader takes for what is asked every other does.
func TestNoKeyOfAnAmendmentCountsTwice(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{
		`{"discard":["a"],"discard":"rest"}`:             `the amendment has the key "discard" twice`,
		`{"revision":1,"close":true,"revision":2}`:       `the amendment has the key "revision" twice`,
		`{"revision":"1","close":true}`:                  `"revision" of the amendment can't be string`,
		`[]`:                                             "the amendment is no JSON object, but array",
		`{"close":true,"one day":1,"one day":{"a":"b"}}`: `the amendment has the key "one day" twice`,
	} {
		_, err := wire.ParseAmendRequest(&nats.Msg{Data: []byte(body)})
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), body)
		require.Contains(t, err.Error(), says)
		require.NotEmpty(t, fault.As(err).Hint)
	}
	for _, key := range keysOf(reflect.TypeFor[wire.AmendRequest]()) {
		if key == "-" {
			continue // no request says it
		}
		_, err := wire.ParseAmendRequest(&nats.Msg{Data: fmt.Appendf(nil, `{"close":true,%q:null}`, strings.ToUpper(key))})
		require.Error(t, err, key)
		require.Contains(t, err.Error(), fmt.Sprintf("which is written %q", key))
	}
}
