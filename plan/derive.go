package plan

import (
	"fmt"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxValues is the most bytes that all values of a run have together: 64 MiB.
const MaxValues = 64 << 20

// Effort is what deriving a value may take. It is counted, never timed, so that all who derive it agree.
type Effort struct {
	// Bytes are those of results that references go through, and of what is built.
	Bytes int64
	// Work is that of calculations, in units of about five nanoseconds.
	Work int
}

// FullEffort is the most that one value may take.
var FullEffort = Effort{Bytes: maxGoneThrough, Work: 128 << 20}

// Spent reports whether something would have taken more.
func (e Effort) Spent() bool { return e.Bytes < 0 || e.Work < 0 }

// calcWork is the least work of a calculation.
const calcWork = 256

// Derive returns what a step with a value comes to, as JSON; with a for_each what references to it see, which is Entries
// of what its items came to. result is as for Arguments. room is the most bytes that it may have, of the MaxValues of
// its run. What it takes is subtracted from effort; an error with the effort Spent says nothing of the value to whoever
// may take more.
//
// It is a pure function of the plan, the results, how steps ended and room. The answer is a fresh slice.
//
// Errors: those of Arguments but for the last, those of Items; condition_failed for a calculation that meets what it
// can't take; too_large for more than room, found before it is built, and for what is nested more than MaxDepth deep. An
// item's names the item.
func (r *Resolver) Derive(step int, room int64, effort *Effort, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	d := *r
	d.deriving, d.most, d.left, d.work = true, room, effort.Bytes, effort.Work
	value, err := d.derive(step, result)
	effort.Bytes, effort.Work = d.left, d.work
	switch {
	case err != nil:
		return nil, err
	case nesting(value) > MaxDepth:
		return nil, fault.New(fault.TooLarge, "the value would be nested more than %d deep", MaxDepth).WithHint("refer to an inner part of it")
	}
	return value, nil
}

// derive builds a step's value.
func (r *Resolver) derive(step int, result func(dep int) ([]byte, bool)) ([]byte, *fault.Error) {
	s, room := &r.plan.Steps[step], r.most
	if s.ForEach == nil {
		return r.fill(&s.args, nil, result)
	}
	r.most = MaxArguments
	list, err := r.list(step, result)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(list))
	for i, item := range list {
		room -= int64(len(entryIndex) + len(strconv.Itoa(i)) + len(entryData) + len("},"))
		r.left -= int64(len(item))
		r.most = room
		if items[i].Data, err = r.fill(&s.args, item, result); err != nil {
			err.Message = fmt.Sprintf("item %d: %s", i, err.Message)
			return nil, err
		}
		room -= int64(len(items[i].Data))
	}
	return Entries(items)
}

// calculate returns what an expression in a value comes to.
func (r *Resolver) calculate(h *hole, item []byte, result func(dep int) ([]byte, bool)) ([]byte, *fault.Error) {
	if r.work -= calcWork; r.work < 0 {
		return nil, fault.New(fault.ConditionFailed, "the calculations of the step take too long together").WithHint("split the step")
	}
	own, limits := *r, expression.ValueLimits // a copy, so that a resolver that calculates nothing need not be in the heap
	limits.Work = &own.work
	x, lost := r.plan.calcs[h.calc-1], (*fault.Error)(nil)
	value, err := x.Value(func(i int) ([]byte, bool) {
		json, ok, err := own.look(&h.targets[i], !x.Alone(i), item, result)
		if lost == nil {
			lost = err
		}
		return json, ok
	}, limits)
	*r = own // with what it remembers
	if lost != nil {
		return nil, lost
	}
	if err == nil && r.left < 0 {
		return nil, tooMuch()
	}
	return value, err
}

// ReadsAny reports whether a step's value, or the list that it has one for each item of, refers to the result of one of
// some steps.
func (s *Step) ReadsAny(of func(step int) bool) bool {
	refers := func(holes []hole) bool {
		for i := range holes {
			for k := range holes[i].targets {
				if t := &holes[i].targets[k]; t.of == itsResult && t.step != theItem && of(t.step) {
					return true
				}
			}
		}
		return false
	}
	return refers(s.args.holes) || s.ForEach != nil && refers(s.ForEach.in.holes)
}

// plainly returns the references of a hole in whose place null stands where they find nothing, each as a hole: the hole
// itself, or what a calculation refers to without anything behind "??" that ends the alternatives.
//
// Under on_missing: error only a calculation has null in their place.
func plainly(p *Plan, t *template, i int) []hole {
	h := &t.holes[i]
	switch {
	case h.def != "" || h.calc == 0 && p.OnMissing == MissingError:
		return nil
	case h.calc == 0:
		return t.holes[i : i+1]
	}
	var all []hole
	for _, u := range p.calcs[h.calc-1].Uses() {
		if u.Ended {
			continue
		}
		var x hole
		for _, k := range u.References {
			x.targets = append(x.targets, h.targets[k])
		}
		all = append(all, x)
	}
	return all
}

// nesting returns how deep JSON nests; a scalar does not.
func nesting(value []byte) (deepest int) {
	depth := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			i = jsontape.SkipString(value, i) - 1
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	return deepest
}
