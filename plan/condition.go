package plan

import (
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Condition decides whether a step is taken (plan language, "Conditions").
type Condition struct {
	// Reads are the steps whose results it looks at: indexes, sorted and unique.
	Reads []int

	expr    *expression.Expression
	targets []target // of its references, in their order
	needs   []Need
}

// Text is the condition as written.
func (c *Condition) Text() string { return c.expr.Text() }

// Holds reports whether the condition is true, in a plan that it stands in. result is as for Arguments, and fate tells
// how a step ended. What a reference finds nothing at is nil. It is a pure function of the plan and those.
//
// Errors: condition_failed, for operands of wrong types, a result that is no boolean, and more than a condition may
// read.
func (c *Condition) Holds(
	p *Plan, result func(dep int) (json []byte, ok bool), fate func(dep int) Fate,
) (bool, *fault.Error) {
	r := Resolver{plan: p, fates: fate}
	return c.expr.True(func(i int) ([]byte, bool) { return r.look(&c.targets[i], result) }, expression.ConditionLimits)
}

// conditionReader reads the condition of one step, once all ids are known.
type conditionReader struct {
	*parser
	step int
	at   place
}

func (r *conditionReader) read(n int32) {
	r.second = true
	if r.tape[n].Kind != jsontape.String {
		r.invalid(r.at, r.hint(n), "must be a condition, written as a string, but is "+r.shown(n))
		return
	}
	x, err := expression.Compile(r.str(n), r.refs.reads)
	if err != nil {
		hint := err.Hint
		if right := r.mended(r.str(n)); right != "" {
			hint = `write "if": ` + quoteJSON(right)
		}
		r.col.addf(err.Code, r.at.String(), hint, "%s", err.Message)
		return
	}
	r.suspect(x.Text())
	c := &Condition{expr: x}
	for _, text := range x.References() {
		if t, ok := r.target(text); ok {
			c.targets = append(c.targets, t)
		}
	}
	if len(c.targets) == len(x.References()) {
		c.ask(x)
		r.plan.Steps[r.step].If = c
	}
}

// target finds the step that a reference is to.
func (r *conditionReader) target(text string) (target, bool) {
	of, start := r.refs.prefixOf(text)
	to, _, _ := r.refs.parse(text, start)
	if to.pathLength() > MaxPath {
		r.col.addf(fault.LimitExceeded, r.at.String(), "", "the path of the reference has %d bytes, at most %d are allowed",
			to.pathLength(), MaxPath)
		return target{}, false
	}
	dep, known := r.plan.ids[to.id]
	if !known {
		r.unknown(of, to)
		return target{}, false
	}
	r.depend(r.step, int(dep), r.at.String)
	return target{step: int(dep), of: of, path: to.path, text: to.text}, true
}

// unknown reports a reference to no step.
func (r *conditionReader) unknown(of aspect, to ref) {
	if !r.col.wants(fault.UnknownRef) {
		return
	}
	hint := r.idHint(r.step, to.id, func(id string) string { return fmt.Sprintf("%q", of.prefix()+id) })
	if f := r.plan.Steps[r.step].ForEach; f != nil && f.As == to.id {
		hint = "the condition is decided once, before the list is read: there is no item yet. Let a step before leave items out"
	}
	r.col.add(fault.UnknownRef, r.at.String(), fmt.Sprintf("there is no step %q", to.id), hint)
}

// hint says how a condition is written that is no string.
func (r *conditionReader) hint(n int32) string {
	switch r.tape[n].Kind {
	case jsontape.True:
		return `leave it out: a step without "if" is always taken`
	case jsontape.False:
		return "leave the step out"
	case jsontape.Object:
		if ref := r.fieldOf(n, "$ref"); ref != 0 && r.tape[ref].Kind == jsontape.String {
			return `write "if": ` + quoteJSON(refPrefix+clip(r.str(ref)))
		}
	default:
	}
	return `write "if": "$ref:a.total > 100 and $status:b == 'succeeded'"`
}

// ask notes which steps the condition reads, and what it needs of them. A reference before ?? has an alternative.
func (c *Condition) ask(x *expression.Expression) {
	for i := range c.targets {
		if t := &c.targets[i]; t.of == itsResult {
			c.Reads = append(c.Reads, t.step)
		}
	}
	slices.Sort(c.Reads)
	c.Reads = slices.Compact(c.Reads)
	for _, u := range x.Uses() {
		n := Need{Ended: u.Ended}
		for _, k := range u.References {
			if t := &c.targets[k]; t.of == itsResult {
				n.Steps = append(n.Steps, t.step)
			} else { // it is there whatever came of the step
				n.Ended = true
			}
		}
		if len(n.Steps) > 0 {
			c.needs = append(c.needs, n)
		}
	}
}
