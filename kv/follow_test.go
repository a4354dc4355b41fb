package kv_test

import (
	"context"
	"fmt"
	"sync"
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

// reader collects what a cursor hands on.
type reader struct {
	mu       sync.Mutex
	seqs     []uint64
	bodies   []string
	caughtUp chan uint64
	atCaught int // how many entries had come when it was caught up
	lost     chan error
}

func newReader() *reader { return &reader{caughtUp: make(chan uint64, 9), lost: make(chan error, 9)} }

func (r *reader) each(e kv.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seqs = append(r.seqs, e.Seq)
	r.bodies = append(r.bodies, string(e.Data))
}

func (r *reader) caught(last uint64) {
	r.mu.Lock()
	r.atCaught = len(r.seqs)
	r.mu.Unlock()
	r.caughtUp <- last
}

func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seqs)
}

func (r *reader) open(t *testing.T, s *kv.Store, partitions []int) *kv.Cursor {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c, err := s.Ledger.OpenCursor(ctx, 0, partitions, r.each, r.caught, func(err error) { r.lost <- err })
	require.NoError(t, err)
	return c
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(2 * time.Minute):
		require.Fail(t, "never came: "+what)
		panic("unreachable")
	}
}

func allPartitions() []int {
	var all []int
	for p := range subjects.Partitions {
		all = append(all, p)
	}
	return all
}

func TestFollowGivesTheSnapshotThenWhatComes(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	for i := range 50 {
		submit(t, s, subjects.NewRun("t", fmt.Sprint(i)), fmt.Sprint(i))
	}
	r := newReader()
	r.open(t, s, allPartitions())
	require.EqualValues(t, 50, receive(t, r.caughtUp, "caughtUp"))
	require.Equal(t, 50, r.atCaught)
	for i := range 50 {
		submit(t, s, subjects.NewRun("t", fmt.Sprint("live", i)), fmt.Sprint(50+i))
	}
	require.Eventually(t, func() bool { return r.count() == 100 }, 2*time.Minute, time.Millisecond)
	for i := range 100 {
		require.EqualValues(t, i+1, r.seqs[i])
		require.Equal(t, fmt.Sprint(i), r.bodies[i])
	}
	require.Empty(t, r.caughtUp)
	require.Empty(t, r.lost)
}

func TestAnEmptySnapshotIsCaughtUpAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	empty := newReader()
	empty.open(t, s, allPartitions())
	require.Zero(t, receive(t, empty.caughtUp, "caughtUp of an empty ledger"))

	run := subjects.NewRun("t", "x")
	g := submit(t, s, run, "{}")
	other := newReader() // records exist, but none in this partition
	other.open(t, s, []int{(run.Partition() + 1) % subjects.Partitions})
	require.Equal(t, g, receive(t, other.caughtUp, "caughtUp without a record of its own"))
	require.Zero(t, other.count())
}

