package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestClaimForm(t *testing.T) {
	t.Parallel()
	form := func(c wire.Claim) nats.Msg {
		h, body := c.Message("w1")
		require.Equal(t, []string{"w1"}, h[subjects.HeaderWorker])
		delete(h, subjects.HeaderWorker)
		return nats.Msg{Header: h, Data: body}
	}
	m := form(wire.Claim{Nonce: "n0nce", Seq: 12})
	golden(t, "claim", m.Header, m.Data, wiretest.Ignored, func(m nats.Msg) nats.Msg { return form(wire.ParseClaim(m.Data)) })
	require.Equal(t, wire.Claim{}, wire.ParseClaim([]byte("not json")))
	require.Equal(t, wire.Claim{}, wire.ParseClaim([]byte(`{"nonce":"n","seq":"x"}`)))
}
