package kv_test

import (
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
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func flushing(o *embedded.Options) { o.SyncAlways, o.Listen = true, "127.0.0.1:0" }

var together = kv.Config{GroupCommit: true}

// told is what a create's caller heard.
type told struct {
	decision kv.Decision
	seq      uint64
	err      error
}

// wanted is one create.
type wanted struct {
	subject string
	header  nats.Header
	body    []byte
	fence   *kv.Fence
}

// records gives n creates of one run.
func records(r subjects.Run, n int) (all []wanted) {
	a := subjects.Attempt{Run: r, Generation: 1, Tool: "tool", Number: 1}
	for i := range n {
		a.Step = fmt.Sprint("s", i)
		all = append(all, wanted{subject: subjects.StepRecord(a, 1), body: fmt.Append(nil, "record ", i)})
	}
	return all
}

// createAll sends creates at once and waits until each caller was told.
func createAll(t testing.TB, s *kv.Store, all []wanted) []told {
	t.Helper()
	heard := make([]told, len(all))
	var wg sync.WaitGroup
	wg.Add(len(all))
	for i, w := range all {
		s.CreateAsync(within(t, 60*time.Second), w.subject, w.header, w.body, w.fence, func(d kv.Decision, seq uint64, err error) {
			heard[i] = told{d, seq, err}
			wg.Done()
		})
	}
	wg.Wait()
	require.Zero(t, s.Inflight())
	return heard
}

// stands checks that a record lies in the ledger as its caller was told, and tells whether it came in a batch.
func stands(t testing.TB, s *kv.Store, w wanted, h told) bool {
	t.Helper()
	require.NoError(t, h.err, w.subject)
	require.Equal(t, kv.Written, h.decision, w.subject)
	e, err := s.Read(within(t, 5*time.Second), w.subject)
	require.NoError(t, err)
	require.Equal(t, string(w.body), string(e.Data))
	require.Equal(t, e.Seq, h.seq, w.subject)
	return e.Header["Nats-Batch-Id"] != nil
}

func TestCreatesThatWaitGoTogether(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, flushing)
	setupOn(t, srv, together)
	s, err := kv.Open(within(t, 10*time.Second), natstest.Connect(t, srv)) // the stream tells it
	require.NoError(t, err)
	t.Cleanup(s.Close)
	all := records(subjects.NewRun("t", "r"), 2000)
	batched := 0
	for i, h := range createAll(t, s, all) {
		if stands(t, s, all[i], h) {
			batched++
		}
	}
	require.Greater(t, batched, 1000)
	last, err := s.LastSequence(within(t, 5*time.Second), 0)
	require.NoError(t, err)
	require.EqualValues(t, len(all), last)
}

func TestAloneACreateIsNoBatch(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, flushing), together)
	for _, w := range records(subjects.NewRun("t", "r"), 5) {
		require.False(t, stands(t, s, w, createAll(t, s, []wanted{w})[0]))
	}
}

func TestWithoutTheSettingNothingIsBatched(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	all := records(subjects.NewRun("t", "r"), 200)
	for i, h := range createAll(t, s, all) {
		require.False(t, stands(t, s, all[i], h))
	}
}

// Each of those who wait together is told what became of its own record, whatever became of the others'.
func TestOfABatchEachIsToldItsOwn(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, flushing), together)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	gone := subjects.NewRun("t", "gone")
	g := submit(t, s, gone, "{}")
	require.NoError(t, s.PurgeRun(within(t, 5*time.Second), gone, g))
	there := subjects.NewRun("t", "there")
	stays := submit(t, s, there, "{}")

	all := records(subjects.NewRun("t", "r"), 300)
	taken := all[150].subject
	pa, err := js.Publish(within(t, 5*time.Second), taken, []byte("somebody else's"))
	require.NoError(t, err)
	all[160] = wanted{subject: subjects.StartRecord(gone, g, 1), fence: &kv.Fence{Subject: subjects.PlanRecord(gone, 1), Seq: g}}
	all[170] = wanted{subject: subjects.StartRecord(there, stays, 1), fence: &kv.Fence{Subject: subjects.PlanRecord(there, 1), Seq: stays}}
	all[180].body = make([]byte, 2<<20)                                  // goes by itself
	all[190].header = nats.Header{"Huge": {string(make([]byte, 1<<20))}} // the library refuses it amid a batch
	all[200].header = nats.Header{"Nats-Msg-Id": {"stray"}}              // makes the server refuse the batch,
	all[201].header = nats.Header{"Nats-Msg-Id": {"stray"}}              // not the first of the two by itself
	all[210] = wanted{subject: s.SubmitSubject(subjects.NewRun("t", "plan")), body: []byte(`{"steps":[]}`)}

	heard := createAll(t, s, all)
	for i, h := range heard {
		switch i {
		case 150:
			require.NoError(t, h.err)
			require.Equal(t, told{decision: kv.Decided, seq: pa.Sequence}, h)
		case 160:
			require.Equal(t, told{decision: kv.Gone}, h)
		case 180, 190:
			require.Equal(t, fault.MessageTooLarge, fault.CodeOf(h.err))
		case 200, 201: // a stray id hides the second message, which is unknown until the server has forgotten the id
			stands(t, s, all[i], h)
		default:
			stands(t, s, all[i], h)
		}
	}
}

func TestWhereBatchesAreForbiddenMeanwhileCreatesGoOn(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, flushing)
	s := setupOn(t, srv, together)
	editLedger(t, s, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false })
	all := records(subjects.NewRun("t", "r"), 400)
	for i, h := range createAll(t, s, all) {
		require.False(t, stands(t, s, all[i], h))
	}
}

func editLedger(t testing.TB, s *kv.Store, change func(*jetstream.StreamConfig)) {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	ledger, err := js.Stream(within(t, 5*time.Second), subjects.LedgerStream(0))
	require.NoError(t, err)
	cfg := ledger.CachedInfo().Config
	change(&cfg)
	_, err = js.UpdateStream(within(t, 5*time.Second), cfg)
	require.NoError(t, err)
}

func TestCloseEndsThoseThatWaitInLine(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, flushing)
	s, err := kv.Setup(within(t, 10*time.Second), natstest.Connect(t, srv), together)
	require.NoError(t, err)
	all := records(subjects.NewRun("t", "r"), 3000)
	var heard, ended sync.WaitGroup
	heard.Add(len(all))
	var late atomic.Int64
	for _, w := range all {
		s.CreateAsync(within(t, 60*time.Second), w.subject, nil, w.body, nil, func(_ kv.Decision, _ uint64, err error) {
			if err != nil {
				late.Add(1)
			}
			heard.Done()
		})
	}
	ended.Go(s.Close)
	heard.Wait()
	ended.Wait()
	require.Zero(t, s.Inflight())
	require.Positive(t, late.Load())
	last := records(subjects.NewRun("t", "last"), 1) // once it is written the server is through with all before it
	stands(t, setupOn(t, srv, together), last[0], createAll(t, setupOn(t, srv, together), last)[0])
}