func TestFollowReadsItsOwnPartitionsOnly(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	run := subjects.NewRun("t", "x")
	own := newReader()
	cursor := own.open(t, s, []int{run.Partition(), run.Partition()})
	receive(t, own.caughtUp, "caughtUp")
	foreign := 0
	for i := range 40 {
		r := subjects.NewRun("t", fmt.Sprint(i))
		submit(t, s, r, "{}")
		if r.Partition() != run.Partition() {
			foreign++
		}
	}
	require.Positive(t, foreign)
	last, err := s.Ledger.LastSequence(within(t, 2*time.Minute), 0)
	require.NoError(t, err)
	require.EqualValues(t, 40, last)
	require.NoError(t, cursor.Passed(within(t, 2*time.Minute), last)) // though the last records were not its own
	require.Equal(t, 40-foreign, own.count())
	require.Error(t, cursor.Passed(within(t, 50*time.Millisecond), last+1))

	cursor.Stop()
	require.Eventually(t, func() bool { return cursor.Passed(within(t, time.Second), last+1) != nil }, 2*time.Minute, time.Millisecond)
	submit(t, s, run, "{}")
	require.Equal(t, 40-foreign, own.count())

	_, err = s.Ledger.Follow(within(t, time.Second), 0, []int{64}, kv.Since{}, own.each, own.caught, nil)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	_, err = s.Ledger.Follow(within(t, time.Second), 0, nil, kv.Since{}, own.each, own.caught, nil)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestASlowReaderHoldsTheServerBack(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	body := make([]byte, 900<<10)
	const n = 80 // 72 MB, well over what may be under way
	for i := range n {
		_, _, err := s.Ledger.Create(within(t, 2*time.Minute), s.Ledger.SubmitSubject(subjects.NewRun("t", fmt.Sprint(i))), nil, body, nil)
		require.NoError(t, err)
	}
	before := s.Conn().Stats().InBytes
	hold := make(chan struct{})
	got := make(chan int, n)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := s.Ledger.Follow(ctx, 0, allPartitions(), kv.Since{}, func(e kv.Entry) {
		<-hold
		got <- len(e.Data)
	}, nil, nil)
	require.NoError(t, err)
	// What the server sends ahead comes to rest within its bound.
	last := uint64(0)
	require.Eventually(t, func() bool {
		now := s.Conn().Stats().InBytes
		rested := now == last && now > before
		last = now
		return rested
	}, 2*time.Minute, 300*time.Millisecond)
	require.Less(t, last-before, uint64(40<<20))
	close(hold)
	for range n {
		require.Equal(t, len(body), receive(t, got, "a record"))
	}
}

func TestALostConnectionLosesNoRecord(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	writer, s := setupOn(t, srv, kv.Config{}), setupOn(t, srv, kv.Config{})
	r := newReader()
	r.open(t, s, allPartitions())
	receive(t, r.caughtUp, "caughtUp")
	const n = 600
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			if _, _, err := writer.Ledger.Create(within(t, 2*time.Minute), writer.Ledger.SubmitSubject(subjects.NewRun("t", fmt.Sprint(i))), nil, nil, nil); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range 3 { // the connection is cut in the middle of it, again and again
		require.Eventually(t, func() bool { return r.count() > (i+1)*n/6 || len(r.lost) > 0 }, 2*time.Minute, time.Millisecond)
		select {
		case err := <-r.lost:
			require.NoError(t, err)
		default:
		}
		require.NoError(t, s.Conn().ForceReconnect())
	}
	<-done
	require.Eventually(t, func() bool { return r.count() >= n || len(r.lost) > 0 }, 2*time.Minute, time.Millisecond)
	for i := range n {
		require.EqualValues(t, i+1, r.seqs[i])
	}
	require.Empty(t, r.lost)
}

func TestAfterARestartTheLedgerIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *embedded.Server {
		srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen})
		require.NoError(t, err)
		t.Cleanup(srv.Shutdown)
		return srv
	}
	srv := start("127.0.0.1:0")
	s := setupOn(t, srv, kv.Config{})
	submit(t, s, subjects.NewRun("t", "before"), "{}")
	r := newReader()
	r.open(t, s, allPartitions())
	receive(t, r.caughtUp, "caughtUp")

	address := srv.URL()[len("nats://"):]
	srv.Shutdown()
	start(address)
	require.Equal(t, fault.NotReady, fault.CodeOf(receive(t, r.lost, "lost")))

	submit(t, s, subjects.NewRun("t", "after"), "{}") // over the same connection, which came back
	again := newReader()
	again.open(t, s, allPartitions())
	require.EqualValues(t, 2, receive(t, again.caughtUp, "caughtUp after the restart"))
	require.Equal(t, []uint64{1, 2}, again.seqs)
	submit(t, s, subjects.NewRun("t", "live"), "{}")
	require.Eventually(t, func() bool { return again.count() == 3 }, 2*time.Minute, time.Millisecond)
	require.Equal(t, 1, r.count(), "a lost cursor hands nothing on")
}

func TestADeletedConsumerLosesTheCursor(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := newReader()
	r.open(t, s, allPartitions())
	receive(t, r.caughtUp, "caughtUp")
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	ledger, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	for name := range ledger.ConsumerNames(within(t, 2*time.Minute)).Name() {
		require.NoError(t, ledger.DeleteConsumer(within(t, 2*time.Minute), name))
	}
	require.Error(t, receive(t, r.lost, "lost"))
}

func TestADeletedLedgerLosesTheCursor(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := newReader()
	r.open(t, s, allPartitions())
	receive(t, r.caughtUp, "caughtUp")
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(within(t, 2*time.Minute), subjects.LedgerStream(0)))
	require.Error(t, receive(t, r.lost, "lost"))
}

func TestFollowOnThreeReplicas(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3)
	for _, srv := range servers {
		s := setupOn(t, srv, kv.Config{Replicas: 3})
		d, _ := create(t, s, s.Ledger.SubmitSubject(subjects.NewRun("t", s.Conn().ConnectedServerName())), "{}", nil)
		require.Equal(t, kv.Written, d)
		r := newReader()
		r.open(t, s, allPartitions())
		last, err := s.Ledger.LastSequence(within(t, 2*time.Minute), 0)
		require.NoError(t, err)
		require.Equal(t, last, receive(t, r.caughtUp, "caughtUp"))
		require.EqualValues(t, last, r.atCaught)
	}
}
