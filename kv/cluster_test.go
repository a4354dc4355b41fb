package kv_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func TestALeaderThatDiesLosesNothing(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3)
	byName := map[string]*embedded.Server{}
	for _, srv := range servers {
		byName[natstest.Connect(t, srv).ConnectedServerName()] = srv
	}
	first := setupOn(t, servers[0], kv.Config{Replicas: 3})
	js, err := jetstream.New(first.Conn())
	require.NoError(t, err)
	ledger, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	leader := ledger.CachedInfo().Cluster.Leader
	require.Contains(t, byName, leader)
	var s *kv.Store // on a server that survives
	for name, srv := range byName {
		if name != leader {
			s = setupOn(t, srv, kv.Config{Replicas: 3})
			break
		}
	}
	r := newReader()
	r.open(t, s, allPartitions())
	receive(t, r.caughtUp, "caughtUp")

	const n = 1500
	var decided atomic.Int64
	done := make(chan struct{})
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for decided.Load() < n/10 {
			time.Sleep(time.Millisecond)
		}
		byName[leader].Shutdown()
	}()
	for i := range n {
		a.Step = fmt.Sprint(i)
		s.Ledger.CreateAsync(within(t, 90*time.Second), subjects.StepRecord(a, 1), nil, fmt.Append(nil, i), nil, func(d kv.Decision, _ uint64, err error) {
			if d != kv.Written || err != nil {
				t.Errorf("%v %v", d, err)
			}
			if decided.Add(1) == n {
				close(done)
			}
		})
		for s.Inflight() > 100 {
			time.Sleep(time.Millisecond)
		}
	}
	<-killed
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "not all were decided", "%d", decided.Load())
	}
	require.Error(t, receive(t, r.lost, "lost, for the leader is another"))

	again := newReader()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err = s.Ledger.Follow(ctx, 0, allPartitions(), kv.Since{}, again.each, again.caught, nil)
	require.NoError(t, err)
	receive(t, again.caughtUp, "caughtUp under the new leader")
	require.Equal(t, n, again.atCaught)
	seen := map[string]bool{}
	for _, body := range again.bodies {
		require.False(t, seen[body], "written twice")
		seen[body] = true
	}
}

func TestStreamsAreMadeInTheClusterThatIsNamed(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3) // whose name is "test"
	s := setupOn(t, servers[0], kv.Config{Replicas: 3, Cluster: "test"})
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	names := 0
	streams := js.ListStreams(within(t, time.Minute))
	for info := range streams.Info() {
		require.NotNil(t, info.Config.Placement, info.Config.Name)
		require.Equal(t, "test", info.Config.Placement.Cluster, info.Config.Name)
		names++
	}
	require.NoError(t, streams.Err())
	require.Greater(t, names, 5)

	other, err := kv.Setup(within(t, time.Minute), natstest.Connect(t, natstest.StartCluster(t, 3)[0]), kv.Config{Replicas: 3, Cluster: "elsewhere"})
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "%#v", err)
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Contains(t, f.Hint, "--nats-cluster")
	require.Nil(t, other)
}
