// Package orchestrator runs plans: it reads the ledger, lets package machine decide, and carries out the effects.
//
// Any number of orchestrators run at once. Each keeps a member key alive and owns the partitions that rendezvous
// hashing over the live members assigns to it. Nothing rests on that: two owners of a partition for a moment are
// harmless, because every decision is a record that can be created once, and every effect may be carried out twice. So
// there is no leader, no lock and no fencing, and a process may be killed at any time: another reads the same records
// and goes on.
//
// # How it is built
//
// All state of a run lives on one goroutine, that of its loop. What must wait for I/O, such as history, blobs or a
// large plan, happens in jobs beside it, which post what they found back to the loop. The loop itself only routes: a
// record goes to the lifecycle of its run, a tick to whoever asked for it. Behind it are types that hold their own
// state, and know only those below them:
//
//	                     loop (mailbox, ticks)          api (requests, submissions)
//	     ┌──────────────────┼──────────────────┐                 │
//	partitions          reconciler             │             explains from
//	(ownership,         (what should be out    │             runs, dispatcher,
//	 takeover)           against what is)      │             documents
//	     └────────┬─────────┘                  │
//	         lifecycle ────────────────────  reaper
//	(open, begin, finish, forget)            (grace, marks, purge, orphans)
//	     ┌────────┼──────────────┐
//	   judge    driver       documents
//	 (verdict, (a machine,  (history, outcome)
//	  reuse)    its effects)
//	              │
//	     ┌────────┼─────────┬────────────┐
//	dispatcher  decider  deadLetters  announcer
//	(windows,   (records and stops    (events, to
//	 burdens,    of its own)           who listens)
//	 flights)
//	     └────────┴────┬────┘
//	                values, memory (results and blobs, and room for them)
//	                   │
//	env (storage, bus, clock, jobs, mailbox) · runs, cursors, ledgerTime, timers, suspects (what is known)
//
// A process has one or several such loops (loops), each with a group of its partitions. They share the registry, the
// member key and the requests, and the room of tools and tenants (pool), and know nothing of each other otherwise.
//
// Arrows point down. Where something below must tell something above (a machine is done, a record asks for a
// comparison) it calls a function that newLoop has set.
package orchestrator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Orchestrator owns some of the partitions and runs their plans.
type Orchestrator struct {
	self
	working atomic.Pointer[working] // nil before Run has begun
}

// working is what an orchestrator works with while Run goes on.
type working struct {
	loops    *loops
	registry *registry
	store    storage
}

// New checks the configuration. Nothing runs before Run.
func New(nc *nats.Conn, cfg Config) (*Orchestrator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Orchestrator{self: self{nc: nc, cfg: cfg, member: cfg.memberID(), ready: make(chan struct{})}}, nil
}

// Ready is closed once partitions are owned and requests are answered.
func (o *Orchestrator) Ready() <-chan struct{} { return o.ready }

// Run works until ctx ends, then hands its partitions over and returns nil. It returns an error (no_jetstream,
// permission, no_connection, …) only where it could not begin. It may be called once.
func (o *Orchestrator) Run(ctx context.Context) error {
	store, err := kv.Setup(ctx, o.nc, o.cfg.Store)
	if err != nil {
		return err
	}
	o.observer = observer.New(o.cfg.Observer, o.cfg.Logger)
	defer o.observer.Close() // after all that tells
	defer store.Close()

	// Jobs outlive ctx by a little: what a stop finds on its way may still be written.
	work, endWork := context.WithCancelCause(context.WithoutCancel(ctx))
	var owned sync.WaitGroup
	defer owned.Wait()
	defer endWork(errStopped)

	o.publishKey(work, store.Registry, owned.Go)
	reg := newRegistry(facetsOf(store), o.cfg.Logger)
	if err := reg.run(work, &owned); err != nil {
		return err
	}
	facets := facetsOf(store)
	ls := newLoops(work, &o.self, facets, reg)
	o.working.Store(&working{ls, reg, facets})
	unwatch, err := ls.watchNoResponders(o.nc)
	if err != nil {
		return err
	}
	defer unwatch()
	svc := newAPI(&o.self, ls, reg, store)
	if err := svc.open(); err != nil {
		svc.close()
		return err
	}
	member, err := store.Members.Join(work, o.member, func(members []kv.Member) {
		ls.each(func(l *loop) { l.partitions.own(members) })
	})
	if err != nil {
		svc.close()
		return err
	}
	ls.join(member)
	looping, endLoop := context.WithCancel(work)
	defer endLoop()
	owned.Go(func() { handOver(ctx, looping, o.nc, ls, member, endLoop) })
	owned.Go(func() { o.watchConnection(work, ls) })
	up := store.NewUpkeep()
	owned.Go(func() { up.Watch(work) })
	owned.Go(func() { o.upkeep(work, ls, up) })
	owned.Go(func() { o.lookAtSteps(work, ls, up) })
	o.cfg.Logger.Info("orchestrator started", "name", o.cfg.Name, "member", o.member)
	ls.run(looping)
	// Leaving first lets the others take over, if they have not, while what is in flight lands.
	member.Leave()
	svc.close()
	ls.close(stopPatience)
	o.cfg.Logger.Info("orchestrator stopped", "name", o.cfg.Name)
	return nil
}

