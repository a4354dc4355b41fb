package orchestrator

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// lifecycle takes runs from their plan to their outcome: it opens, begins, finishes and forgets them.
type lifecycle struct {
	*env
	runs        *runTable
	cursors     *cursors
	times       *ledgerTime
	memory      *memory
	judge       *judge
	driver      *driver
	dispatcher  *dispatcher
	documents   *documents
	deadLetters *deadLetters
	sinks       *sinks
	announcer   *announcer
	reaper      *reaper

	saidLost time.Time // when the log was last told that the registry lost its tools
}

// submitted takes a plan record: a new run, or one that is known.
func (lc *lifecycle) submitted(id subjects.Run, e kv.Entry, from *cursor) {
	if old := lc.runs.byID[id]; old != nil {
		if old.generation >= e.Seq {
			return
		}
		lc.forget(old)                       // purged, and submitted again
		lc.reaper.orphan(id, old.generation) // of which a purge by sequence may have left some
	}
	asked, unfit := wire.ParsePlan(e.Header)
	if asked.Trace == (wire.Trace{}) {
		asked.Trace = wire.TraceOfRun(id, e.Seq, lc.cfg.TraceShare)
	}
	r := &run{
		identity: identity{
			id: id, generation: e.Seq, submitted: e.Time, body: apart(e.Data), digest: plan.Digest(e.Data),
			client: asked.Client, trace: asked.Trace, retryOf: asked.Retry, context: asked.Context, unfit: unfit,
			permissions: asked.Permissions,
		},
		lastSeq: e.Seq, touched: lc.clock.Now(), timer: -1,
	}
	lc.runs.add(r)
	if wire.KindPlan.Newer(e.Header) {
		lc.leaveAlone(r)
		return
	}
	if from.caughtUp {
		r.live = true
		lc.times.heard(r, from.shard, e.Time)
		lc.open(r)
	}
}

// recordNeeds makes sure that what a run needs is recorded that this orchestrator has to leave alone, so that it goes
// to one that knows it: somebody may have removed the record. Where that fails, the next who meets such a run tries it.
func (lc *lifecycle) recordNeeds(needs []string) {
	lc.job(func(ctx context.Context) {
		if err := lc.store.RecordNeeds(ctx, needs); err != nil && ctx.Err() == nil {
			lc.log.Warn("what a run needs could not be recorded", "needs", needs, "error", err)
		}
	})
}

// leaveAlone keeps hands off a run that a newer Stepjet wrote of. An instance that knows its version goes on with it.
func (lc *lifecycle) leaveAlone(r *run) {
	r.phase = foreign
	r.parked, r.body = nil, nil
	lc.driver.timers.set(r, time.Time{})
	lc.log.Warn("a run was written by a newer version and is left alone", "tenant", r.id.Tenant, "run", r.id.Plain())
}

// forget drops a run from memory.
func (lc *lifecycle) forget(r *run) {
	r.phase = forgotten
	lc.leftOpening(r)
	lc.dispatcher.releaseAll(r)
	lc.driver.timers.set(r, time.Time{})
	lc.runs.remove(r)
	lc.announcer.forget(r)
	r.drop()
}

// take takes one record of this generation. Only who is an orchestrator may write beside "step.": what a newer one has
// written there makes this one leave the run alone. Below "step." whoever hosts a tool may write, so nothing there
// does.
func (lc *lifecycle) take(r *run, rec subjects.Record, e kv.Entry) {
	r.lastSeq = max(r.lastSeq, e.Seq)
	switch rec.Kind {
	case subjects.NoteKind, subjects.StrayRecord:
		return // notes are for workers; they decide nothing
	case subjects.ClaimKind: // is for workers and the sweep, but for who may hand over steps of an agent's answer
		if !strings.HasSuffix(rec.Attempt.Step, "/"+plan.PlannerStep) || r.plan != nil && !r.has(rec.Attempt) {
			return
		}
	case subjects.StepKind:
		if r.plan != nil && !r.has(rec.Attempt) {
			return
		}
	default:
		kind := wire.KindStop
		switch rec.Kind {
		case subjects.StartKind:
			kind = wire.KindStart
		case subjects.ToldKind:
			kind = wire.KindTold
		case subjects.AnswerKind:
			kind = wire.KindAnswered
		case subjects.AmendKind:
			kind = wire.KindAmend
		case subjects.RoundKind:
			kind = wire.KindRound
		case subjects.SayKind:
			kind = wire.KindSay
		default:
		}
		if rec.Kind == subjects.UnknownRecord || !kind.Known(e.Header) {
			if r.phase != finishing && r.phase != finished {
				lc.leaveAlone(r)
			}
			return
		}
		needs := wire.RecordNeeds(e.Header, e.Data)
		if (rec.Kind == subjects.AmendKind || rec.Kind == subjects.RoundKind) && !lc.cfg.Store.Knows.All(needs) {
			if r.phase != finishing && r.phase != finished {
				lc.leaveAlone(r)
				lc.recordNeeds(needs)
			}
			return
		}
	}
	r.touched = lc.clock.Now()
	switch r.phase {
	case replaying:
		r.replayed = max(r.replayed, e.Seq)
		r.parked = append(r.parked, entry{rec, e})
	case opening:
		r.parked = append(r.parked, entry{rec, e})
	case awaiting:
		r.parked = append(r.parked, entry{rec, e})
		if rec.Kind == subjects.StartKind {
			lc.begin(r)
		}
	case running:
		lc.driver.take(r, entry{rec, e})
	default: // the rest means nothing here
	}
}

