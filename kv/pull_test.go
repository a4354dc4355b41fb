package kv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// unhurried is a lease that no test outlasts, however busy the machine: nothing is handed out twice that is left
// unacknowledged.
const unhurried = time.Hour

// definition returns a tool's definition with a fan-out limit.
func definition(name string, limit int) []byte {
	b, _ := json.Marshal(map[string]any{
		"name": name, "description": "a tool", "inputSchema": map[string]any{"type": "object"},
		"x-orchestration": map[string]any{"mode": "fan-out-bounded", "max_concurrency": limit},
	})
	return b
}

func register(t testing.TB, s *kv.Store, name string, limit int) tool.Registered {
	t.Helper()
	tool, err := s.Registry.Register(within(t, 2*time.Minute), definition(name, limit))
	require.NoError(t, err)
	return tool
}

// attempt names the first attempt of a step.
func attempt(tool, step string) subjects.Attempt {
	return subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: tool, Step: step, Number: 1}
}

func dispatch(t testing.TB, s *kv.Store, d kv.Dispatch) {
	t.Helper()
	done := make(chan error, 1)
	s.Queue.DispatchAsync(within(t, 2*time.Minute), d, func(err error) { done <- err })
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the dispatch never came back")
	}
}

func pull(t testing.TB, s *kv.Store, tool tool.Registered, slots int) (*kv.Puller, <-chan *kv.Delivery) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	got := make(chan *kv.Delivery, 10_000)
	p, err := s.Queue.Pull(ctx, tool, slots, func(d *kv.Delivery) { got <- d })
	require.NoError(t, err)
	return p, got
}

func pendingAcks(t testing.TB, s *kv.Store, tool tool.Registered) int {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	c, err := js.Consumer(within(t, 2*time.Minute), subjects.StepsStream(tool.Shard), subjects.Durable(tool.Name))
	require.NoError(t, err)
	return c.CachedInfo().NumAckPending
}

func TestAStepGoesToAWorkerWithHeadersAndBody(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "math.add/v2", 10)
	p, got := pull(t, s, tool, 4)
	a := attempt(tool.Name, "one")
	dispatch(t, s, kv.Dispatch{Attempt: a, Header: nats.Header{subjects.HeaderKey: {a.Key()}}, Body: []byte(`{"x":1}`)})
	d := receive(t, got, "the step")
	require.Equal(t, subjects.Step(a, 0), d.Subject)
	require.Equal(t, `{"x":1}`, string(d.Data))
	require.Equal(t, a.Key(), d.Header.Get(subjects.HeaderKey))
	require.Equal(t, 1, d.Delivered)
	require.NotZero(t, d.StreamSeq)
	require.NoError(t, d.InProgress())
	require.NoError(t, d.Ack())
	p.Release()
	require.Eventually(t, func() bool { return pendingAcks(t, s, tool) == 0 }, 2*time.Minute, time.Millisecond)
}

func TestPullNeverExceedsItsSlots(t *testing.T) {
	t.Parallel()
	for name, reconnects := range map[string]bool{"steady": false, "with lost connections": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pullAll(t, reconnects)
		})
	}
}

// pullAll takes 1000 steps with few slots, releasing some of them at a time.
func pullAll(t *testing.T, reconnects bool) {
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	ackWait := time.Minute
	if reconnects {
		ackWait = 500 * time.Millisecond // steps and acknowledgements on their way are lost with a connection
	}
	other := setupOn(t, srv, kv.Config{AckWait: ackWait})
	s := setupOn(t, srv, kv.Config{AckWait: ackWait})
	tool := register(t, s, "tool", 1000)
	const n, slots = 1000, 7
	for i := range n {
		dispatch(t, other, kv.Dispatch{Attempt: attempt("tool", fmt.Sprint(i))})
	}
	p, got := pull(t, s, tool, slots)
	seen := map[string]bool{}
	var held []*kv.Delivery
	for i := 0; len(seen) < n; i++ {
		for len(held) < slots && len(seen)+len(held) < n { // until all slots are taken
			held = append(held, receive(t, got, "a step"))
		}
		require.LessOrEqual(t, len(got)+len(held), slots, "a step without a slot")
		if !reconnects && i%20 == 0 { // once the acknowledgements have arrived
			require.Eventually(t, func() bool { return pendingAcks(t, other, tool) <= slots }, 2*time.Minute, time.Millisecond)
		}
		if reconnects && i%100 == 50 {
			require.NoError(t, s.Conn().ForceReconnect())
		}
		release := min(1+i%slots, len(held))
		for _, d := range held[:release] {
			require.True(t, reconnects || !seen[d.Subject], "delivered again without cause")
			seen[d.Subject] = true
			require.NoError(t, d.Ack())
			p.Release()
		}
		held = held[release:]
	}
}

