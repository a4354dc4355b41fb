package kv_test

import (
	"context"
	"fmt"
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

// follow reads all partitions until the test ends, and returns when it has read what is there.
func follow(t *testing.T, s *kv.Store) (kv.Following, *reader) {
	t.Helper()
	r := newReader()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	f, err := s.Ledger.Follow(ctx, 0, allPartitions(), kv.Since{}, r.each, r.caught, func(err error) { r.lost <- err })
	require.NoError(t, err)
	receive(t, r.caughtUp, "caughtUp")
	return f, r
}

// What is not kept doesn't come any more, and of the rest nothing is missing or comes twice, whenever the change is
// made.
func TestAFollowerKeepsSomePartitionsOnly(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	f, r := follow(t, s)
	kept := []int{}
	for p := range subjects.Partitions {
		if p%3 == 0 {
			kept = append(kept, p)
		}
	}
	var want []uint64
	write := func(from, to int) {
		for i := from; i < to; i++ {
			run := subjects.NewRun("t", fmt.Sprint(i))
			if g := submit(t, s, run, "{}"); run.Partition()%3 == 0 {
				want = append(want, g)
			}
		}
	}
	write(0, 100)
	f.Keep(kept)
	write(100, 400) // while the change is made
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var filters []int
		for c := range stream.ListConsumers(within(t, 2*time.Minute)).Info() {
			filters = append(filters, len(c.Config.FilterSubjects))
		}
		return len(filters) == 1 && filters[0] == len(kept)
	}, 2*time.Minute, 10*time.Millisecond, "one consumer, of what is kept")
	write(400, 500)
	last, err := s.Ledger.LastSequence(within(t, 2*time.Minute), 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.Position() >= last }, 2*time.Minute, time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []uint64
	for i, seq := range r.seqs {
		require.True(t, i == 0 || seq > r.seqs[i-1], "in order, and none twice")
		if run, ok := runOf(t, s, seq); ok && run.Partition()%3 == 0 {
			got = append(got, seq)
		} else {
			require.Less(t, seq, last-99, "of what is not kept nothing comes once the change is made")
		}
	}
	require.Equal(t, want, got)
	require.Empty(t, r.lost)
}

func runOf(t *testing.T, s *kv.Store, seq uint64) (subjects.Run, bool) {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	m, err := stream.GetMsg(within(t, 2*time.Minute), seq)
	require.NoError(t, err)
	rec, ok := subjects.ParseRecord(m.Subject)
	return rec.Run, ok
}

// A server that lost the end of its file in a power cut gives sequences once more. What was known of them before,
// however late it is made use of, removes nothing.
func TestAPurgeHoldsForOneLifeOfTheLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := func(o *embedded.Options) { o.Dir, o.Listen = dir, "127.0.0.1:0" }
	srv := natstest.Start(t, options)
	s := setupOn(t, srv, kv.Config{})
	f, r := follow(t, s)
	for i := range 5 {
		submit(t, s, subjects.NewRun("t", fmt.Sprint(i)), "{}")
	}
	life := f.Life()
	require.NoError(t, s.Ledger.PurgeUpTo(within(t, 2*time.Minute), 0, 3, life))
	count := func() int {
		left, err := s.Ledger.Stored(within(t, 2*time.Minute), 0, subjects.LedgerFilter(0))
		require.NoError(t, err)
		return len(left)
	}
	require.Equal(t, 3, count())

	url := srv.URL()
	srv.Shutdown()
	natstest.Start(t, options, func(o *embedded.Options) { o.Listen = url[len("nats://"):] })
	receive(t, r.lost, "the cursor's loss")
	err := s.Ledger.PurgeUpTo(within(t, 2*time.Minute), 0, 5, life)
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "%v", err)
	require.Equal(t, 3, count())
	again, _ := follow(t, s)
	require.NotEqual(t, life, again.Life())
	require.NoError(t, s.Ledger.PurgeUpTo(within(t, 2*time.Minute), 0, 5, again.Life()))
	require.Equal(t, 1, count())
}

// The programs' own connections are made otherwise than those of most tests. A purge goes out over one of its own and
// leaves them alone.
func TestAPurgeLeavesTheProgramsConnectionAlone(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	for name, o := range map[string]kv.ConnectOptions{"over TCP": {URL: srv.URL()}, "in process": {InProcess: srv.InProcess()}} {
		nc, err := kv.Connect(within(t, 2*time.Minute), o)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		f, r := follow(t, s)
		for range 3 {
			require.NoError(t, s.Ledger.PurgeUpTo(within(t, 2*time.Minute), 0, 1, f.Life()), name)
			require.NoError(t, nc.Flush(), name)
		}
		require.Zero(t, nc.Stats().Reconnects, name)
		require.Empty(t, r.lost, name)
	}
}

