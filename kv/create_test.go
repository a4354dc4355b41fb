package kv_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// within returns a context that ends with the test, after d at the latest.
// refusal is how long something may take that is refused until its time is over: long enough for the first refusal.
const refusal = 2 * time.Second

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// ctx is for all that has to succeed, however busy the machine.
func ctx(t testing.TB) context.Context { return within(t, 2*time.Minute) }

// emptied takes a key out of the registry, as an operator of JetStream could.
func emptied(t testing.TB, js jetstream.JetStream, key string) error {
	t.Helper()
	st, err := js.Stream(within(t, 2*time.Minute), subjects.BucketStream(subjects.ToolsBucket))
	if err != nil {
		return err
	}
	return st.Purge(within(t, 2*time.Minute), jetstream.WithPurgeSubject(subjects.BucketSubject(subjects.ToolsBucket, key)))
}

// setup returns a store on a server of the test's own.
func setup(t testing.TB, cfg kv.Config) *kv.Store {
	t.Helper()
	return setupOn(t, natstest.Start(t), cfg)
}

func setupOn(t testing.TB, srv *embedded.Server, cfg kv.Config) *kv.Store {
	t.Helper()
	s, err := kv.Setup(within(t, 2*time.Minute), natstest.Connect(t, srv), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func create(t testing.TB, s *kv.Store, subject, body string, fence *kv.Fence) (kv.Decision, uint64) {
	t.Helper()
	d, seq, err := s.Ledger.Create(within(t, 2*time.Minute), subject, nil, []byte(body), fence)
	require.NoError(t, err)
	return d, seq
}

// submit creates a plan record and returns its generation.
func submit(t testing.TB, s *kv.Store, r subjects.Run, body string) uint64 {
	t.Helper()
	d, seq := create(t, s, s.Ledger.SubmitSubject(r), body, nil)
	require.Equal(t, kv.Written, d)
	return seq
}

func TestARecordIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "order 42")
	g := submit(t, s, r, `{"steps":[]}`)
	require.NotZero(t, g)

	d, seq := create(t, s, s.Ledger.SubmitSubject(r), `{"steps":[1]}`, nil)
	require.Equal(t, kv.Decided, d)
	require.Equal(t, g, seq)
	e, err := s.Ledger.Read(within(t, 2*time.Minute), subjects.PlanRecord(r, 1))
	require.NoError(t, err)
	require.Equal(t, `{"steps":[]}`, string(e.Data))
	require.Equal(t, g, e.Seq)
	require.Equal(t, subjects.PlanRecord(r, 1), e.Subject)
	require.WithinDuration(t, time.Now(), e.Time, 5*time.Second)

	_, err = s.Ledger.Read(within(t, 2*time.Minute), subjects.StartRecord(r, g, 1))
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

func TestHeadersAreKept(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "x")
	h := nats.Header{subjects.HeaderClient: {"tok"}, "X-Odd": {"a, b", "c"}}
	_, _, err := s.Ledger.Create(within(t, 2*time.Minute), s.Ledger.SubmitSubject(r), h, []byte("{}"), nil)
	require.NoError(t, err)
	e, err := s.Ledger.Read(within(t, 2*time.Minute), s.Ledger.SubmitSubject(r))
	require.NoError(t, err)
	require.Equal(t, []string{"tok"}, e.Header[subjects.HeaderClient])
	require.Equal(t, []string{"a, b", "c"}, e.Header["X-Odd"])
}

func TestOfAHundredWritersOneWrites(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	stores := []*kv.Store{setupOn(t, srv, kv.Config{}), setupOn(t, srv, kv.Config{}), setupOn(t, srv, kv.Config{})}
	oneOfMany(t, stores, 100)
}

// oneOfMany lets n writers create the same fenced record, and checks that one did and all others know.
func oneOfMany(t *testing.T, stores []*kv.Store, n int) {
	t.Helper()
	r := subjects.NewRun("acme", "race")
	g := submit(t, stores[0], r, "{}")
	fence := &kv.Fence{Subject: subjects.PlanRecord(r, 1), Seq: g}
	for _, fence := range []*kv.Fence{nil, fence} {
		subject := subjects.StartRecord(r, g, 1)
		if fence != nil {
			subject = subjects.StopRecord(r, g, 1)
		}
		var written, winner atomic.Int64
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				d, _, err := stores[i%len(stores)].Ledger.Create(within(t, 2*time.Minute), subject, nil, fmt.Appendf(nil, "%d", i), fence)
				if err != nil || d != kv.Written && d != kv.Decided {
					t.Errorf("writer %d: %v %v", i, d, err)
				}
				if d == kv.Written {
					written.Add(1)
					winner.Store(int64(i))
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, written.Load())
		e, err := stores[0].Ledger.Read(within(t, 2*time.Minute), subject)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(winner.Load()), string(e.Data))
	}
}

func TestAFenceKeepsOutWhatComesTooLate(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	r := subjects.NewRun("acme", "again")
	g := submit(t, s, r, "first")
	fence := &kv.Fence{Subject: subjects.PlanRecord(r, 1), Seq: g}
	start := subjects.StartRecord(r, g, 1)
	d, _ := create(t, s, start, "started", fence)
	require.Equal(t, kv.Written, d)
	d, seq := create(t, s, start, "other", fence)
	require.Equal(t, kv.Decided, d)
	e, err := s.Ledger.Read(within(t, 2*time.Minute), start)
	require.NoError(t, err)
	require.Equal(t, e.Seq, seq)

	require.NoError(t, s.Ledger.PurgeRun(within(t, 2*time.Minute), r, g))
	d, _ = create(t, s, start, "zombie", fence)
	require.Equal(t, kv.Gone, d)
	again := submit(t, s, r, "second")
	require.Greater(t, again, g)
	d, _ = create(t, s, start, "zombie", fence)
	require.Equal(t, kv.Gone, d)
	_, err = s.Ledger.Read(within(t, 2*time.Minute), start)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))

	require.NoError(t, s.Ledger.PurgeRun(within(t, 2*time.Minute), r, g)) // late: must not touch the resubmission
	e, err = s.Ledger.Read(within(t, 2*time.Minute), subjects.PlanRecord(r, 1))
	require.NoError(t, err)
	require.Equal(t, "second", string(e.Data))
}

func TestTwoWritersOnThreeReplicasLeaveOne(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, 3)
	var stores []*kv.Store
	for _, srv := range servers {
		stores = append(stores, setupOn(t, srv, kv.Config{Replicas: 3}))
	}
	js, err := jetstream.New(stores[0].Conn())
	require.NoError(t, err)
	ledger, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
	require.NoError(t, err)
	require.Len(t, ledger.CachedInfo().Cluster.Replicas, 2)
	oneOfMany(t, stores, 60)
}
