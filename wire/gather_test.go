package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestGatheringForm(t *testing.T) {
	t.Parallel()
	g := wire.Gathering{ID: "h1", Worker: "w1", Free: true}
	h, body := g.Message()
	golden(t, "gathering", h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, ok := wire.ParseGathering(m.Header, m.Data)
		require.True(t, ok)
		require.Equal(t, g, read)
		h, body := read.Message()
		return nats.Msg{Header: h, Data: body}
	})
	for _, bad := range []string{"", "not json", `{"worker":"w1"}`} {
		_, ok := wire.ParseGathering(h, []byte(bad))
		require.False(t, ok, bad)
	}
	_, ok := wire.ParseGathering(nats.Header{subjects.HeaderVersion: {"2"}}, body)
	require.False(t, ok)
}
