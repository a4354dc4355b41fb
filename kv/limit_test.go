package kv_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// leases checks that there are never more of them than the limit in force. A limit counts for what is delivered after
// the server confirmed it: the consumer's sequence then is the limit's first.
type leases struct {
	many   chan struct{} // closed once so many were active that a later limit bounds something; none ends before
	mu     sync.Mutex
	active map[uint64]bool // by the consumer's sequence
	limits []limitFrom
	broken []string
	most   map[int]int // the most leases at a time under each limit
	done   map[string]int
}

type limitFrom struct {
	from  uint64
	limit int
}

func (l *leases) change(from uint64, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = append(l.limits, limitFrom{from, limit})
}

// begin notes a lease. Until the next change is known, what is delivered may already be under it, so a lease is held
// against the greater of the last limit and the one that is being set.
func (l *leases) begin(seq uint64, setting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[seq] = true
	if len(l.active) == 17 && l.most[l.limits[0].limit] < 17 {
		close(l.many)
	}
	last := l.limits[len(l.limits)-1]
	limit := max(last.limit, setting)
	if seq <= last.from { // delivered before the change, read after it
		limit = max(limit, l.limits[max(0, len(l.limits)-2)].limit)
	}
	if len(l.active) > limit {
		l.broken = append(l.broken, fmt.Sprintf("%d leases under the limit %d", len(l.active), limit))
	}
	l.most[last.limit] = max(l.most[last.limit], len(l.active))
}

func (l *leases) end(seq uint64, subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, seq)
	l.done[subject]++
}

// A limit that changes while workers pull loses no step, and holds from the moment that the registration is answered.
func TestALimitChangesUnderWorkWithoutLoss(t *testing.T) {
	t.Parallel()
	const steps, workers = 1200, 6
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{AckWait: 20 * time.Second})
	entry := register(t, s, "tool", 64)
	for i := range steps {
		dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", fmt.Sprint("s", i))})
	}
	l := &leases{many: make(chan struct{}), active: map[uint64]bool{}, limits: []limitFrom{{0, 64}}, most: map[int]int{}, done: map[string]int{}}
	var setting, finished atomic.Int64
	progress := make(chan struct{}, steps)
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range workers {
		c, err := js.Consumer(within(t, 2*time.Minute), subjects.StepsStream(entry.Shard), subjects.Durable("tool"))
		require.NoError(t, err)
		wg.Go(func() {
			for finished.Load() < steps {
				batch, err := c.Fetch(32, jetstream.FetchMaxWait(100*time.Millisecond))
				if err != nil {
					t.Error(err)
					return
				}
				for m := range batch.Messages() {
					meta, err := m.Metadata()
					if err != nil {
						t.Error(err)
						return
					}
					l.begin(meta.Sequence.Consumer, int(setting.Load()))
					wg.Go(func() {
						<-l.many
						time.Sleep(time.Duration(meta.Sequence.Stream%4) * time.Millisecond) // the tool's own work
						l.end(meta.Sequence.Consumer, m.Subject())
						if err := m.Ack(); err != nil {
							t.Error(err)
						}
						finished.Add(1)
						progress <- struct{}{}
					})
				}
			}
		})
	}
	after := func(n int) {
		for range n {
			receive(t, progress, "a step")
		}
	}
	for _, limit := range []int{2, 16} {
		after(200)
		setting.Store(int64(limit))
		require.Equal(t, limit, register(t, s, "tool", limit).Contract.Limit)
		info := consumer(t, s, entry)
		require.Equal(t, limit, info.Config.MaxAckPending)
		l.change(info.Delivered.Consumer, limit)
		setting.Store(0)
	}
	after(steps - 400)
	wg.Wait()
	require.Empty(t, l.broken)
	require.Len(t, l.done, steps)
	for subject, n := range l.done {
		require.Equal(t, 1, n, subject)
	}
	require.Greater(t, l.most[64], 16, "it was not the workers that were few")
	require.LessOrEqual(t, l.most[16], 64)
	t.Log("most leases at a time, by limit:", l.most)
}