// open finds out, beside the loop, what a run is: whether its id has a finished run already, whether its plan is valid,
// and what it needs to go on.
func (lc *lifecycle) open(r *run) {
	start := r.startEntry()
	r.recovered = start != nil
	r.phase = opening
	id, generation, asked := r.id, r.generation, r.identity
	isNew := r.isNew()
	quiet := r.opener != nil && r.quiet(lc.times.of(r))
	lc.job(func(ctx context.Context) {
		var o opened
		if start != nil {
			if quiet {
				o.before = lc.judge.ended(ctx, id, generation)
			}
			if o.before == nil {
				o = lc.judge.resume(ctx, asked.body, start)
			}
		} else {
			o = lc.judge.inspect(ctx, id, generation, asked, isNew)
		}
		lc.post(func() { lc.opened(r, o) })
	})
}

// startEntry returns the start record among the parked ones.
func (r *run) startEntry() *entry {
	for i := range r.parked {
		if r.parked[i].rec.Kind == subjects.StartKind {
			return &r.parked[i]
		}
	}
	return nil
}

// opened takes a job's findings back into the loop.
func (lc *lifecycle) opened(r *run, o opened) {
	lc.leftOpening(r)
	if r.phase != opening {
		return // forgotten, or left alone, meanwhile
	}
	switch {
	case lc.ctx.Err() != nil:
	case o.err != nil:
		lc.log.Error("can't open a run: trying again", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", o.err)
		lc.openLater(r)
	case o.wait:
		lc.sayLost()
		lc.openLater(r)
	case o.newer:
		lc.leaveAlone(r)
	case o.gone: // another ran it, and purged perhaps only the half of it
		lc.forget(r)
		lc.reaper.orphan(r.id, r.generation)
	case o.before != nil:
		lc.answerAgain(r, o.before)
	default:
		r.plan, r.start, r.schemas, r.agents = o.plan, o.start, o.schemas, o.agents
		r.phase = awaiting
		if r.startEntry() != nil {
			lc.begin(r)
		}
	}
}

func (lc *lifecycle) openLater(r *run) {
	lc.later(time.Second, func() {
		if r.phase == opening {
			lc.open(r)
		}
	})
}

// begin follows the start record, whoever wrote it.
func (lc *lifecycle) begin(r *run) {
	at := r.startEntry()
	if r.start == nil {
		var err error
		if r.start, _, err = lc.judge.reg.starts.Parse(at.Header, at.Data); r.start == nil || err != nil {
			lc.open(r) // large, or unreadable: a job handles it
			return
		}
	}
	if r.start.Rejected() {
		r.rejected, r.judged = true, at.Time
		if !r.start.Since.IsZero() {
			r.judged = r.start.Since
		}
		r.phase = finishing
		lc.finish(r)
		return
	}
	if needs := r.start.Needs; !lc.cfg.Store.Knows.All(needs) {
		lc.leaveAlone(r)
		lc.recordNeeds(needs)
		return
	}
	if r.plan == nil || r.schemas == nil || r.agents == nil && slices.Contains(r.start.Needs, wire.Agents) {
		lc.open(r) // another owner accepted what we would not have: its word stands
		return
	}
	now := lc.times.of(r)
	r.version = lc.cfg.Store.Knows.Records(r.start.Needs)
	r.phase, r.resolver = running, r.plan.NewResolver().Limit(wire.InlineLimit).Fates(r.fate)
	r.machine = machine.New(r.plan, machine.Start{
		Key:       r.id.Tenant + "/" + r.id.ID + "/" + strconv.FormatUint(r.generation, 10),
		Submitted: r.submitted, Started: at.Time, Contracts: contracts(r.start), Reused: takenOver(r.start.Reuse, r.plan),
		ReusedWithin: takenOverWithin(r.start.Reuse), EachGuard: slices.Contains(r.start.Needs, wire.EachGuard), AgentEnds: slices.Contains(r.start.Needs, wire.AgentEnds),
	})
	r.uncompared = !r.recovered && !r.submitted.After(lc.cursors.alone[r.id.Partition()])
	lc.driver.begin(r, now)
}

// leftOpening notes that a run is open, or forgotten before it was.
func (lc *lifecycle) leftOpening(r *run) {
	c := r.opener
	if c == nil {
		return
	}
	r.opener = nil
	c.opening--
	lc.post(c.next) // not here: other runs may be about to be forgotten
}

// quietFor is how long a run that is taken over must have had no record to be taken for one that is over: then its
// history is looked for before anything else is done for it.
const quietFor = 2 * time.Second

// quiet reports whether nothing was recorded of a run lately.
func (r *run) quiet(now time.Time) bool {
	last := r.submitted
	if n := len(r.parked); n > 0 {
		last = r.parked[n-1].Time
	}
	return now.Sub(last) > quietFor
}

// sayLost tells the log, now and then, why plans wait.
func (lc *lifecycle) sayLost() {
	if now := lc.clock.Now(); now.Sub(lc.saidLost) > 10*time.Second {
		lc.saidLost = now
		lc.log.Warn("the tool registry has lost tools that were registered: plans that name them wait until workers, or stepjet tools apply, register them again")
	}
}
