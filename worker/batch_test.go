package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

type contact struct {
	Email string `json:"email"`
}

// batched is a tool that takes contacts and notes its calls.
type batched struct {
	mu    sync.Mutex
	calls []batchCall
	begun chan batchCall                                                       // gets each call, if it is not nil
	do    func(ctx context.Context, c batchCall) ([]ItemResult[string], error) // nil: "made <email>"
}

// batchCall is one call of the handler.
type batchCall struct {
	emails []string
	steps  []Info
	info   Info
}

func (c batchCall) tenants() map[string]bool {
	all := map[string]bool{}
	for _, s := range c.steps {
		all[s.Tenant] = true
	}
	return all
}

func (b *batched) handle(ctx context.Context, items []contact) ([]ItemResult[string], error) {
	c := batchCall{steps: ItemsFrom(ctx)}
	c.info, _ = InfoFrom(ctx)
	for _, i := range items {
		c.emails = append(c.emails, i.Email)
	}
	b.mu.Lock()
	b.calls = append(b.calls, c)
	b.mu.Unlock()
	if b.begun != nil {
		b.begun <- c
	}
	if b.do != nil {
		return b.do(ctx, c)
	}
	return made(c), nil
}

func made(c batchCall) []ItemResult[string] {
	out := make([]ItemResult[string], len(c.emails))
	for i, email := range c.emails {
		out[i].Value = "made " + email
	}
	return out
}

// sizes returns the number of items of each call so far.
func (b *batched) sizes() (all []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		all = append(all, len(c.emails))
	}
	return all
}

// tools hosts the tool as "create_contacts", with batches of at most max items that wait for up to wait. It fails alone
// what fails, unless an option says otherwise.
func (b *batched) tools(max int, wait time.Duration, change ...func(*tool.Orchestration)) func(*Worker) {
	o := tool.Orchestration{
		MaxConcurrency: 100, ErrorPropagation: tool.PartialSuccess,
		Batch: &tool.Batch{Argument: "contacts", MaxItems: max, MaxWaitMS: wait.Milliseconds()},
	}
	for _, f := range change {
		f(&o)
	}
	return func(worker *Worker) { HandleBatch(worker, "create_contacts", b.handle, Contract(o)) }
}

const create = "create_contacts"

// person dispatches a step for one contact, named by its step.
func (w *world) person(run, step string, edit ...func(*wire.Step)) subjects.Attempt {
	w.t.Helper()
	a := w.attempt(create, run, step)
	w.dispatch(a, `{"email":"`+step+`"}`, edit...)
	return a
}

// people dispatches a step for each of n contacts, all at once.
func (w *world) people(run string, n int) (all []subjects.Attempt) {
	w.t.Helper()
	a, shard := w.attempt(create, run, ""), w.shard(create)
	sent := make(chan error, n)
	for i := range n {
		a.Step = fmt.Sprint("s", i)
		step := w.header(a)
		w.store.Queue.DispatchAsync(w.ctx(), kv.Dispatch{Attempt: a, Shard: shard, Header: step.Header(), Body: []byte(`{"email":"` + a.Step + `"}`)}, func(err error) { sent <- err })
		all = append(all, a)
	}
	for range n {
		require.NoError(w.t, <-sent)
	}
	return all
}

// long is a wait that no test can sit out: what happens before it has a reason.
const long = time.Minute

