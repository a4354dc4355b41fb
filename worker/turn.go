package worker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// turn decides which worker of a tool asks for steps to gather. Were all to ask, the server would hand seven steps to
// seven workers, and each would wait for others that don't come.
//
// A lease says whose turn it is: one key for the tool, which expires unless it is renewed. Whoever has it asks. It is
// passed on when all slots of its holder are taken, and where there are others also with each full batch, so that a
// load spreads over all of them. Nothing rests on the lease but the size of batches: who doesn't know that another has
// it asks as well, so a bucket that is absent, refused or silent stops nobody, and a holder that dies delays steps by
// one lease at most.
type turn struct {
	g     *gatherer
	own   wire.Gathering
	nudge chan struct{}
	quit  chan struct{}
	once  sync.Once

	mu        sync.Mutex
	seq       uint64    // of the lease, where it is held
	until     time.Time // to when it is held
	renewed   time.Time
	elsewhere time.Time // to when another has it, as far as is known
	others    time.Time // when another worker of the tool was last heard of
	announced time.Time // when this one was last heard
	again     time.Time // nobody is asked before this
	blind     bool      // nobody tells who has it
	passing   bool      // it is to be passed on
}

const (
	turnRenewal = kv.GatherLease / 3
	// turnMargin is how long before its end a lease counts as over for its holder.
	turnMargin = kv.GatherLease / 6
	// turnGrace is how long who passed the lease on leaves it to others, and turnSpread how far those that want it
	// spread out.
	turnGrace  = 20 * time.Millisecond
	turnSpread = time.Millisecond
	// turnAnnounce is how often a worker without the lease lets its holder know that it is there, which counts for
	// turnOthers.
	turnAnnounce = 20 * time.Second
	turnOthers   = time.Minute
)

func newTurn(g *gatherer) *turn {
	return &turn{
		g: g, own: wire.Gathering{ID: nuid.Next(), Worker: g.e.config.Name}, nudge: make(chan struct{}, 1),
		quit: make(chan struct{}),
	}
}

// closed reports whether this worker is to ask for nothing.
func (t *turn) closed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.passing || !t.blind && !time.Now().Before(t.until)
}

func (t *turn) wake() {
	select {
	case t.nudge <- struct{}{}:
	default:
	}
}

// end gives the lease up for good.
func (t *turn) end() { t.once.Do(func() { close(t.quit) }) }

// began hears that batches have begun, and whether that was the last that was open and full, and how many slots are
// left.
func (t *turn) began(full bool, free int) {
	t.mu.Lock()
	now := time.Now()
	if now.Before(t.until) && (free == 0 || full && now.Sub(t.others) < turnOthers) {
		t.passing = true
	}
	t.mu.Unlock()
	t.wake()
}

// heard takes what another worker of the tool has written of the lease, or tried to.
func (t *turn) heard(m *nats.Msg) {
	g, ok := wire.ParseGathering(m.Header, m.Data)
	if !ok || g.ID == t.own.ID {
		return
	}
	t.mu.Lock()
	now := time.Now()
	t.others = now
	switch {
	case now.Before(t.until): // it asks in vain
	case g.Free:
		t.elsewhere = now.Add(rand.N(turnSpread * time.Duration(1+t.g.calls.Load())))
	default:
		t.elsewhere = now.Add(kv.GatherLease)
		if t.blind { // it is not: somebody knows
			t.again = time.Time{}
		}
	}
	t.mu.Unlock()
	t.wake()
}

// run keeps the lease, or tries to get it, until the feed drains or ctx ends.
func (t *turn) run(ctx context.Context) {
	sub, err := t.g.e.w.nc.Subscribe(subjects.Gather(t.g.f.tool.def.Name), t.heard)
	if err != nil {
		t.g.e.log.Debug("the lease of the gathering worker can't be listened to", "error", err)
	} else {
		defer func() { _ = sub.Unsubscribe() }()
	}
	for wait := t.take(ctx); ; wait = t.step(ctx) {
		if t.closed() {
			t.g.hasten()
		} else {
			t.g.regulate()
		}
		timer := time.NewTimer(max(wait, time.Millisecond/4))
		select {
		case <-t.nudge:
		case <-timer.C:
		case <-t.quit:
			t.pass(ctx)
			return
		case <-ctx.Done():
			return
		}
		timer.Stop()
	}
}

// step does what there is to do now, and returns how long nothing is to be done after it.
func (t *turn) step(ctx context.Context) time.Duration {
	now := time.Now()
	t.mu.Lock()
	held, passing, elsewhere, due := now.Before(t.until), t.passing, t.elsewhere.Sub(now), turnRenewal-now.Sub(t.renewed)
	seq, quiet, again := t.seq, turnAnnounce-now.Sub(t.announced), t.again.Sub(now)
	t.mu.Unlock()
	switch {
	case passing:
		return t.pass(ctx)
	case held && due > 0:
		return due
	case held:
		return t.write(ctx, seq)
	case again > 0:
		return again
	case elsewhere > 0 && quiet > 0:
		return min(elsewhere, quiet)
	case elsewhere > 0:
		return t.write(ctx, 0) // refused, as a rule, and heard
	case t.g.free() == 0:
		return turnRenewal
	}
	return t.take(ctx)
}

// take looks whose turn it is, and takes it where it is nobody's.
func (t *turn) take(ctx context.Context) time.Duration {
	g, seq, err := t.g.e.store.Queue.Gathers(ctx, t.g.f.tool.def.Name)
	if err != nil {
		return t.without(err)
	}
	if seq == 0 || g.Free || g.ID == t.own.ID {
		return t.write(ctx, seq)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.others, t.elsewhere, t.blind = now, now.Add(kv.GatherLease), false
	return min(kv.GatherLease, max(turnAnnounce-now.Sub(t.announced), 0))
}

// write writes the lease over the message of a sequence.
func (t *turn) write(ctx context.Context, seq uint64) time.Duration {
	sent := time.Now()
	now, ok, err := t.g.e.store.Queue.Gather(ctx, t.g.f.tool.def.Name, t.own, seq)
	t.mu.Lock()
	t.announced, t.until, t.blind = sent, time.Time{}, t.blind && err != nil
	if err == nil && ok {
		t.seq, t.renewed, t.until, t.elsewhere = now, sent, sent.Add(kv.GatherLease-turnMargin), time.Time{}
	}
	t.mu.Unlock()
	switch {
	case err != nil:
		return t.without(err)
	case ok:
		return turnRenewal
	}
	return t.take(ctx) // by who was faster, or is about to be
}

// pass returns the lease back for others to take.
func (t *turn) pass(ctx context.Context) time.Duration {
	t.mu.Lock()
	seq, held := t.seq, time.Now().Before(t.until)
	t.mu.Unlock()
	free := t.own
	free.Free = true
	if held {
		_, _, _ = t.g.e.store.Queue.Gather(ctx, t.g.f.tool.def.Name, free, seq) // where it fails, it expires
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passing, t.until = false, time.Time{}
	if wait := time.Until(t.elsewhere); wait > turnGrace { // somebody has it already
		return wait
	}
	t.elsewhere = time.Now().Add(turnGrace)
	return turnGrace
}

// without goes on as long as nobody tells who has the lease.
func (t *turn) without(err error) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until, t.elsewhere, t.again, t.blind = time.Time{}, time.Time{}, time.Now().Add(kv.GatherLease), true
	t.g.e.log.Debug("this worker gathers without knowing who else does", "tool", t.g.f.tool.def.Name, "error", err)
	return kv.GatherLease
}
