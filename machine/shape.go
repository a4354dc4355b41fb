package machine

import (
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// MaxDerived is the largest output of a plan, in bytes, that every owner works out by itself. A larger one is put into a
// blob and recorded, as one that has to read blobs is.
const MaxDerived = 256 << 10

// shaped reports whether it is known what a scope comes to whose steps are all over. Where it is not, a record has to
// tell it.
func (r *Run) shaped(sc *scope, out *Effects) bool {
	if sc.plan.Output == nil || sc.output != nil {
		return true
	}
	if !sc.shaping {
		if sc.output = r.derived(sc); sc.output != nil {
			return true
		}
		sc.shaping = true
		out.Shape = append(out.Shape, ThePlan)
	}
	return false
}

// derived works out what a scope comes to; nil where that lies in blobs, or is too large to be derived.
func (r *Run) derived(sc *scope) *Result {
	none := &Result{Call: Call{Step: ThePlan}, Attempt: 1}
	if !r.comesToSomething(sc) {
		return none
	}
	if slices.ContainsFunc(sc.plan.Output.Reads, r.standing(sc).inBlob) {
		return nil
	}
	resolver := sc.plan.NewResolver().Limit(MaxDerived).Fates(func(d int) plan.Fate { return r.Fate(sc.first + d) })
	value, err := resolver.Output(r.Lenient(), seen(r, sc))
	switch {
	case err != nil && err.Code == fault.TooLarge:
		return nil // of what is too large altogether the record says so
	case err != nil:
		none.Error = err
	default:
		none.Value, none.Size = value, int64(len(value))
	}
	return none
}

// comesToSomething reports whether a scope that is over has an output: it succeeded, or something that the output
// refers to did.
func (r *Run) comesToSomething(sc *scope) bool {
	return !r.Lenient() || slices.ContainsFunc(sc.plan.Outputs, func(o int) bool {
		return r.calls[sc.first+o].state == succeeded
	})
}

// Lenient reports whether what the output of a run that is over refers to may be missing, whatever the plan says: for
// the run did not succeed.
func (r *Run) Lenient() bool { return r.stop != nil || r.standing(&r.root).bad() }

// Shaping reports whether all steps are over, and a record is to tell what the plan comes to.
func (r *Run) Shaping() bool { return r.root.shaping && r.root.output == nil }

// Output returns what the plan came to that has an output, nil for one that has none, or while the run goes on. It has
// neither value nor handle where there was nothing that it could be made of.
func (r *Run) Output() *Result { return r.root.output }

// applyShape takes the record of what a plan comes to.
func (r *Run) applyShape(t *Told) {
	if !r.Shaping() {
		return
	}
	r.root.output = t.Output
}
