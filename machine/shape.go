package machine

import (
	"slices"

	"github.com/stepjet/stepjet/fault"
)

// MaxDerived is the largest output of a plan, in bytes, that every owner works out by itself. A larger one is put into a
// blob and recorded, as one that has to read blobs is.
const MaxDerived = 256 << 10

// shaped reports whether it is known what the plan comes to, whose steps are all over. Where it is not, a record has to
// tell it.
func (r *Run) shaped(out *Effects) bool {
	sc := &r.root
	if sc.plan.Output == nil || sc.output != nil {
		return true
	}
	if !sc.shaping {
		if sc.output = sc.derived(r); sc.output != nil {
			return true
		}
		sc.shaping = true
		out.Shape = append(out.Shape, sc.of)
	}
	return false
}

// derived works out what a scope comes to; nil where that lies in blobs, or is too large to be derived.
func (sc *scope) derived(r *Run) *Result {
	x := &Result{Call: sc.of, Attempt: 1, ByOwner: true, Derived: true}
	if sc.iteration > 0 {
		return r.loopAround(sc).result(r, x)
	}
	if sc.lenient(r) && !sc.anyOutput(r) {
		return x
	}
	shape := sc.plan.Output
	if slices.ContainsFunc(shape.Reads, sc.standing(r).inBlob) || shape.TakesInput && sc.input.away {
		return nil
	}
	seen := sc.look(r)
	value, err := seen.resolver.Limit(MaxDerived).Output(sc.lenient(r), seen.results)
	switch {
	case err != nil && err.Code == fault.TooLarge:
		return nil // of what is too large altogether the record says so
	case err == nil && sc.outer != nil:
		i, _ := r.index(sc.of)
		err = r.stepOf(i).Template.Returns(value)
	}
	if x.Error = err; err == nil {
		x.Value, x.Size = value, int64(len(value))
	}
	return x
}

// anyOutput reports whether something succeeded that the output refers to.
func (sc *scope) anyOutput(r *Run) bool {
	return slices.ContainsFunc(sc.plan.Outputs, func(o int) bool { return r.calls[sc.at(o)].state == succeeded })
}

// lenient reports whether what the output of a scope that is over refers to may be missing, whatever the plan says: for
// it did not succeed.
func (sc *scope) lenient(r *Run) bool {
	return sc.outer == nil && r.stop != nil || sc.standing(r).bad()
}

// Lenient reports whether what the output of a scope refers to may be missing, whatever its plan says. of is its
// composite.
func (r *Run) Lenient(of Call) bool { return r.scopeFor(of).lenient(r) }

// Shaping reports whether all steps of a scope are over, and a record is to tell what it comes to. of is its composite.
func (r *Run) Shaping(of Call) bool {
	sc := r.scopeFor(of)
	if sc == nil || !sc.shaping || sc.output != nil {
		return false
	}
	i, _ := r.index(of)
	return sc.outer == nil || r.calls[i].state == closing
}

// Output returns what the plan came to that has an output, nil for one that has none, or while the run goes on. It has
// neither value nor handle where there was nothing that it could be made of.
func (r *Run) Output() *Result { return r.root.output }

// applyShape takes the record of what a scope comes to.
func (r *Run) applyShape(rec *Record, out *Effects) {
	t := rec.Told
	of := t.Call
	if t.Output.Call = of; !r.Shaping(of) {
		return
	}
	sc := r.scopeFor(of)
	sc.output = t.Output
	if sc.round > 0 {
		i, _ := r.index(of)
		agentAround(&r.tree, sc).shaped(r, i, sc, rec.Time, out)
	} else if sc.outer != nil {
		i, _ := r.index(of)
		r.endWith(i, t.Output, rec.Time, out)
	}
}
