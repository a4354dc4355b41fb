package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

func TestStopForm(t *testing.T) {
	t.Parallel()
	h, body := wire.Stop{Reason: outcome.Cancelled, By: "ann", Nonce: "Nq3vJm2r0XkT1bW8dYc5aE"}.Message()
	golden(t, "stop", h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		h, body := wire.ParseStop(m.Data).Message()
		return nats.Msg{Header: h, Data: body}
	})
	require.Equal(t, wire.Stop{Reason: outcome.Expired, By: "deadline"}, wire.ParseStop([]byte(`{"reason":"expired","by":"deadline","later":1}`)))
	require.Equal(t, outcome.Cancelled, wire.ParseStop([]byte(`not json`)).Reason, "a stop record stops, whatever it says")
}