func TestALeaseThatRunsOutGoesToAnother(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: 3 * time.Second})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 2)
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "a")})
	first := receive(t, got, "the step")
	for range 40 { // kept alive for longer than the lease
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, first.InProgress())
	}
	require.Empty(t, got)
	again := receive(t, got, "the step again") // not kept alive any more
	require.Equal(t, 2, again.Delivered)
	require.Equal(t, first.StreamSeq, again.StreamSeq)
}

func TestTheLimitHoldsOverAllWorkersAndChangesLive(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 3)
	_, one := pull(t, s, tool, 10)
	_, two := pull(t, s, tool, 10)
	for i := range 20 {
		dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", fmt.Sprint(i))})
	}
	leases := func() int { return len(one) + len(two) }
	require.Eventually(t, func() bool { return leases() == 3 }, 2*time.Minute, time.Millisecond)
	require.Equal(t, 3, pendingAcks(t, s, tool))
	register(t, s, "tool", 8)
	require.Eventually(t, func() bool { return leases() == 8 }, 2*time.Minute, time.Millisecond)
	require.Equal(t, 8, pendingAcks(t, s, tool))
}

// TestOnlyWhatNoWorkerHasIsTakenBack: a leased step keeps its place in the limit, since its handler may be at work
// still.
func TestOnlyWhatNoWorkerHasIsTakenBack(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 2)
	_, got := pull(t, s, tool, 10)
	a, b, c := attempt("tool", "a"), attempt("tool", "b"), attempt("tool", "c")
	other := subjects.Attempt{Run: subjects.NewRun("t", "other"), Generation: 2, Tool: "tool", Step: "a", Number: 1}
	for _, x := range []subjects.Attempt{a, b, c, other} {
		dispatch(t, s, kv.Dispatch{Attempt: x})
	}
	leased := []*kv.Delivery{receive(t, got, "a"), receive(t, got, "b")}
	pending := func() map[string]bool {
		p, err := s.Queue.Pending(within(t, 2*time.Minute), tool.Shard, a.Partition())
		require.NoError(t, err)
		return p
	}
	require.Equal(t, map[string]bool{a.MessageID(): true, b.MessageID(): true, c.MessageID(): true}, pending())
	require.NoError(t, s.Queue.PurgeAttempt(within(t, 2*time.Minute), a, tool.Shard))
	require.True(t, pending()[a.MessageID()], "a worker has it")
	require.NoError(t, s.Queue.PurgeSteps(within(t, 2*time.Minute), a.Run, a.Generation, "tool", tool.Shard))
	require.Equal(t, map[string]bool{a.MessageID(): true, b.MessageID(): true}, pending(), "nobody had the third")
	require.Empty(t, got, "no place came free")
	began := time.Now()
	require.NoError(t, leased[0].Ack())
	require.Equal(t, subjects.Step(other, 0), receive(t, got, "another run's step").Subject)
	require.Less(t, time.Since(began), 5*time.Second, "the consumer goes on at once, not with the next request")
	require.NoError(t, leased[1].Ack())
	info, err := s.Queue.Lag(within(t, 2*time.Minute), "tool", tool.Shard)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Leased, 2)
}

