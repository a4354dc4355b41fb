package kv_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
)

// requests counts what is asked of JetStream.
func requests(t *testing.T, s *kv.Store) func() int64 {
	var n atomic.Int64
	_, err := s.Conn().Subscribe("$JS.API.>", func(*nats.Msg) { n.Add(1) })
	require.NoError(t, err)
	return func() int64 {
		require.NoError(t, s.Conn().FlushTimeout(2*time.Minute))
		return n.Load()
	}
}

// What a tool costs to register, and what it costs when nothing happens, does not grow with the number of tools.
func TestManyToolsCostNoMoreThanFewEach(t *testing.T) {
	t.Parallel()
	const shards, perShard = 3, 100
	k := keepOn(t, setupOn(t, natstest.Start(t), kv.Config{}))
	asked := requests(t, k.Store)
	for i := range shards * perShard {
		register(t, k.Store, fmt.Sprintf("tool-%03d", i), 4)
	}
	began, before := time.Now(), asked()
	const more = 20
	for i := range more {
		register(t, k.Store, fmt.Sprintf("another-%d", i), 4)
	}
	listings := 2 + int64(time.Since(began)/time.Second) // of all step streams, while it went on
	require.LessOrEqual(t, asked()-before, more*10+listings*(shards+2), "%d for %d tools", asked()-before, more)

	require.Eventually(t, func() bool { // the registry's watch has told of all
		k.well()
		before = asked()
		k.well()
		return asked()-before > 0
	}, 2*time.Minute, time.Millisecond)
	before = asked()
	mended, err := k.up.Check(ctx(t), everything)
	require.NoError(t, err)
	require.Empty(t, mended)
	require.LessOrEqual(t, asked()-before, int64(4*(shards+1)+8), "an idle check of %d tools", shards*perShard+more)
	all, err := k.Registry.Tools(ctx(t))
	require.NoError(t, err)
	require.Len(t, all, shards*perShard+more)
	for _, x := range all {
		require.Less(t, x.Shard, shards+1)
	}
}
