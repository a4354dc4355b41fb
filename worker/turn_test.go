package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// gathering is how long batches wait where several steps are to get into one: a busy machine sends them all in less.
const gathering = 2 * time.Second

// gang is several workers of one batch tool, and what each of them was called with.
type gang struct {
	*world
	mu    sync.Mutex
	calls map[string][]int // items of each call, by worker
}

func startGang(t *testing.T, n, slots, most int, wait time.Duration, work func(*gang)) (g *gang, all []*running) {
	g = &gang{world: start(t, kv.Config{}), calls: map[string][]int{}}
	g.registrar()
	for i := range n {
		all = append(all, g.hire(fmt.Sprint("w", i), slots, most, wait, work))
	}
	return g, all
}

func (g *gang) hire(name string, slots, most int, wait time.Duration, work func(*gang)) *running {
	g.t.Helper()
	b := &batched{do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		g.mu.Lock()
		g.calls[name] = append(g.calls[name], len(c.emails))
		g.mu.Unlock()
		if work != nil {
			work(g)
		}
		return made(c), nil
	}}
	return g.worker(Config{Name: name, Slots: slots}, b.tools(most, wait, func(o *tool.Orchestration) { o.MaxConcurrency = 1000 }))
}

// count returns the number of calls so far, and of the workers that had any.
func (g *gang) count() (calls, workers int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range g.calls {
		calls += len(of)
	}
	return calls, len(g.calls)
}

// send dispatches steps and waits until all are recorded.
func (g *gang) done(all []subjects.Attempt) {
	g.t.Helper()
	for _, a := range all {
		require.Nil(g.t, g.result(a).Error)
	}
}

// However many workers there are, few steps make one call.
func TestManyWorkersGatherAsOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			g, _ := startGang(t, n, 64, 50, gathering, nil)
			const rounds = 3
			for i := range rounds {
				g.done(g.people(fmt.Sprint("r", i), 7))
			}
			calls, _ := g.count()
			require.LessOrEqual(t, calls, rounds+1, "%v", g.calls)
			g.settled(create)
		})
	}
}

// What fail-fast means for steps that are ready together doesn't change with the number of workers: one that fails
// fails all, which were in its call.
func TestFailFastOverSeparateStepsOfManyWorkers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			var mu sync.Mutex
			calls := 0
			for range n {
				b := &batched{do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
					mu.Lock()
					calls++
					mu.Unlock()
					out := made(c)
					for i, email := range c.emails {
						if email == "s3" {
							out[i].Err = Terminal(errors.New("refused"))
						}
					}
					return out, nil
				}}
				w.worker(Config{}, b.tools(50, gathering, func(o *tool.Orchestration) { o.ErrorPropagation = tool.FailFast }))
			}
			for i, a := range w.people("r", 7) {
				f := w.result(a).Error
				require.NotNil(t, f, "step %d of %d calls succeeded", i, calls)
				if i == 3 {
					require.Equal(t, fault.ToolTerminal, f.Code)
					continue
				}
				require.Equal(t, fault.ToolFailed, f.Code)
				require.False(t, f.Retryable, "as retryable as what failed")
				require.Contains(t, f.Message, "of the batch failed: refused")
			}
			require.Equal(t, 1, calls)
		})
	}
}

// A load spreads over all workers, in full batches. No call ends before several workers have been called.
func TestALoadOfBatchesSpreads(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"one slot": 1, "many slots": 64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const steps, most = 1000, 25
			spread := make(chan struct{})
			open := sync.OnceFunc(func() { close(spread) })
			g, _ := startGang(t, 8, slots, most, gathering, func(g *gang) {
				if _, workers := g.count(); workers > 2 {
					open()
				}
				<-spread
			})
			t.Cleanup(open)
			g.done(g.people("r", steps))
			calls, _ := g.count()
			require.LessOrEqual(t, calls, 2*steps/most, "%v", g.calls)
			g.settled(create)
		})
	}
}

// A holder that dies without a word holds nobody up for longer than its lease.
func TestTheTurnOfADeadWorkerPasses(t *testing.T) {
	t.Parallel()
	g := &gang{world: start(t, kv.Config{AckWait: 2 * time.Second}), calls: map[string][]int{}}
	g.registrar()
	b := &batched{}
	nc := natstest.Connect(t, g.srv)
	dying := g.launch(nc, Config{Name: "dying", DrainTimeout: time.Millisecond}, b.tools(10, 10*time.Millisecond))
	dying.awaitReady()
	g.done(g.people("r1", 3))
	g.hire("heir", 4, 10, 10*time.Millisecond, nil)
	nc.Close()
	g.done(g.people("r2", 3))
	require.NotEmpty(t, g.calls["heir"])
}

// Whoever loses the turn waits for no more steps: they come to another worker.
func TestWithoutTheTurnNobodyWaits(t *testing.T) {
	t.Parallel()
	g, _ := startGang(t, 1, 4, 10, long, nil)
	g.eventually(func() bool { return g.consumer(create).NumWaiting == 1 }, "it asks for nothing")
	a := g.person("r", "s1")
	g.eventually(func() bool { return g.consumer(create).NumAckPending == 1 }, "the step is not taken")
	require.False(t, g.recorded(a))
	g.eventually(func() bool {
		_, seq, err := g.store.Queue.Gathers(g.ctx(), create)
		require.NoError(t, err)
		_, ok, err := g.store.Queue.Gather(g.ctx(), create, wire.Gathering{ID: "somebody"}, seq)
		require.NoError(t, err)
		return ok
	}, "the lease can't be taken away")
	require.Nil(t, g.result(a).Error)
}

// Where there is no bucket for it, every worker gathers.
func TestWithoutTheBucketEveryWorkerGathers(t *testing.T) {
	t.Parallel()
	g := &gang{world: start(t, kv.Config{}), calls: map[string][]int{}}
	require.NoError(t, g.js.DeleteStream(subjects.BucketStream(subjects.GatherBucket)))
	g.registrar()
	for i := range 3 {
		g.hire(fmt.Sprint("w", i), 4, 5, 20*time.Millisecond, nil)
	}
	g.done(g.people("r", 100))
	calls, _ := g.count()
	require.Less(t, calls, 100)
	g.settled(create)
}

// The lease is no more than its own key: a worker can't write another tool's over, nor all of them at once.
func TestTheBucketOfLeasesReachesNoFurtherThanAKey(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	_, ok, err := w.store.Queue.Gather(w.ctx(), "a", wire.Gathering{ID: "one"}, 0)
	require.NoError(t, err)
	require.True(t, ok)
	_, ok, err = w.store.Queue.Gather(w.ctx(), "a", wire.Gathering{ID: "two"}, 0)
	require.NoError(t, err)
	require.False(t, ok, "it is taken")
	for name, value := range map[string]string{
		"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Schedule": "@at 2030-01-01T00:00:00Z", "Nats-Schedule-Target": subjects.Gather("a"),
		"Nats-Batch-Id": "x", "KV-Operation": "PURGE", "Nats-Marker-Reason": "Purge", "Nats-Incr": "+1",
	} {
		m := nats.NewMsg(subjects.Gather("b"))
		m.Header[name], m.Data = []string{value}, []byte(`{"id":"b"}`)
		_, _ = w.js.PublishMsg(m) // most are refused
		g, seq, err := w.store.Queue.Gathers(w.ctx(), "a")
		require.NoError(t, err, name)
		require.NotZero(t, seq, name)
		require.Equal(t, "one", g.ID, name)
	}
}