// handOver, once ctx ends, lets the loop go on until the other orchestrators have its runs at hand, at most for a
// while.
func handOver(ctx, looping context.Context, nc *nats.Conn, ls *loops, member *kv.Membership, end func()) {
	select {
	case <-ctx.Done():
	case <-looping.Done():
		return
	}
	if !nc.IsConnected() {
		end() // nobody would hear of it
		return
	}
	ls.whenLeft(end)
	member.Retire()
	select {
	case <-looping.Done():
	case <-time.After(handOverPatience):
		end()
	}
}

// handOverPatience bounds how long a stop waits until others have taken over. Those that had not by then do so all the
// same; only their runs stand still meanwhile.
const handOverPatience = 5 * time.Second

var errStopped = errors.New("the orchestrator was stopped")

// stopPatience bounds how long a stop waits for jobs on their way; what is lost then is repaired by the next owner.
const stopPatience = 2 * time.Second

// watchConnection lets the loop forget and read again after every reconnect: the server may have changed, and with it
// what the ledger holds.
func (o *Orchestrator) watchConnection(ctx context.Context, ls *loops) {
	statuses := o.nc.StatusChanged(nats.CONNECTED)
	defer o.nc.RemoveStatusListener(statuses)
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-statuses:
			if !open {
				return
			}
			o.cfg.Logger.Info("reconnected: reading the ledger again")
			ls.each(func(l *loop) { l.partitions.reread() })
		}
	}
}

// upkeep lets package kv mend, at every sweep's interval, what somebody took from under the running system: streams,
// consumers of tools, registrations. Of several orchestrators each looks after the tools whose names lie in its
// partitions, so that the work is shared out and passes on with them.
func (o *Orchestrator) upkeep(ctx context.Context, ls *loops, u *kv.Upkeep) {
	ticker := time.NewTicker(o.cfg.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		mine, err := ls.owned(ctx)
		if err != nil {
			return
		}
		mended, err := u.Check(ctx, func(p int) bool { return mine[p] })
		for _, what := range mended {
			o.cfg.Logger.Warn("mended", "what", what)
		}
		if err != nil && ctx.Err() == nil {
			o.cfg.Logger.Error("something that is missing could not be mended; it is tried again", "error", err)
		}
	}
}

// lookAtSteps lets the loop know when a step stream lost what lay in it.
func (o *Orchestrator) lookAtSteps(ctx context.Context, ls *loops, u *kv.Upkeep) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		lost, err := u.Look(ctx)
		if len(lost) > 0 {
			o.cfg.Logger.Warn("step streams lost what lay in them: it is compared with what should be out", "shards", lost)
			ls.each(func(l *loop) { l.reconciler.stepsLost() })
		}
		if err != nil && ctx.Err() == nil {
			o.cfg.Logger.Warn("can't see whether step streams lost what lay in them", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Now is what an orchestrator holds at one moment. What all orchestrators say of it at about the same moment adds up.
type Now struct {
	// Partitions is how many, of 64, this orchestrator owns.
	Partitions int
	// Runs is how many it owns that are not over.
	Runs int
	// Behind is how long what has come from the ledger waits until it is taken: the longest of this process's loops.
	Behind time.Duration
	// Tools says for every registered tool how much of it is wanted: what this orchestrator holds back, and, for the
	// tools whose names lie in its partitions, what lies in their streams and what workers have. The limit is everywhere
	// the tool's.
	Tools []tool.Demand
}

// Now looks at what this orchestrator holds. It goes through all that waits in its loops, and asks the server for each
// tool that it looks after or has steps of: for a scrape every few seconds, not for more. Errors: not_ready before
// Ready, and those of the connection.
func (o *Orchestrator) Now(ctx context.Context) (*Now, error) {
	w := o.working.Load()
	if w == nil {
		return nil, fault.New(fault.NotReady, "the orchestrator has not begun")
	}
	held, err := w.loops.now(ctx)
	if err != nil {
		return nil, err
	}
	n := &Now{Partitions: held.owned.count(), Behind: held.behind}
	tools := w.registry.registered()
	asked := map[string]int{}
	for i := range tools {
		if name := tools[i].Name; held.uses[name] || held.owned.looksAfter(name) {
			asked[name] = tools[i].Shard
		}
	}
	queues, err := new(streams).of(ctx, w.store, asked)
	if err != nil {
		return nil, err
	}
	waiting, err := w.loops.waiting(ctx, queues)
	if err != nil {
		return nil, err
	}
	n.Runs = waiting.runs
	for i := range tools {
		t, queue := &tools[i], &wire.Queue{}
		if held.owned.looksAfter(t.Name) { // so that of all orchestrators one counts it
			q, there := queues[t.Name]
			if queue = nil; there {
				queue = &q
			}
		}
		n.Tools = append(n.Tools, wire.DemandOf(t.Name, t.Contract.Limit, waiting.tools[t.Name], queue))
	}
	return n, nil
}