func TestPullingOutlivesADeletedConsumerAndStream(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 4)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "a")})
	require.NoError(t, receive(t, got, "a").Ack())

	require.NoError(t, js.DeleteConsumer(within(t, 2*time.Minute), "STEPS_0", "tool"))
	register(t, s, "tool", 10)
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "b")})
	require.NoError(t, receive(t, got, "a step after its consumer was deleted").Ack())

	require.NoError(t, js.DeleteStream(within(t, 2*time.Minute), "STEPS_0"))
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "c")}) // makes the stream again
	register(t, s, "tool", 10)
	select { // where the server did not say that the consumer is gone, it shows by its silence
	case d := <-got:
		require.NoError(t, d.Ack())
	case <-time.After(2 * time.Minute):
		require.Fail(t, "no step after its stream was deleted")
	}
}

func TestPullingOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *embedded.Server {
		srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen})
		require.NoError(t, err)
		t.Cleanup(srv.Shutdown)
		return srv
	}
	srv := start("127.0.0.1:0")
	s := setupOn(t, srv, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 10)
	p, got := pull(t, s, tool, 1)
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "before")})
	require.NoError(t, receive(t, got, "a step").Ack())
	p.Release()
	require.NoError(t, s.Conn().Flush())
	srv.Shutdown()
	start(srv.URL()[len("nats://"):])
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "after")})
	require.Equal(t, subjects.Step(attempt("tool", "after"), 0), receive(t, got, "a step after the restart").Subject)
}

func TestDrainHandsOverWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 10_000)
	const n = 500
	for i := range n {
		dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", fmt.Sprint(i))})
	}
	p, got := pull(t, s, tool, 50)
	taken := 0
	for range 120 { // in full swing
		require.NoError(t, receive(t, got, "a step").Ack())
		taken++
		p.Release()
	}
	p.Drain(within(t, 2*time.Minute))
	for ; len(got) > 0; taken++ { // what came before Drain returned
		require.NoError(t, (<-got).Ack())
		p.Release()
	}
	require.Less(t, taken, n)
	require.Eventually(t, func() bool { return pendingAcks(t, s, tool) == 0 }, 2*time.Minute, 10*time.Millisecond,
		"a step was sent to a worker that did not listen any more")
	require.Empty(t, got)
	p.Drain(within(t, time.Second)) // does nothing

	_, rest := pull(t, s, tool, n)
	for ; taken < n; taken++ {
		require.Equal(t, 1, receive(t, rest, "the rest").Delivered)
	}
}

// What More asks for comes without slots, in addition to those that were free, and only within its time.
func TestMoreThanThereAreSlots(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "load", 100)
	p, got := pull(t, s, tool, 1)
	send := func(step string) {
		dispatch(t, s, kv.Dispatch{Attempt: attempt(tool.Name, step), Body: []byte(`{}`)})
	}
	send("first")
	require.False(t, receive(t, got, "a step for the slot").Extra)
	for i := range 5 {
		send(fmt.Sprint("s", i))
	}
	p.More(3, time.Minute)
	for range 3 {
		require.True(t, receive(t, got, "a step beyond the slots").Extra)
	}
	require.Equal(t, 4, pendingAcks(t, s, tool), "no more than was asked for")
	p.Release()
	require.False(t, receive(t, got, "a step for the slot that is free again").Extra)
	p.More(0, time.Minute)
	p.More(5, 0)
	require.Equal(t, 5, pendingAcks(t, s, tool))
	p.More(1, time.Minute)
	require.True(t, receive(t, got, "the last step").Extra)
	other, ours := pull(t, s, tool, 1)
	p.More(1, 5*time.Second) // nothing comes of it
	for _, n := range []int{2, 1} {
		require.Eventually(t, func() bool { return waitingPulls(t, s, tool) == n }, 2*time.Minute, 5*time.Millisecond, "%d requests", n)
	}
	send("late")
	require.False(t, receive(t, ours, "the step for who waits").Extra)
	p.Drain(within(t, 2*time.Minute))
	other.Drain(within(t, 2*time.Minute))
	p.More(1, time.Minute) // after the end it does nothing
	require.Empty(t, got)
}

func waitingPulls(t testing.TB, s *kv.Store, tool tool.Registered) int {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	c, err := js.Consumer(within(t, 2*time.Minute), subjects.StepsStream(tool.Shard), subjects.Durable(tool.Name))
	require.NoError(t, err)
	return c.CachedInfo().NumWaiting
}
