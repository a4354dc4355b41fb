package natstest_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
)

func TestEachTestHasItsOwnServer(t *testing.T) {
	t.Parallel()
	a, b := natstest.Connect(t, natstest.Start(t)), natstest.Connect(t, natstest.Start(t))
	require.NotEqual(t, a.ConnectedServerId(), b.ConnectedServerId())
}

func TestAClusterReplicates(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	servers := natstest.StartCluster(t, 3)
	js, err := jetstream.New(natstest.Connect(t, servers[2]))
	require.NoError(t, err)
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3})
	require.NoError(t, err)
	require.Len(t, s.CachedInfo().Cluster.Replicas, 2)
}
