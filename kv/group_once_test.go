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
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// The fence is checked and the record written in one piece, in a batch too: once a run is purged, nothing of it comes.
func TestNothingSlipsThroughBetweenFenceAndPurge(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, flushing), together)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	written, gone := 0, 0
	for round := 0; round < 20 || written == 0 || gone == 0; round++ {
		r := subjects.NewRun("t", fmt.Sprint("r", round))
		g := submit(t, s, r, "{}")
		all := records(r, 200)
		for i := range all {
			all[i].subject = subjects.StepRecord(subjects.Attempt{Run: r, Generation: g, Tool: "tool", Step: fmt.Sprint(i), Number: 1}, 1)
			all[i].fence = &kv.Fence{Subject: subjects.PlanRecord(r, 1), Seq: g}
		}
		var purging sync.WaitGroup
		var some atomic.Int64
		purging.Go(func() {
			for some.Load() == 0 { // one was written, so the others are under way
				time.Sleep(50 * time.Microsecond)
			}
			if err := s.PurgeRun(within(t, 20*time.Second), r, g); err != nil {
				t.Error(err)
			}
		})
		s.CreateAsync(within(t, 20*time.Second), all[0].subject, nil, nil, all[0].fence, func(kv.Decision, uint64, error) { some.Add(1) })
		for _, h := range createAll(t, s, all[1:]) {
			require.NoError(t, h.err)
			if h.decision == kv.Written {
				written++
			} else {
				require.Equal(t, kv.Gone, h.decision)
				gone++
			}
		}
		purging.Wait()
		ledger, err := js.Stream(within(t, 5*time.Second), subjects.LedgerStream(0))
		require.NoError(t, err)
		require.Zero(t, ledger.CachedInfo().State.Msgs)
		require.Less(t, round, 500, "written %d, gone %d", written, gone)
	}
}

// An atomic batch by anybody lets nothing around create-once: the server checks its messages as it does single ones.
func TestABatchCannotGetAroundCreateOnce(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, flushing), together)
	nc := s.Conn()
	r := subjects.NewRun("t", "r")
	submit(t, s, r, "stands")
	there, free := subjects.PlanRecord(r, 1), subjects.PlanRecord(subjects.NewRun("t", "free"), 1)
	none := nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}}
	for name, batch := range map[string][]wanted{
		"twice the same":                   {{subject: free}, {subject: free}},
		"twice the same, expecting none":   {{subject: free, header: none}, {subject: free, header: none}},
		"twice, the second expecting none": {{subject: free}, {subject: free, header: none}},
		"twice, one by its intake subject": {{subject: free}, {subject: s.SubmitSubject(subjects.NewRun("t", "free"))}},
		"what is there":                    {{subject: free}, {subject: there}},
		"what is there, expecting none":    {{subject: free}, {subject: there, header: none}},
		"what is there, by a rollup":       {{subject: free}, {subject: there, header: nats.Header{"Nats-Rollup": {"sub"}}}},
		"all that is there, by a rollup":   {{subject: free}, {subject: there, header: nats.Header{"Nats-Rollup": {"all"}}}},
		"what expires":                     {{subject: free, header: nats.Header{"Nats-TTL": {"1s"}}}, {subject: there + ".x"}},
	} {
		inbox := nats.NewInbox()
		answer, err := nc.SubscribeSync(inbox)
		require.NoError(t, err)
		for i, w := range batch {
			m := &nats.Msg{Subject: w.subject, Header: nats.Header{"Nats-Batch-Id": {name}, "Nats-Batch-Sequence": {fmt.Sprint(i + 1)}}}
			for k, v := range w.header {
				m.Header[k] = v
			}
			if i == len(batch)-1 {
				m.Header["Nats-Batch-Commit"], m.Reply = []string{"1"}, inbox
			}
			require.NoError(t, nc.PublishMsg(m))
		}
		m, err := answer.NextMsg(5 * time.Second)
		require.NoError(t, err, name)
		require.Contains(t, string(m.Data), `"error"`, name)
		_, err = s.Read(within(t, 5*time.Second), free)
		require.Equal(t, fault.NotFound, fault.CodeOf(err), name)
		e, err := s.Read(within(t, 5*time.Second), there)
		require.NoError(t, err, name)
		require.Equal(t, "stands", string(e.Data), name)
	}
}
