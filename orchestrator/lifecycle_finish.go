package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// view is the run as it is now, for a job: what the loop forgets or works out meanwhile, it doesn't share.
func (r *run) view() *run {
	v := *r
	v.derivable = nil
	if r.machine != nil {
		v.machine = r.machine.View()
	}
	return &v
}

// finish writes the history document of a run whose last step is decided, then tells whoever waits. The machine isn't
// touched by the loop any more: it ignores what comes after the last deciding record.
func (lc *lifecycle) finish(r *run) {
	r.people.stopped() // whose stop was not read by now comes too late
	view := r.view()
	missing := lc.deadLetters.missing(r)
	account, size := lc.dispatcher.agentry.accounts(r)
	send, also := lc.sinks.unsent(r)
	lc.memory.reserve(view.weight()+size+also, func(ctx context.Context) {
		if err := lc.deadLetters.writeAll(ctx, missing); err != nil { // a dead letter stands before its run is over
			lc.post(func() { lc.finished(r, nil, err) })
			return
		}
		send(ctx) // likewise, or its sink can't take it
		doc := lc.documents.of(ctx, view, account)
		if ctx.Err() != nil {
			return
		}
		stands, err := lc.stand(ctx, view.id, view.bucket(), doc)
		if err == nil && stands == doc {
			lc.tell.finish(view, doc)
		}
		if err == nil && view.rejected {
			lc.dismiss(ctx, view.id, view.generation)
		}
		lc.post(func() {
			lc.finished(r, stands, err)
			if view.rejected {
				lc.reaper.dismissed(r, view.lastSeq)
			}
		})
	})
}

// finished takes up what a run came to: doc is the document that stands, nil where that is none of this run's any more.
func (lc *lifecycle) finished(r *run, doc *outcome.Run, err error) {
	if r.phase != finishing {
		if doc != nil && err == nil && r.rejected {
			lc.announcer.end(r.id, r.client, doc) // its id was so free that the next plan came before this
		}
		return
	}
	if err != nil {
		if lc.ctx.Err() == nil {
			lc.log.Error("an outcome can't be stored: trying again", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", err)
			lc.later(time.Second, func() {
				if r.phase == finishing {
					lc.finish(r)
				}
			})
		}
		return
	}
	if doc != nil {
		lc.announcer.end(r.id, r.client, doc)
	}
	if r.rejected { // it has left the ledger
		lc.forget(r)
		return
	}
	if doc == nil {
		lc.forget(r)
		lc.reaper.orphan(r.id, r.generation)
		return
	}
	r.phase, r.doneAt = finished, lc.clock.Now()
	lc.driver.questions.over(r)
	lc.dispatcher.releaseAll(r)
	lc.announcer.forget(r)
	r.drop()
	lc.reaper.finished(r)
}

// answerAgain meets a plan whose run id has finished before: the same plan gets the same outcome, another a conflict.
// Either way the new plan record goes.
func (lc *lifecycle) answerAgain(r *run, before *outcome.Run) {
	switch {
	case before.Generation == r.generation && before.Status != outcome.Rejected:
		// Our own: finished, and this process had not read so far.
		r.phase, r.doneAt = finished, lc.clock.Now()
		r.drop()
		lc.announcer.end(r.id, r.client, before)
		lc.reaper.finished(r)
		return
	case before.Generation > r.generation: // this one was over before that could be submitted
	case before.Digest == r.digest:
		lc.announcer.end(r.id, r.client, before)
	default:
		lc.announcer.conflict(r.id, r.client, before.Digest, r.digest)
	}
	id, generation := r.id, r.generation
	lc.forget(r)
	lc.reaper.undismissed(id, generation)
}

// stand writes the document of a run that is over and returns the one that stands for it then: its own, another
// owner's, or that of an earlier run of the id that was not rejected. It returns nil where a later plan of the id has
// its outcome already: this run was over before that plan could be submitted.
//
// The rejection of an earlier plan is removed up to its own sequence, so that nothing newer goes with it, and the
// document is created like any other: of all who do so at once, one writes it.
func (lc *lifecycle) stand(ctx context.Context, id subjects.Run, bucket string, doc *outcome.Run) (*outcome.Run, error) {
	for ctx.Err() == nil {
		if created, err := lc.storeDocument(ctx, id, bucket, doc); err != nil || created {
			return doc, err
		}
		there, seq, err := lc.store.HistoryAt(ctx, id)
		switch {
		case errors.Is(err, &fault.Error{Code: fault.NotFound}): // removed meanwhile, to make room
		case err != nil:
			return nil, err
		case there.Generation > doc.Generation:
			return nil, nil
		case !free(there, doc.Generation):
			return lc.store.History(ctx, id) // its word is announced
		default:
			if err := lc.store.PurgeHistory(ctx, id, seq); err != nil {
				return nil, err
			}
		}
	}
	return nil, context.Cause(ctx)
}

// dismiss removes a rejected run from the ledger, so that its id is free before anybody is told. Where that fails, it
// is removed with what has no plan.
func (lc *lifecycle) dismiss(ctx context.Context, id subjects.Run, generation uint64) {
	if err := lc.store.PurgeRun(ctx, id, generation); err != nil && ctx.Err() == nil {
		lc.log.Warn("a rejected run could not be removed from the ledger; it is tried again", "tenant", id.Tenant, "run", id.Plain(), "error", err)
		lc.post(func() { lc.reaper.undismissed(id, generation) })
	}
}

// storeDocument writes the document, without what its items came to one by one where it is too large with that, and without
// what is no JSON.
func (lc *lifecycle) storeDocument(ctx context.Context, id subjects.Run, bucket string, doc *outcome.Run) (created bool, err error) {
	created, err = lc.store.CreateHistory(ctx, id, bucket, doc)
	if fault.CodeOf(err) == fault.InvalidRecord && outcome.Withhold(doc) {
		lc.log.Error("a run's document was no JSON: what is none is left out", "tenant", id.Tenant, "run", id.Plain())
		created, err = lc.store.CreateHistory(ctx, id, bucket, doc)
	}
	if fault.CodeOf(err) == fault.TooLarge {
		for i := range doc.Steps {
			doc.Steps[i].Items = nil
		}
		created, err = lc.store.CreateHistory(ctx, id, bucket, doc)
	}
	return created, err
}

// weight is about how much memory it takes to write a run's document: its outcome, put together, and the whole of it.
func (r *run) weight() int64 {
	if r.machine == nil {
		return 3 * int64(len(r.body))
	}
	total := int64(0)
	if x := r.machine.Output(); x != nil {
		total = x.Size
	}
	p, of := r.machine.Scope(0)
	for _, n := range p.Outputs {
		if res := r.machine.Result(machine.Call{Step: of.Of(n)}); res != nil {
			total += res.Size
		}
	}
	return 3 * (min(total, maxOutcome) + min(machine.Away(r.machine), maxInline) + int64(len(r.body)) + 512*int64(r.machine.Stats().Steps))
}
