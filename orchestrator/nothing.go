package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// Limits of what an outcome tells of references that found nothing. They count what the records say, so that every owner
// comes to the same warnings.
const (
	maxNothing      = 20
	maxNothingItems = 100_000   // items of for_each steps that are looked at
	maxNothingBytes = 256 << 20 // of results that lie in blobs
)

// foundNothing gives a warning for each reference that found nothing: null went to the tool in its place. It is a function
// of the plan and the records, whoever owns the run.
func (d *documents) foundNothing(ctx context.Context, r *run) (all []fault.Problem) {
	if r.plan.OnMissing == plan.MissingError {
		return nil // then the step failed, and its error says so
	}
	past := &pastValues{values: d.values, ctx: ctx, r: r, held: -1, left: maxNothingBytes}
	resolver, items := r.plan.NewResolver(), maxNothingItems
	for i := range r.plan.Steps {
		s := &r.plan.Steps[i]
		status := r.machine.StepStatus(i)
		if !s.HasRefs || status != outcome.StepSucceeded && status != outcome.StepFailed || past.unread {
			continue
		}
		if r.machine.Step(machine.Call{Step: i}, time.Time{}).Reused {
			continue // it was not executed here
		}
		told := map[string]bool{}
		tell := func(of string, found []plan.Nothing) {
			for _, n := range found {
				if len(all) < maxNothing && !told[n.Reference] && !past.unread {
					told[n.Reference] = true
					all = append(all, fault.Problem{Code: fault.UnresolvedRef, Path: n.At, Step: s.ID,
						Message: fmt.Sprintf("%s$ref:%s found nothing, so null stands in its place; %s", of, n.Reference, n.Saw)})
				}
			}
		}
		if s.ForEach == nil {
			tell("", resolver.Nothing(i, nil, past.result))
		}
		for k, item := range r.lists[i] {
			if items--; items < 0 || len(all) == maxNothing {
				break
			}
			tell(fmt.Sprintf("item %d: ", k), resolver.Nothing(i, item, past.result))
		}
	}
	return all
}

// pastValues gives the values of a finished run's steps. Of those that lie in blobs it holds one at a time.
type pastValues struct {
	values *values
	ctx    context.Context
	r      *run
	held   int
	data   []byte
	left   int64 // bytes that may still be read
	unread bool  // something was not read, so that nothing more can be said
}

func (v *pastValues) result(dep int) ([]byte, bool) {
	s := v.r.source(dep)
	switch {
	case s.missing() || s.value != nil:
		return s.value, s.value != nil
	case v.held == dep:
		return v.data, true
	}
	if v.left -= s.size(); v.left < 0 || v.unread {
		v.unread = true
		return nil, false
	}
	data, err := v.values.read(v.ctx, &s)
	if err != nil {
		v.unread = true
		return nil, false
	}
	v.held, v.data = dep, data
	return data, true
}
