package kv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// members joins and returns all that it is told.
func members(t *testing.T, s *kv.Store, id string) (*kv.Membership, <-chan []kv.Member) {
	t.Helper()
	told := make(chan []kv.Member, 100)
	m, err := s.Members.Join(within(t, 2*time.Minute), id, func(all []kv.Member) { told <- all })
	require.NoError(t, err)
	t.Cleanup(m.Leave)
	return m, told
}

func awaitMembers(t *testing.T, told <-chan []kv.Member, want ...kv.Member) {
	t.Helper()
	for {
		got := receive(t, told, "members")
		if len(got) == len(want) {
			same := true
			for i := range got {
				same = same && got[i] == want[i]
			}
			if same {
				return
			}
		}
	}
}

func TestAMemberTellsWhatItServesAndThatItLeaves(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	a, _ := members(t, setupOn(t, srv, kv.Config{}), "a")
	_, told := members(t, setupOn(t, srv, kv.Config{}), "b")
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "b"})
	a.Serve(1<<63 | 5)
	awaitMembers(t, told, kv.Member{ID: "a", Serves: 1<<63 | 5}, kv.Member{ID: "b"})
	a.Retire()
	awaitMembers(t, told, kv.Member{ID: "a", Serves: 1<<63 | 5, Leaving: true}, kv.Member{ID: "b"})
	a.Leave()
	awaitMembers(t, told, kv.Member{ID: "b"})
}

// One that says nothing of what it serves takes over at once, as all did before there was anything to be said.
func TestAnOlderMemberServesAll(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	_, told := members(t, s, "a")
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	key := subjects.BucketSubject(subjects.MembersBucket, "old")
	_, err = js.PublishMsg(within(t, 2*time.Minute), &nats.Msg{Subject: key, Header: nats.Header{"Nats-TTL": {"3s"}}})
	require.NoError(t, err)
	awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: "old", Serves: ^uint64(0)})
}

// Of a process that dies the connection closes: that is known before its key expires, of several at least once.
func TestAMemberWhoseConnectionClosesIsGoneSoon(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	_, told := members(t, s, "a")
	stands := false
	for i := 0; !stands && i < 20; i++ {
		id := fmt.Sprint("b", i)
		nc, err := nats.Connect("", nats.InProcessServer(srv.InProcess()))
		require.NoError(t, err)
		dying, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
		require.NoError(t, err)
		t.Cleanup(dying.Close)
		_, err = dying.Members.Join(within(t, 2*time.Minute), id, func([]kv.Member) {})
		require.NoError(t, err)
		awaitMembers(t, told, kv.Member{ID: "a"}, kv.Member{ID: id})
		nc.Close()
		awaitMembers(t, told, kv.Member{ID: "a"})
		e, err := s.Ledger.Read(within(t, 2*time.Minute), subjects.BucketSubject(subjects.MembersBucket, id))
		stands = err == nil && len(e.Data) > 0
	}
	require.True(t, stands, "nobody was known to be gone while its key stood")
}

// A member knows the servers' time by its own key, whatever its own clock shows.
func TestAMemberKnowsWhenItsKeyWasStored(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	began := time.Now()
	a, told := members(t, setupOn(t, srv, kv.Config{}), "a")
	awaitMembers(t, told, kv.Member{ID: "a"})
	first, ago := a.Stored()
	require.WithinRange(t, first, began.Add(-time.Second), time.Now())
	require.Less(t, ago, time.Minute)
	require.Eventually(t, func() bool { // with each renewal anew
		now, _ := a.Stored()
		return now.After(first)
	}, 2*time.Minute, 10*time.Millisecond)
}
