package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// purges counts requests that remove records of the ledger: of a whole shard, and of less.
func (s *system) purges() (whole, less *atomic.Int64) {
	whole, less = new(atomic.Int64), new(atomic.Int64)
	_, err := s.nc.Subscribe(subjects.StreamRequest("PURGE", subjects.LedgerStream(0)), func(m *nats.Msg) {
		var p struct{ Filter string }
		if _ = json.Unmarshal(m.Data, &p); p.Filter == "" {
			whole.Add(1)
		} else {
			less.Add(1)
		}
	})
	require.NoError(s.t, err)
	return whole, less
}

// sharedBy waits until so many cursors read the ledger, and none more than its share.
func (s *system) sharedBy(orchestrators int) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	require.NoError(s.t, err)
	stream, err := js.Stream(ctx(s.t), subjects.LedgerStream(0))
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		filters, wide := 0, false
		for c := range stream.ListConsumers(ctx(s.t)).Info() {
			filters += len(c.Config.FilterSubjects)
			wide = wide || c.Config.FilterSubject != "" || len(c.Config.FilterSubjects) == 1 && orchestrators > 1
		}
		return filters == subjects.Partitions && !wide
	}, patience, 20*time.Millisecond)
}

// Owners that share a ledger shard remove what is over in requests for all of it, also what others own, and nothing of
// a run that goes on.
func TestOwnersOfASharedShardPurgeItTogether(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Grace = time.Second })
	s.orchestrator()
	s.orchestrator()
	s.sharedBy(3)
	whole, less := s.purges()
	for i := range 40 {
		s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, fmt.Sprint("before", i))
	}
	s.emptyLedger()
	require.Positive(t, whole.Load())
	require.Zero(t, less.Load(), "no partition or run by itself")

	long := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"h","tool":"echo","arguments":{"x":"$ref:g"}}]}`, "long")
	<-s.tools.begun
	before := whole.Load()
	for i := range 40 {
		s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, fmt.Sprint("beside", i))
	}
	require.Never(t, func() bool { return s.records("long") < 2 }, 4*time.Second, 100*time.Millisecond, "it goes on, long after the grace of the others")
	require.GreaterOrEqual(t, whole.Load(), before)
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(long).Status)
	s.emptyLedger()
}

// records counts what the ledger holds of a run.
func (s *system) records(id string) int {
	run := subjects.NewRun("default", id)
	left, err := s.store.Ledger.Stored(ctx(s.t), 0, subjects.PartitionFilter(run.Partition(), 1))
	require.NoError(s.t, err)
	n := 0
	for subject := range left {
		if rec, ok := subjects.ParseRecord(subject); ok && rec.Run == run {
			n++
		}
	}
	return n
}
