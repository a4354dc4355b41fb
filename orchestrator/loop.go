package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// loop holds all state of an orchestrator. Everything in it runs on one goroutine; jobs and callbacks post to it.
type loop struct {
	*env
	o   *Orchestrator
	reg *registry

	times       *ledgerTime
	announcer   *announcer
	deadLetters *deadLetters
	documents   *documents
	judge       *judge

	cursors *cursors
	gained  func() // called after the first ownership
	// served has a bit for each partition whose runs are at hand; serves is told when that changes. released is called when
	// this orchestrator is leaving and has nothing that somebody else doesn't serve.
	served   uint64
	serves   func(uint64)
	released func()

	runs       *runTable
	suspects   *suspects
	decider    *decider
	sweeps     sweeper
	reaper     *reaper
	dispatcher *dispatcher
	values     *values
	saidLost   time.Time // when the log was last told that the registry lost its tools
	memory     *memory

	driver *driver
}

func newLoop(o *Orchestrator, store storage, reg *registry, ctx context.Context) *loop {
	l := &loop{
		env: newEnv(ctx, o, store), o: o, reg: reg,
		runs: newRunTable(), cursors: &cursors{},
		sweeps: sweeper{reads: readsAtMost},
		serves: func(uint64) {}, released: func() {},
	}
	l.values, l.memory = &values{env: l.env}, &memory{env: l.env}
	l.times, l.announcer = newLedgerTime(l.env), newAnnouncer(l.env)
	l.deadLetters = &deadLetters{env: l.env, values: l.values}
	l.suspects = &suspects{env: l.env, compare: l.compare}
	l.decider = &decider{env: l.env, times: l.times}
	l.dispatcher = &dispatcher{
		env: l.env, reg: reg, values: l.values, memory: l.memory, decider: l.decider, suspects: l.suspects, runs: l.runs,
		windows: map[string]*window{}, burdens: map[string]*burden{}, bounds: shipped,
	}
	l.driver = &driver{
		env: l.env, times: l.times, timers: &timers{}, values: l.values, memory: l.memory, dispatcher: l.dispatcher, decider: l.decider,
		deadLetters: l.deadLetters, announcer: l.announcer, suspects: l.suspects, finish: l.finish,
	}
	l.reaper = newReaper(l.env, l.cursors, l.runs, l.forget)
	l.judge = &judge{env: l.env, reg: reg, values: l.values}
	l.documents = &documents{env: l.env, values: l.values, times: l.times}
	l.gained = sync.OnceFunc(func() { close(o.ready) })
	reg.follow(func(name string) { l.post(func() { l.dispatcher.limited(name) }) })
	return l
}

// run works until ctx ends.
func (l *loop) run(ctx context.Context) {
	defer l.mail.close()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	sweep := time.NewTicker(l.cfg.SweepEvery)
	defer sweep.Stop()
	purge := time.NewTicker(purgeEvery)
	defer purge.Stop()
	var items []item
	for {
		l.armTimer(timer)
		select {
		case <-ctx.Done():
			return
		case <-l.mail.wake:
			items = l.turn(items)
		case <-timer.C:
			l.driver.tick()
		case <-sweep.C:
			l.sweep(l.clock.Now())
		case <-purge.C:
			l.reaper.purge(l.clock.Now())
		}
	}
}

// turn sees to all that waits, and gives the memory back for the next turn.
func (l *loop) turn(items []item) []item {
	items = l.mail.take(items)
	for i := range items {
		if items[i].do != nil {
			items[i].do()
		} else {
			l.record(items[i].from, items[i].entry)
		}
		items[i] = item{}
	}
	return items
}

// close ends cursors and waits for jobs, at most for the time given.
func (l *loop) close(patience time.Duration) {
	for _, c := range l.cursors.all() {
		c.stop()
	}
	l.jobs.close(patience)
}

// record takes one record of the ledger from a cursor.
func (l *loop) record(from *cursor, e kv.Entry) {
	rec, ok := subjects.ParseRecord(e.Subject)
	if !ok {
		if rec.Kind == subjects.MisplacedRecord {
			l.reaper.stray(e)
		}
		return
	}
	if p := rec.Run.Partition(); l.cursors.owned[p] != from {
		return // lost since, or read again by a newer cursor
	}
	from.last = e.Seq
	if rec.Kind == subjects.PlanKind {
		l.plan(rec.Run, e, from)
		return
	}
	r := l.runs.byID[rec.Run]
	if r == nil || r.generation != rec.Generation {
		l.reaper.withoutPlan(rec, r, e)
		return
	}
	if from.caughtUp {
		l.times.heard(r, from.shard, e.Time)
	}
	r.take(l, rec, e)
}

// oldestFirst gives the runs that fit, in the order in which they were submitted.
func (t *runTable) oldestFirst(fits func(*run) bool) []*run {
	var list []*run
	for _, r := range t.byID {
		if fits(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, older)
	return list
}

// older puts runs into the order in which they were submitted, as far as there is one.
func older(a, b *run) int {
	return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.id.ID, b.id.ID))
}

// armTimer lets the loop wake at the next deadline of a run.
func (l *loop) armTimer(t *time.Timer) {
	next, ok := l.driver.timers.next()
	if !ok {
		t.Reset(time.Hour)
		return
	}
	t.Reset(max(next-l.clock.Mono(), 0))
}
