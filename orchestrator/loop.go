package orchestrator

import (
	"context"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// loop routes what comes to those who handle it. All of them run on its one goroutine; jobs and callbacks post to it.
type loop struct {
	*env
	cursors     *cursors
	runs        *runTable
	times       *ledgerTime
	values      *values
	announcer   *announcer
	decider     *decider
	dispatcher  *dispatcher
	deadLetters *deadLetters
	driver      *driver
	documents   *documents
	questions   *questions
	reaper      *reaper
	lifecycle   *lifecycle
	partitions  *partitions
	reconciler  *reconciler
}

// newLoop builds its parts from the bottom up: each knows those before it. Six functions tell those above.
func newLoop(ctx context.Context, p *self, store storage, reg *registry, in *shared) *loop {
	e := newEnv(ctx, p, store)
	l := &loop{env: e, cursors: &cursors{}, runs: newRunTable(), times: newLedgerTime(e), values: &values{env: e, cache: in.cache}, announcer: newAnnouncer(e)}
	memory, suspects := &memory{env: e, room: in.room}, &suspects{env: e}
	l.decider = newDecider(e, l.times)
	l.dispatcher = &dispatcher{
		env: e, reg: reg, values: l.values, memory: memory, decider: l.decider, suspects: suspects, runs: l.runs,
		tools: in.tools, tenants: in.tenants, neighbours: in.neighbours, outgoing: &outgoing{},
		windows: map[string]*window{}, burdens: map[string]*burden{}, bounds: shipped,
	}
	l.deadLetters = &deadLetters{env: e, values: l.values}
	l.dispatcher.agentry = &agentry{env: e, values: l.values, memory: memory, decider: l.decider, announcer: l.announcer, inline: wire.InlineLimit, many: manyCalls}
	sends := &sinks{env: e, values: l.values, memory: memory, agentry: l.dispatcher.agentry}
	l.questions = &questions{
		env: e, values: l.values, memory: memory, announcer: l.announcer, agentry: l.dispatcher.agentry,
		runs: l.runs, cursors: l.cursors, reg: reg,
	}
	l.driver = &driver{
		env: e, times: l.times, timers: &timers{}, values: l.values, memory: memory, dispatcher: l.dispatcher, decider: l.decider,
		deadLetters: l.deadLetters, announcer: l.announcer, sinks: sends, suspects: suspects, reg: reg, cursors: l.cursors,
		evaluator: &evaluator{env: e, values: l.values, memory: memory, agentry: l.dispatcher.agentry}, questions: l.questions, letGoFrom: letGoFrom,
	}
	l.documents = &documents{env: e, values: l.values, times: l.times}
	l.reaper = newReaper(e, l.cursors, l.runs)
	l.lifecycle = &lifecycle{
		env: e, runs: l.runs, cursors: l.cursors, times: l.times, memory: memory, judge: &judge{env: e, reg: reg, values: l.values}, driver: l.driver,
		dispatcher: l.dispatcher, documents: l.documents, deadLetters: l.deadLetters, sinks: sends, announcer: l.announcer, reaper: l.reaper,
	}
	l.partitions = &partitions{
		env: e, member: p.member, cursors: l.cursors, runs: l.runs, lifecycle: l.lifecycle, reaper: l.reaper, outgoing: l.dispatcher.outgoing,
		worth: worthACursor,
	}
	l.reconciler = &reconciler{
		env: e, runs: l.runs, suspects: suspects, lifecycle: l.lifecycle, driver: l.driver, dispatcher: l.dispatcher,
		decider: l.decider, reaper: l.reaper, reads: readsAtMost,
	}
	l.driver.evaluator.over = l.reconciler.over
	l.driver.finish, l.reaper.forget, suspects.compare = l.lifecycle.finish, l.lifecycle.forget, l.reconciler.compare
	l.partitions.alone = l.reconciler.alone
	l.dispatcher.outgoing.over = func() { l.post(l.partitions.sent) }
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
			l.reconciler.sweep(l.clock.Now())
			l.questions.sweep()
		case <-purge.C:
			l.reaper.purge(l.clock.Now())
		}
	}
}

// turn handles all that waits, and returns the memory for the next turn.
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
	if !from.caughtUp {
		from.lay++
	}
	if rec.Kind == subjects.PlanKind {
		l.lifecycle.submitted(rec.Run, e, from)
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
	l.lifecycle.take(r, rec, e)
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

// shared is what the loops of a process have in common.
type shared struct {
	cache      *blobCache
	room       *memoryRoom
	tools      *pools // nil where there is one loop
	tenants    *pools
	neighbours *neighbours
}

func newShared(loops int) *shared {
	s := &shared{cache: &blobCache{}, room: &memoryRoom{}, neighbours: &neighbours{}}
	if loops > 1 {
		s.tools, s.tenants = &pools{byName: map[string]*pool{}}, &pools{byName: map[string]*pool{}}
	}
	return s
}
