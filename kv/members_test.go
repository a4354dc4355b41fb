package kv_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
)

// join returns the lists that a member is told, one after the other.
func join(t *testing.T, s *kv.Store, id string) (told <-chan []string, leave func()) {
	t.Helper()
	lists := make(chan []string, 100)
	m, err := s.Members.Join(within(t, 2*time.Minute), id, func(members []kv.Member) {
		var ids []string
		for _, x := range members {
			ids = append(ids, x.ID)
		}
		lists <- ids
	})
	require.NoError(t, err)
	return lists, m.Leave
}

// until waits for a list, whatever others come before.
func until(t *testing.T, told <-chan []string, want ...string) {
	t.Helper()
	for !slices.Equal(receive(t, told, "members"), want) {
	}
}

func TestMembersComeAndLeave(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	a, b := setupOn(t, srv, kv.Config{}), setupOn(t, srv, kv.Config{})
	toldA, leaveA := join(t, a, "a")
	require.Equal(t, []string{"a"}, receive(t, toldA, "the own name"))
	toldB, leaveB := join(t, b, "b")
	until(t, toldB, "a", "b")
	until(t, toldA, "a", "b")
	fastest := time.Hour
	for range 5 {
		began := time.Now()
		leaveB()
		leaveB() // does nothing
		until(t, toldA, "a")
		fastest = min(fastest, time.Since(began))
		_, leaveB = join(t, b, "b") // the same name again
		until(t, toldA, "a", "b")
	}
	require.Less(t, fastest, 2*time.Second, "who leaves is gone at once")
	leaveB()
	leaveA()

	toldB, leaveB = join(t, b, "b") // and once more
	until(t, toldB, "b")
	leaveB()
	js, err := jetstream.New(a.Conn())
	require.NoError(t, err)
	bucket, err := js.Stream(within(t, 2*time.Minute), "KV_members")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := bucket.Info(within(t, 2*time.Minute))
		return err == nil && info.State.Msgs == 0
	}, 2*time.Minute, 50*time.Millisecond, "nothing stays behind of members that left")
}

func TestAMemberThatDiesIsGoneSoon(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	a, b := setupOn(t, srv, kv.Config{}), setupOn(t, srv, kv.Config{})
	told, leave := join(t, a, "a")
	defer leave()
	join(t, b, "b")
	until(t, told, "a", "b")
	began := time.Now()
	b.Close() // without leaving, as if it had been killed
	until(t, told, "a")
	require.Less(t, time.Since(began), time.Minute)
	require.Greater(t, time.Since(began), 900*time.Millisecond, "who connects to another server is not listening for a moment")
}

func TestMembersOutliveTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *embedded.Server {
		srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen})
		require.NoError(t, err)
		t.Cleanup(srv.Shutdown)
		return srv
	}
	srv := start("127.0.0.1:0")
	a, b := setupOn(t, srv, kv.Config{}), setupOn(t, srv, kv.Config{})
	told, leave := join(t, a, "a")
	defer leave()
	_, leaveB := join(t, b, "b")
	until(t, told, "a", "b")
	srv.Shutdown()
	c := setupOn(t, start(srv.URL()[len("nats://"):]), kv.Config{})
	_, leaveC := join(t, c, "c")
	until(t, told, "a", "b", "c")
	leaveB()
	until(t, told, "a", "c")
	leaveC()
	until(t, told, "a")
}
