package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A rejected run leaves its id free. Its history stands until a later plan of the id has an outcome, which then takes its
// place; its plan leaves the ledger at once, so that the ledger takes the next one. Every plan has a higher generation than
// those before it, and all that is told of a run names its generation. So whoever submitted a plan knows the outcomes of
// earlier ones from its own, and owners who are late know what is none of theirs any more (ADR 10).

// rejectionStays is how long the same bytes get the same rejection again: whoever missed the answer to a submission sends
// the plan once more, and is to learn what became of it. Beyond that, the tool that was missing may be there.
const rejectionStays = 10 * time.Second

// free reports whether a document leaves its run id to a plan of a generation.
func free(doc *outcome.Run, generation uint64) bool {
	return doc.Status == outcome.Rejected && doc.Generation < generation
}

// sameAgain reports whether a plan gets a rejection again that an earlier one got. Both times are the ledger's, so that all
// owners come to the same.
func sameAgain(doc *outcome.Run, digest string, submitted time.Time) bool {
	return doc.Digest == digest && doc.Outcome != nil && len(doc.Outcome.Problems) > 0 && submitted.Sub(doc.Finished).Abs() < rejectionStays
}

// verdict is admit and extras together. before is the rejection that stands under the run id; nil where there is none.
func (j *judge) verdict(ctx context.Context, id subjects.Run, generation uint64, asked extras, before *outcome.Run) (*plan.Plan, *wire.Start, schemas, error) {
	bucket := j.store.BucketOf(id.Tenant)
	if before != nil && sameAgain(before, asked.digest, asked.submitted) {
		return nil, &wire.Start{Bucket: bucket, Problems: before.Outcome.Problems, Warnings: before.Outcome.Warnings, Since: before.Finished, Later: true}, nil, nil
	}
	var again *tried
	if asked.retryOf.Of != "" {
		var err error
		if again, err = j.tries(ctx, id, asked); err != nil {
			return nil, nil, nil, err
		}
	}
	p, start, s := j.admit(ctx, id, asked, again)
	if start == nil {
		return nil, nil, nil, nil // it can't be judged yet
	}
	start.Later, start.Bucket = before != nil, bucket
	if p == nil {
		return nil, start, nil, nil
	}
	return p, start, s, j.extras(ctx, id, generation, p, start, asked, again)
}

// stand writes the document of a run that is over and gives the one that stands for it then: its own, another owner's, or
// that of an earlier run of the id that was not rejected. It gives nil where a later plan of the id has its outcome already:
// this run was over before that plan could be submitted.
//
// The rejection of an earlier plan is removed up to its own sequence, so that nothing newer goes with it, and the document
// is created like any other: of all who do so at once, one writes it.
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

// dismiss removes a rejected run from the ledger, so that its id is free before anybody is told. Where that fails, it is
// removed with what has no plan.
func (lc *lifecycle) dismiss(ctx context.Context, id subjects.Run, generation uint64) {
	if err := lc.store.PurgeRun(ctx, id, generation); err != nil && ctx.Err() == nil {
		lc.log.Warn("a rejected run could not be removed from the ledger; it is tried again", "run", id.Plain(), "error", err)
		lc.post(func() { lc.reaper.orphan(id, generation) })
	}
}
