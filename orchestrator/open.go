package orchestrator

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// opened is what a job found out about a run.
type opened struct {
	before  *outcome.Run // a run of this id has finished already
	newer   bool         // it was finished by a newer Stepjet
	start   *wire.Start  // read from a start record that lay in a blob
	plan    *plan.Plan
	schemas schemas
	gone    bool // the plan doesn't stand any more
	wait    bool // the registry lost its tools: nobody can say yet whether the plan is valid
	err     error
}

// judge finds out, in jobs, what a plan or a start record stands for: whether the plan is valid, what is frozen for it, and
// what it takes over from an earlier run.
type judge struct {
	*env
	reg    *registry
	values *values
}

// open finds out, beside the loop, what a run is: whether its id has a finished run already, whether its plan is valid,
// and what it needs to go on.
func (lc *lifecycle) open(r *run) {
	start := r.startEntry()
	r.recovered = start != nil
	r.phase = opening
	id, generation, asked := r.id, r.generation, extras{r.context, r.unfit, r.retryOf, r.body, r.digest, r.submitted}
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

// startEntry gives the start record among the parked ones.
func (r *run) startEntry() *entry {
	for i := range r.parked {
		if r.parked[i].rec.Kind == subjects.StartKind {
			return &r.parked[i]
		}
	}
	return nil
}

// resume prepares a run that was started before. Its plan was accepted then, so only its form is read.
func (j *judge) resume(ctx context.Context, body []byte, e *entry) opened {
	start, err := j.decodeStart(ctx, e)
	if err != nil || start.Rejected() {
		return opened{start: start, err: err}
	}
	p, report := plan.Parse(body, nil)
	if p == nil {
		return opened{err: fault.New(fault.Internal, "an accepted plan can't be read: %v", report.Problems)}
	}
	s, err := j.reg.schemasFor(ctx, p, start)
	return opened{start: start, plan: p, schemas: s, err: err}
}

func (j *judge) decodeStart(ctx context.Context, e *entry) (*wire.Start, error) {
	s, blob, err := wire.ParseStart(e.Header, e.Data)
	if blob == nil {
		return s, err
	}
	body, err := j.values.blob(ctx, blob)
	if err != nil {
		return nil, err
	}
	s, _, err = wire.ParseStart(nil, body)
	return s, err
}

// inspect meets a plan that has no start yet.
func (j *judge) inspect(ctx context.Context, id subjects.Run, generation uint64, asked extras, isNew bool) opened {
	var rejected *outcome.Run
	if !isNew {
		doc, err := j.store.History(ctx, id)
		switch {
		case err == nil && free(doc, generation):
			rejected = doc
		case err == nil:
			return opened{before: doc}
		case fault.CodeOf(err) == fault.NewerVersion:
			return opened{newer: true}
		case !errors.Is(err, &fault.Error{Code: fault.NotFound}):
			return opened{err: err}
		}
	}
	p, start, s, err := j.verdict(ctx, id, generation, asked, rejected)
	switch {
	case err != nil:
		return opened{err: err}
	case start == nil:
		return opened{wait: true}
	}
	h, data, err := j.encodeStart(ctx, id, generation, start)
	if err != nil {
		return opened{err: err}
	}
	subject := subjects.StartRecord(id, generation, j.store.Shards())
	// The fence and the record are one write: an owner that slept through the end of the run can't start it again.
	fence := &kv.Fence{Subject: subjects.PlanRecord(id, j.store.Shards()), Seq: generation}
	decision, _, err := j.store.Create(ctx, subject, h, data, fence)
	if err != nil || decision != kv.Written {
		start = nil // the stored one counts
	}
	return opened{plan: p, schemas: s, start: start, gone: err == nil && decision == kv.Gone, err: err}
}

// admit validates a plan against the registry as it is now and freezes what the run needs of it. There is no start where the
// registry has lost tools that the plan names.
func (j *judge) admit(ctx context.Context, id subjects.Run, asked extras, again *tried) (*plan.Plan, *wire.Start, schemas) {
	if problem := badName(id); problem != nil {
		return nil, &wire.Start{Problems: []fault.Problem{*problem}}, nil
	}
	catalog := j.reg.catalog(id.Tenant)
	var limits plan.Limits
	if again != nil {
		limits.Done = again.done
	}
	p, report := plan.ParseLimited(asked.body, catalog, limits)
	if missing := catalog.missing(); p == nil && len(missing) > 0 && j.reg.refresh(ctx, missing) {
		// A tool registered a moment ago may not have come here yet. The registry's own word counts.
		catalog = j.reg.catalog(id.Tenant)
		p, report = plan.ParseLimited(asked.body, catalog, limits)
	}
	start := &wire.Start{Problems: report.Problems, Warnings: report.Warnings}
	if p == nil && unknownTools(report.Problems) && j.reg.lost(ctx, catalog.missing()) {
		return nil, nil, nil
	}
	if p == nil {
		if again != nil && again.problem == nil {
			start.Problems = append([]fault.Problem{again.outgrown(asked.retryOf.Of, report.Problems)}, start.Problems...)
		}
		return nil, start, nil
	}
	var s schemas
	start.Tools, s = catalog.freeze(p)
	return p, start, s
}

// badName finds a tenant or run id that no client of ours would have made.
func badName(id subjects.Run) *fault.Problem {
	if id.Valid() {
		return nil
	}
	p := &fault.Problem{Code: fault.InvalidID, Path: "", Message: "the run id token " + strconv.Quote(id.ID) + " in the subject is not canonical"}
	p.Hint = "write [A-Za-z0-9_-] as they are and every other byte as =XX in upper-case hex; 1 to 128 bytes"
	if !subjects.ValidTenant(id.Tenant) {
		p.Message = "the tenant " + strconv.Quote(id.Tenant) + " in the subject is not valid"
		p.Hint = "a tenant is 1 to 64 of [A-Za-z0-9_-]"
	}
	return p
}

func (j *judge) encodeStart(ctx context.Context, id subjects.Run, generation uint64, start *wire.Start) (h map[string][]string, body []byte, err error) {
	h, body, err = start.Message()
	if err != nil || len(body) <= wire.InlineLimit {
		return h, body, err
	}
	handle, err := j.values.put(ctx, start.Bucket, func(unique string) string { return subjects.RunBlobName(id, generation, "start", unique) }, body)
	if err != nil {
		return nil, nil, err
	}
	return start.Handled(handle), nil, nil
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
		r.plan, r.start, r.schemas = o.plan, o.start, o.schemas
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
		if r.start, _, err = wire.ParseStart(at.Header, at.Data); r.start == nil || err != nil {
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
	if r.plan == nil || r.schemas == nil {
		lc.open(r) // another owner accepted what we would not have: its word stands
		return
	}
	now := lc.times.of(r)
	r.version = wire.RunVersion(at.Header)
	r.phase, r.resolver = running, r.plan.NewResolver().Limit(wire.InlineLimit)
	r.machine = machine.New(r.plan, machine.Start{
		Key:       r.id.Tenant + "/" + r.id.ID + "/" + strconv.FormatUint(r.generation, 10),
		Submitted: r.submitted, Started: at.Time, Contracts: contracts(r.start), Reused: takenOver(r.start.Reuse, r.plan),
	})
	lc.driver.begin(r, now)
}
