package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/wire"
)

func TestSayForms(t *testing.T) {
	t.Parallel()
	said := wire.Say{Content: json.RawMessage(`"With my dog."`), Mode: wire.Interrupt, By: "ann", Verified: true}
	h, body := said.Message()
	golden(t, "say", h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		h, body := wire.ParseSay(m.Data).Message()
		return nats.Msg{Header: h, Data: body}
	})
	require.Nil(t, wire.ParseSay([]byte("x")).Content)

	asks := wire.SayRequest{Agent: "trip/=0/book", ID: "m1", Say: wire.Say{Content: json.RawMessage(`[{"type":"text","text":"With my dog."}]`), Mode: wire.Interrupt, By: "ann", Verified: true}}
	body, err := asks.Body()
	require.NoError(t, err)
	golden(t, "say_request", wire.Versioned(), body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseSayRequest(&m)
		require.NoError(t, err)
		require.False(t, read.Verified, "only a server says so")
		body, err := read.Body()
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: body}
	})
	round := 2
	golden(t, "say_reply", wire.Versioned(), wire.SayReply{Run: "order-42", Agent: "trip", ID: "m1", Round: &round, Already: true}.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		var r wire.SayReply
		require.NoError(t, json.Unmarshal(m.Data, &r))
		return nats.Msg{Header: wire.Versioned(), Data: r.Body()}
	})
}

func TestWhatIsNotSaid(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]fault.Code{
		`{"agent":"a","id":"m1","content":""}`:                                             fault.InvalidValue,
		`{"agent":"a","id":"m1","content":[]}`:                                             fault.InvalidValue,
		`{"agent":"a","id":"m1","content":{"text":"x"}}`:                                   fault.InvalidValue,
		`{"agent":"a","id":"m1"}`:                                                          fault.InvalidValue,
		`{"agent":"a","id":"m 1","content":"x"}`:                                           fault.InvalidID,
		`{"agent":"","id":"m1","content":"x"}`:                                             fault.InvalidID,
		`{"agent":"a","id":"m1","content":"x","mode":"stop"}`:                              fault.InvalidValue,
		`{"agent":"a","id":"m1","content":"` + strings.Repeat("x", wire.MaxSaid) + `"}`:    fault.TooLarge,
		`{"agent":"a","id":"m1","content":"` + strings.Repeat("x", 2*wire.MaxSaid) + `"}`:  fault.TooLarge,
		`{"agent":"a","id":"m1","content":"` + strings.Repeat("x", wire.MaxSaid-64) + `"}`: "",
	} {
		_, err := wire.ParseSayRequest(&nats.Msg{Header: wire.Versioned(), Data: []byte(body)})
		require.Equal(t, code, fault.CodeOf(err), "%.80s: %v", body, err)
		if code != "" {
			require.NotEmpty(t, fault.As(err).Hint, "%.80s", body)
		}
	}
}
