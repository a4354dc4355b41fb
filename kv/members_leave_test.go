package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A member that leaves while a renewal of its key is on its way tells so all the same.
func TestAMemberLeavesBesideItsRenewal(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	nc := natstest.Connect(t, natstest.Start(t))
	s, err := kv.Setup(ctx, nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	told, leave := join(t, s, "m")
	until(t, told, "m")
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	key := subjects.BucketSubject(subjects.MembersBucket, "m")
	_, err = js.PublishMsg(ctx, &nats.Msg{Subject: key, Header: nats.Header{"Nats-TTL": {"3s"}}}) // its answer reached nobody
	require.NoError(t, err)
	leave()
	e, err := s.Ledger.Read(ctx, key)
	require.NoError(t, err)
	require.Equal(t, "DEL", e.Header.Get("KV-Operation"))
}
