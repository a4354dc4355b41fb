package kv_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// What the owner of a connection wants to hear of it, it hears, whatever stores there are on it and after them.
func TestTheHandlersOfAConnectionGoOnBeingCalled(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) {
		o.ConfigFile = writeFile(t, "nats.conf", `authorization {
			users: [
				{user: admin, password: a}
				{user: agent, password: b, permissions: {publish: {deny: ["plan.submit.>", "forbidden"]}}}
			]
		}
		no_auth_user: admin`)
	})
	setupOn(t, srv, kv.Config{})
	refused, closed := make(chan error, 100), make(chan struct{}, 1)
	nc := natstest.Connect(t, srv, nats.UserInfo("agent", "b"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }),
		nats.ClosedHandler(func(*nats.Conn) { closed <- struct{}{} }))
	var stores []*kv.Store
	for range 2 {
		s, err := kv.Open(ctx(t), nc)
		require.NoError(t, err)
		stores = append(stores, s)
	}
	for i, s := range stores {
		subject := s.Ledger.SubmitSubject(subjects.NewRun("acme", "x"))
		_, _, err := s.Ledger.Create(ctx(t), subject, nil, nil, nil)
		require.Equal(t, fault.Permission, fault.CodeOf(err), "each store hears of what was refused")
		require.ErrorIs(t, receive(t, refused, "word of the refusal"), nats.ErrPermissionViolation)
		require.Empty(t, refused, "once")
		s.Close()
		require.NoError(t, nc.Publish("forbidden", nil))
		require.ErrorIs(t, receive(t, refused, "a refusal that is no store's"), nats.ErrPermissionViolation, "after %d were closed", i+1)
	}
	nc.Close()
	receive(t, closed, "word of the connection's end")
}