// A ledger that somebody deleted and made again counts from 1.
func TestALedgerMadeAgainHasALifeOfItsOwn(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	f, _ := follow(t, s)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(within(t, 2*time.Minute), subjects.LedgerStream(0)))
	other := setupOn(t, srv, kv.Config{}) // makes it again
	for i := range 3 {
		submit(t, other, subjects.NewRun("t", fmt.Sprint(i)), "{}")
	}
	require.Equal(t, fault.NotReady, fault.CodeOf(s.Ledger.PurgeUpTo(within(t, 2*time.Minute), 0, 100, f.Life())))
	left, err := other.Ledger.Stored(within(t, 2*time.Minute), 0, subjects.LedgerFilter(0))
	require.NoError(t, err)
	require.Len(t, left, 3)
}

func TestMembersHearEachOthersMarks(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	a, _ := members(t, setupOn(t, srv, kv.Config{}), "a")
	b, _ := members(t, setupOn(t, srv, kv.Config{}), "b")
	marks := []kv.Mark{{Shard: 0, Life: "x", Partitions: 1<<63 | 5, Below: 1 << 40, Over: 1 << 41}}
	a.Mark(marks)
	require.Eventually(t, func() bool { return len(b.Marks()) == 1 }, 2*time.Minute, 10*time.Millisecond)
	require.Equal(t, marks, b.Marks())
	require.Empty(t, a.Marks(), "nobody hears himself")
	a.Leave()
	c, heard := members(t, setupOn(t, srv, kv.Config{}), "c")
	receive(t, heard, "the members")
	require.Empty(t, c.Marks(), "one that comes later hears of those that live")
	require.Equal(t, marks, b.Marks(), "what one that is gone has told stays true")
}

// What lies there is read to its end though more comes all the time: what was left out is not waited for.
func TestAReadingFromAMarkEndsUnderTraffic(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	f, _ := follow(t, s)
	for i := range 50 {
		submit(t, s, subjects.NewRun("t", fmt.Sprint(i)), "{}")
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_, _, _ = s.Ledger.Create(t.Context(), s.Ledger.SubmitSubject(subjects.NewRun("t", fmt.Sprint("more", i))), nil, []byte("{}"), nil)
			}
		}
	}()
	r := newReader()
	_, err := s.Ledger.Follow(t.Context(), 0, allPartitions(), kv.Since{Life: f.Life(), Seq: 41}, r.each, r.caught, nil)
	require.NoError(t, err)
	select {
	case <-r.caughtUp:
	case <-time.After(20 * time.Second):
		t.Error("it waits for what was left out")
	}
	close(stop)
	<-stopped
}

// Who takes partitions over begins to read at a mark. In another life of the ledger, whose sequences are other records',
// all is read.
func TestAReadingBeginsAtAMarkInItsLifeAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := func(o *embedded.Options) { o.Dir, o.Listen = dir, "127.0.0.1:0" }
	srv := natstest.Start(t, options)
	s := setupOn(t, srv, kv.Config{})
	f, _ := follow(t, s)
	for i := range 50 {
		submit(t, s, subjects.NewRun("t", fmt.Sprint(i)), "{}")
	}
	since := kv.Since{Life: f.Life(), Seq: 41}
	read := func(s *kv.Store, since kv.Since) *reader {
		r := newReader()
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		_, err := s.Ledger.Follow(ctx, 0, allPartitions(), since, r.each, r.caught, func(err error) { r.lost <- err })
		require.NoError(t, err)
		require.EqualValues(t, 50, receive(t, r.caughtUp, "caughtUp"))
		return r
	}
	r := read(s, since)
	require.Equal(t, 10, r.atCaught)
	require.EqualValues(t, 41, r.seqs[0])
	require.Zero(t, read(s, kv.Since{Life: since.Life, Seq: 51}).atCaught, "all was over")
	require.EqualValues(t, 51, submit(t, s, subjects.NewRun("t", "next"), "{}"))
	require.Eventually(t, func() bool { return r.count() == 11 }, 2*time.Minute, time.Millisecond)

	srv.Shutdown()
	other := natstest.Start(t, options)
	require.Equal(t, 51, func() int {
		r := newReader()
		_, err := setupOn(t, other, kv.Config{}).Ledger.Follow(t.Context(), 0, allPartitions(), since, r.each, r.caught, nil)
		require.NoError(t, err)
		receive(t, r.caughtUp, "caughtUp")
		return r.atCaught
	}())
}
