package wire_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/wire"
)

func TestTokenForms(t *testing.T) {
	t.Parallel()
	form := func(x wire.Token) nats.Msg { return nats.Msg{Header: wire.Versioned(), Data: x.Body()} }
	x := wire.Token{At: 120, Text: "{\"steps\":[\n"}
	m := form(x)
	golden(t, "token", m.Header, m.Data, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, ok := wire.ParseToken(m.Data)
		require.True(t, ok)
		require.Equal(t, x, read)
		return form(read)
	})
	event(t, "token_event", wire.TokenEvent{Run: "order-42", Step: "a/=0/=plan", Tool: "model", Attempt: 1, Token: x}, wire.TokenEvent.Body)
	reply := func(r wire.TokenReply) nats.Msg { return nats.Msg{Header: wire.Versioned(), Data: r.Body()} }
	m = reply(wire.TokenReply{Heard: true})
	golden(t, "token_reply", m.Header, m.Data, wiretest.Ignored, func(m nats.Msg) nats.Msg { return reply(wire.ParseTokenReply(m.Data)) })
}

// Who hosts a tool may tell anything.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "[]", `{"text":3}`, `{"text":""}`, `{"at":-1,"text":"x"}`, `{"at":1e300,"text":"x"}`, `{"text":"` + strings.Repeat("x", wire.MaxToken+1) + `"}`, strings.Repeat(" ", 1<<16) + `{"text":"x"}`} {
		_, ok := wire.ParseToken([]byte(body))
		require.False(t, ok, "%.40s", body)
	}
	x, ok := wire.ParseToken([]byte("{\"text\":\"\\u001b[2J<img>\\u202e\\u0000a\\n\\tb\xff\"}"))
	require.True(t, ok)
	require.Equal(t, "_[2J<img>__a\n\tb_", x.Text)
	require.False(t, wire.ParseTokenReply([]byte("yes")).Heard)
}
