package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestRefusalForm(t *testing.T) {
	t.Parallel()
	h, body := wire.Refusal(fault.New(fault.InvalidTool, "no name").WithHint("give it one"))
	golden(t, "refusal", h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		h, body := wire.Refusal(wire.ParseRefusal(m.Header, m.Data))
		return nats.Msg{Header: h, Data: body}
	})
	require.NoError(t, wire.ParseRefusal(wire.Versioned(), []byte(`{}`)))
	require.Equal(t, fault.Internal, fault.CodeOf(wire.ParseRefusal(h, []byte("{"))))
}

func TestCancelForm(t *testing.T) {
	t.Parallel()
	golden(t, "request", wire.Versioned(), wire.Cancel{By: "ann"}.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		return nats.Msg{Header: wire.Versioned(), Data: wire.ParseCancel(m.Data).Body()}
	})
	require.Equal(t, `{"run":"order-42","status":"cancelled"}`, string(wire.Cancelled{Run: "order-42", Status: outcome.Cancelled}.Body()))
	stood := wire.Cancelled{Run: "order-42", Status: outcome.Expired, By: "deadline", Already: true}
	require.Equal(t, `{"run":"order-42","status":"expired","by":"deadline","already":true}`, string(stood.Body()))
	require.Equal(t, wire.Cancel{}, wire.ParseCancel(nil))
	require.Equal(t, wire.Cancel{}, wire.ParseCancel([]byte(`{"by":7}`)))
}

func TestRegistrationForm(t *testing.T) {
	t.Parallel()
	r := wire.Registration{Worker: "w1", Keys: []string{"0af7", "1bc8"}}
	wiretest.Golden(t, *update, "registration", nats.Msg{Header: r.Header()})
	back, ok := wire.ParseRegistration(wiretest.Load(t, "registration").Header)
	require.True(t, ok)
	require.Equal(t, r, back)
	none := wire.Registration{Worker: "w1"}
	require.Equal(t, []string{"none"}, none.Header()[subjects.HeaderKeys])
	back, ok = wire.ParseRegistration(none.Header())
	require.True(t, ok)
	require.Equal(t, none, back)
	for _, h := range []nats.Header{nil, {subjects.HeaderWorker: {"w1"}}, {subjects.HeaderKeys: {"none"}}} {
		_, ok = wire.ParseRegistration(h)
		require.False(t, ok)
	}
}