func TestBatchesOfManyRunsAndTenants(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"one slot": 1, "many slots": 64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			b := &batched{}
			w.register(b.tools(10, long))
			var all []subjects.Attempt
			for i := range 10 {
				for _, run := range []subjects.Run{subjects.NewRun("acme", "r1"), subjects.NewRun("acme", "r2"), subjects.NewRun("other", "r1"), subjects.NewRun("third", "r")} {
					a := subjects.Attempt{Run: run, Generation: 7, Tool: create, Step: fmt.Sprint("s", i), Number: 1}
					w.dispatch(a, `{"email":"`+run.Key()+a.Step+`"}`)
					all = append(all, a)
				}
			}
			w.worker(Config{Slots: slots}, b.tools(10, long))
			for _, a := range all {
				r := w.result(a)
				require.Nil(t, r.Error)
				require.Equal(t, `"made `+a.Run.Key()+a.Step+`"`, string(r.Body), "each its own")
			}
			require.Equal(t, []int{10, 10, 10, 10}, b.sizes(), "full batches, and no call more")
			tenants := 0
			for _, c := range b.calls {
				tenants = max(tenants, len(c.tenants()))
				require.Len(t, c.steps, 10)
				for i, s := range c.steps {
					require.Equal(t, s.Key, subjects.Attempt{Run: subjects.NewRun(s.Tenant, s.Run), Generation: 7, Tool: create, Step: s.Step, Number: 1}.Key())
					require.Equal(t, subjects.NewRun(s.Tenant, s.Run).Key()+s.Step, c.emails[i], "the items' steps, in their order")
				}
				require.Empty(t, c.info.Key, "many steps have no key in common")
				require.Equal(t, create, c.info.Tool)
			}
			require.Greater(t, tenants, 1)
			w.settled(create)
		})
	}
}

func TestLoneStepWaitsForItsBatchNoLonger(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{}
	w.worker(Config{}, b.tools(10, 300*time.Millisecond))
	begun := time.Now()
	a := w.person("r", "s1")
	require.Nil(t, w.result(a).Error)
	require.GreaterOrEqual(t, w.result(a).Started.Sub(begun), 250*time.Millisecond, "it waits for others first")
	require.Equal(t, []int{1}, b.sizes())
	require.Equal(t, a.Key(), b.calls[0].info.Key, "one step alone is known wholly")
	require.Equal(t, "s1", b.calls[0].info.Step)
}

// A batch begins as soon as no more steps can come: because all leases that the limit allows are here already, or
// because the worker drains.
func TestABatchDoesNotWaitInVain(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{begun: make(chan batchCall, 10)}
	def := b.tools(3, long, func(o *tool.Orchestration) { o.MaxConcurrency = 3 })
	apart := func(worker *Worker) {
		def(worker)
		worker.tools[create].together = func(i Info) string { return i.Run }
	}
	worker := w.worker(Config{}, apart)
	one := w.person("r1", "s1")
	two, three := w.person("r2", "s1"), w.person("r2", "s2")
	for _, a := range []subjects.Attempt{one, two, three} {
		require.Nil(t, w.result(a).Error)
	}
	sizes := b.sizes()
	slices.Sort(sizes)
	require.Equal(t, []int{1, 2}, sizes, "apart by their key")
	w.settled(create)

	last := w.person("r3", "s1")
	w.eventually(func() bool { return w.consumer(create).NumAckPending == 1 }, "the step is not taken")
	require.NoError(t, worker.end())
	require.True(t, w.recorded(last))
	require.Len(t, b.sizes(), 3)
}

// While all slots are taken, what comes is gathered; the worker asks for no more steps than a batch has room for.
func TestBatchesAndSlots(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	open := make(chan struct{})
	b := &batched{begun: make(chan batchCall, 100), do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		<-open
		return made(c), nil
	}}
	w.worker(Config{Slots: 2}, b.tools(4, 300*time.Millisecond))
	first := w.person("r", "a")
	await(w, b.begun, "the first call")
	second := w.person("r", "b")
	await(w, b.begun, "the second call")
	rest := w.people("r", 20)
	w.eventually(func() bool { return w.consumer(create).NumPending >= 17 }, "steps wait in a worker without a slot")
	require.Empty(t, b.begun)
	close(open)
	for _, a := range append(rest, first, second) {
		require.Nil(t, w.result(a).Error)
	}
	for _, n := range b.sizes() {
		require.LessOrEqual(t, n, 4)
	}
	require.Less(t, len(b.sizes()), 15, "what waited was gathered")
	w.settled(create)
}
