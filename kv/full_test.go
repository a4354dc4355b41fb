package kv_test

import (
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

// limitStream sets a stream's limit in bytes, as an operator would.
func limitStream(t testing.TB, s *kv.Store, name string, bytes int64) {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(within(t, 2*time.Minute), name)
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = bytes
	_, err = js.UpdateStream(within(t, 2*time.Minute), cfg)
	require.NoError(t, err)
}

func TestAFullLedgerDropsNothingAndGoesOn(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{LedgerMaxBytes: 16 << 10})
	body := make([]byte, 1000)
	first := subjects.NewRun("t", "first")
	g := submit(t, s, first, "{}")

	type result struct {
		d   kv.Decision
		err error
	}
	const n = 60
	results := make(chan result, n)
	a := subjects.Attempt{Run: first, Generation: g, Tool: "tool", Number: 1}
	for i := range n {
		a.Step = fmt.Sprint(i)
		s.Ledger.CreateAsync(within(t, 2*time.Minute), subjects.StepRecord(a, 1), nil, body, nil, func(d kv.Decision, _ uint64, err error) {
			results <- result{d, err}
		})
	}
	stored := func() int {
		js, err := jetstream.New(s.Conn())
		require.NoError(t, err)
		ledger, err := js.Stream(within(t, 2*time.Minute), subjects.LedgerStream(0))
		require.NoError(t, err)
		return int(ledger.CachedInfo().State.Msgs) - 1
	}
	require.Eventually(t, func() bool { return len(results) == stored() && stored() > 5 }, 2*time.Minute, 10*time.Millisecond)
	require.Less(t, stored(), 20, "the ledger must be full for this test to mean anything")

	// A record that is there is decided though there is no room; one that isn't waits, and says why if it must give up.
	d, _ := create(t, s, s.Ledger.SubmitSubject(first), "other", nil)
	require.Equal(t, kv.Decided, d)
	a.Step = "late"
	_, _, err := s.Ledger.Create(within(t, refusal), subjects.StepRecord(a, 1), nil, body, nil)
	require.Equal(t, fault.StoreFull, fault.CodeOf(err))
	require.ErrorContains(t, err, "KV_runs_0")

	limitStream(t, s, subjects.LedgerStream(0), 64<<20)
	for range n {
		r := receive(t, results, "a record")
		require.NoError(t, r.err)
		require.Equal(t, kv.Written, r.d)
	}
	require.Equal(t, n, stored())
}

func TestPurgingMakesRoomInAFullLedger(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{LedgerMaxBytes: 8 << 10})
	old := subjects.NewRun("t", "old")
	g := submit(t, s, old, string(make([]byte, 6000)))
	waiting := make(chan kv.Decision, 1)
	s.Ledger.CreateAsync(within(t, 2*time.Minute), s.Ledger.SubmitSubject(subjects.NewRun("t", "new")), nil, make([]byte, 6000), nil,
		func(d kv.Decision, _ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
			waiting <- d
		})
	_, _, err := s.Ledger.Create(within(t, refusal), s.Ledger.SubmitSubject(subjects.NewRun("t", "third")), nil, make([]byte, 6000), nil)
	require.Equal(t, fault.StoreFull, fault.CodeOf(err))
	require.Empty(t, waiting)
	require.NoError(t, s.Ledger.PurgeRun(within(t, 2*time.Minute), old, g))
	require.Equal(t, kv.Written, receive(t, waiting, "the plan that waited"))
}

// JetStream's own limit below the size of the disk: writes are refused with a reason, and go on when there is room.
func TestAServerWithoutRoomDropsNothingAndGoesOn(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t, func(o *embedded.Options) { o.MaxStore = 1 << 20 }))
	s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(within(t, 2*time.Minute), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}})
	require.NoError(t, err)
	for full := false; !full; {
		_, err = js.Publish(within(t, 2*time.Minute), "other", make([]byte, 100<<10))
		full = err != nil
	}
	_, _, err = s.Ledger.Create(within(t, refusal), s.Ledger.SubmitSubject(subjects.NewRun("t", "hasty")), nil, []byte("{}"), nil)
	require.Equal(t, fault.StoreFull, fault.CodeOf(err))
	waiting := make(chan error, 1)
	s.Ledger.CreateAsync(within(t, 2*time.Minute), s.Ledger.SubmitSubject(subjects.NewRun("t", "patient")), nil, []byte("{}"), nil,
		func(_ kv.Decision, _ uint64, err error) { waiting <- err })
	require.NoError(t, js.DeleteStream(within(t, 2*time.Minute), "OTHER"))
	require.NoError(t, receive(t, waiting, "the plan that waited"))
}

// TestAFullStoreStillHasWhatIsThere: who stores once more what lies there already finds it where the store takes nothing, also who
// did not look before; what is not there is refused.
func TestAFullStoreStillHasWhatIsThere(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	const name = "t/r/1/=part.a.0"
	part := make([]byte, 10<<10)
	_, err := s.Archive.PutNamed(within(t, 2*time.Minute), "", name, part, true)
	require.NoError(t, err)
	limitStream(t, s, subjects.BlobsStream(""), 12<<10)
	for _, fresh := range []bool{false, true} {
		same, err := s.Archive.PutNamed(within(t, 2*time.Minute), "", name, part, fresh)
		require.NoError(t, err)
		require.True(t, same)
		_, err = s.Archive.PutNamed(within(t, 2*time.Minute), "", name+"1", part, fresh)
		require.Equal(t, fault.StoreFull, fault.CodeOf(err), "%v", err)
	}
}
