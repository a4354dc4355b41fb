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
	// TakesInput says that it looks at the input of its plan.
	TakesInput bool
	// TakesLast says that it looks at the result of the iteration before.
	TakesLast bool

	expr    *expression.Expression
	targets []target // of its references, in their order
	needs   []Need
}

// Text is the condition as written.
func (c *Condition) Text() string { return c.expr.Text() }

// Holds reports whether the condition is true, in a plan that it stands in. result is as for Arguments, and fate tells
// how a step ended. What a reference finds nothing at is nil. It is a pure function of the plan and those.
//
// What it takes is subtracted from work, in the units of Effort.Work; nil leaves it to a condition's own bound. An error
// with less than 0 left says nothing of the condition to whoever may take more.
//
// Errors: condition_failed, for operands of wrong types, a result that is no boolean, and more than a condition may
// read or take.
func (c *Condition) Holds(
	p *Plan, work *int, result func(dep int) (json []byte, ok bool), fate func(dep int) Fate,
) (bool, *fault.Error) {
	return c.HoldsFor(p.NewResolver().Fates(fate), work, result)
}

// HoldsFor is Holds with a resolver, which may know the input of the plan.
func (c *Condition) HoldsFor(r *Resolver, work *int, result func(dep int) (json []byte, ok bool)) (bool, *fault.Error) {
	return c.HoldsOf(r, nil, work, result)
}

// HoldsOf is HoldsFor where there may be an item: in the until of a loop there is one of each item's own.
func (c *Condition) HoldsOf(
	r *Resolver, item []byte, work *int, result func(dep int) (json []byte, ok bool),
) (bool, *fault.Error) {
	limits := expression.ConditionLimits
	limits.Work = work
	return c.expr.True(func(i int) ([]byte, bool) {
		json, found, _ := r.look(&c.targets[i], true, item, result)
		return json, found
	}, limits)
}

// nothing returns the references of the condition that find nothing in results that are there, and of which it does not
// ask whether they are: before "??", or by == null and != null, they and what they lead on to. at is its place in the
// plan. It is a pure function of the plan and the results.
func (c *Condition) nothing(r *Resolver, at string, result func(dep int) (json []byte, ok bool)) (all []Nothing) {
	for i := range c.targets {
		t := &c.targets[i]
		value, ok := r.about(t, nil, result)
		if !ok || t.of != itsResult && string(value) == string(null) || c.asksFor(t) {
			continue // how the step ended says more, or the condition asks for it
		}
		if _, found, _ := r.look(t, true, nil, result); found {
			continue
		}
		stopped, stop, _ := r.lookup(t.remembered(), value, t.path)
		all = append(all, Nothing{Reference: t.text, At: at, Saw: r.saw(t, stopped, stop, true), of: t.of, decides: true})
	}
	return all
}

// asksFor reports whether a condition asks whether a reference, or what it goes into, is there.
func (c *Condition) asksFor(t *target) bool {
	for i := range c.targets {
		of := &c.targets[i]
		if c.expr.AsksFor(i) && of.step == t.step && of.of == t.of && len(of.path) <= len(t.path) &&
			slices.Equal(of.path, t.path[:len(of.path)]) {
			return true
		}
	}
	return false
}

// expressionReader reads an expression of one step, its condition or a calculation of its value, once all ids are known.
type expressionReader struct {
	*parser
	step   int
	at     func() string // where it stands
	walker *walker       // of the value that the calculation is a part of; nil for a condition
	field  string        // of a condition
	item   string        // the name of the item that a condition knows; empty for none
}

// condition reads a condition of the step; nil where something is wrong with it.
func (r *expressionReader) condition(n int32) *Condition {
	r.second = true
	if r.tape[n].Kind != jsontape.String {
		if r.col.wants(fault.InvalidValue) {
			r.col.add(fault.InvalidValue, r.at(), "must be a condition, written as a string, but is "+r.shown(n), r.hint(n))
		}
		return nil
	}
	x, targets := r.compile(r.str(n))
	if x == nil {
		return nil
	}
	c := &Condition{expr: x, targets: targets, needs: needsOf(x, targets, false)}
	for i := range c.targets {
		switch t := &c.targets[i]; {
		case t.of == itsResult && t.step != theItem:
			c.Reads = append(c.Reads, t.step)
		case t.of == itsInput:
			c.TakesInput = true
		case t.of == itsLast:
			c.TakesLast = true
		default: // how a step ended is read from nowhere, and the item is at hand
		}
	}
	slices.Sort(c.Reads)
	c.Reads = slices.Compact(c.Reads)
	r.judge(c.expr, c.targets)
	return c
}

// compile reads a text, and finds the steps that it refers to, for each of its references. It reports what is wrong, and
// returns nil then.
func (r *expressionReader) compile(text string) (*expression.Expression, []target) {
	x, err := expression.Compile(text, r.refs.reads)
	if err != nil {
		hint := err.Hint
		if right := r.mended(text); right != "" {
			hint = r.write(right)
		}
		r.col.addf(err.Code, r.at(), hint, "%s", err.Message)
		return nil, nil
	}
	r.suspect(text)
	var targets []target
	for _, text := range x.References() {
		if t, ok := r.target(text); ok {
			targets = append(targets, t)
		}
	}
	if len(targets) < len(x.References()) {
		return nil, nil
	}
	if r.walker != nil {
		r.judge(x, targets)
	}
	return x, targets
}

// write writes the expression anew, for a hint.
func (r *expressionReader) write(text string) string {
	if r.walker != nil {
		return `write {"$calc": ` + quoteJSON(text) + "}"
	}
	return `write "` + r.field + `": ` + quoteJSON(text)
}

// target finds the step that a reference is to.
func (r *expressionReader) target(text string) (target, bool) {
	of, start := r.refs.prefixOf(text)
	to, _, _ := r.refs.parse(text, start)
	to.of = of
	if to.pathLength() > MaxPath {
		r.col.addf(fault.LimitExceeded, r.at(), "", "the path of the reference has %d bytes, at most %d are allowed",
			to.pathLength(), MaxPath)
		return target{}, false
	}
	if of.isWord() {
		r.plan.Steps[r.step].TakesInput = r.plan.Steps[r.step].TakesInput || of == itsInput
		t := target{step: theInput, of: of, path: to.path, text: to.text}
		caller{r.parser}.input(&t, r.at)
		return t, true
	}
	if t, is, ok := r.itemOf(to); is {
		return t, ok
	}
	dep, known := r.plan.ids.find(to.id)
	if !known {
		r.unknown(of, to)
		return target{}, false
	}
	r.depend(r.step, int(dep), r.at)
	return target{step: int(dep), of: of, path: to.path, text: to.text}, true
}

// itemOf returns the item, where that is what a reference is to; ok is false where it means how that ended.
func (r *expressionReader) itemOf(to ref) (t target, is, ok bool) {
	w := r.walker
	switch {
	case to.id == "", w == nil && to.id != r.item, w != nil && to.id != w.item:
		return target{}, false, false
	}
	bad := itemEnds(to)
	if bad != nil && w != nil {
		w.brokenRef(bad, "/$calc")
	} else if bad != nil {
		r.col.addf(fault.InvalidRef, r.at(), bad.hint, "%s", bad.why)
	}
	return target{theItem, to.of, to.path, to.text}, true, bad == nil
}

// unknown reports a reference to no step.
func (r *expressionReader) unknown(of aspect, to ref) {
	if !r.col.wants(fault.UnknownRef) {
		return
	}
	hint := r.idHint(r.step, to.id, func(id string) string { return fmt.Sprintf("%q", of.prefix()+id) })
	for i := range to.id { // a-1, which is a name, as a difference
		if _, known := r.plan.ids.find(to.id[:i]); known && to.id[i] == '-' && i+1 < len(to.id) {
			hint = fmt.Sprintf("write `%s%s - %s` with spaces for a difference", of.prefix(), to.id[:i], to.id[i+1:])
		}
	}
	if outside := r.outside(to.id); outside != "" {
		hint = outside
	}
	if f := r.plan.Steps[r.step].ForEach; f != nil && f.As == to.id && r.field == "if" {
		hint = "the condition is decided once, before the list is read: there is no item yet. Let a step before leave items out"
	}
	r.col.add(fault.UnknownRef, r.at(), fmt.Sprintf("there is no step %q", to.id), hint)
}

// judge refuses references to what can never be there, by the same declarations as those in arguments. Like there,
// alternatives are not judged; and a condition may compare whatever is there, so only paths are.
func (r *expressionReader) judge(x *expression.Expression, targets []target) {
	w, at := walker{p: r.parser, step: r.step, place: r.at(), item: r.item}, site{bare: true}
	if r.walker != nil {
		w.calc, w.item = true, r.walker.item
	}
	judged := map[string]bool{} // by text: once, however often it stands there
	for i := range targets {
		t := &targets[i]
		if t.of != itsResult || t.step == theItem || r.plan.Steps[t.step].ForEach == nil || judged[t.text] {
			continue
		}
		judged[t.text] = w.entry(ref{id: r.plan.Steps[t.step].ID, path: t.path, text: t.text}, t.step, at, "")
	}
	for _, u := range x.Uses() {
		t := &targets[u.References[0]]
		if len(u.References) > 1 || u.Ended || t.of != itsResult || judged[t.text] {
			continue
		}
		judged[t.text] = true
		w.typed(t, at, "")
	}
}

// hint says how a condition is written that is no string.
func (r *expressionReader) hint(n int32) string {
	switch r.tape[n].Kind {
	case jsontape.True, jsontape.False:
		if r.field == "until" {
			return "leave it out: a loop without \"until\" runs \"max\" times"
		}
		if r.tape[n].Kind == jsontape.True {
			return `leave it out: a step without "if" is always taken`
		}
		return "leave the step out"
	case jsontape.Object:
		if ref := r.fieldOf(n, "$ref"); ref != 0 && r.tape[ref].Kind == jsontape.String {
			return r.write(refPrefix + clip(r.str(ref)))
		}
	default:
	}
	if r.field == "until" {
		return `write "until": "$last.status == 'done'"`
	}
	return `write "if": "$ref:a.total > 100 and $status:b == 'succeeded'"`
}
