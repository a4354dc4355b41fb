package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// ForEach says that a step runs once for each item of a list (plan language, "for_each").
type ForEach struct {
	// As is the name of the item in references: a step's id in form, but no step's. "item" where the plan names none.
	As string

	in template
}

const (
	// TheInput stands in the place of a step's index where the input of the plan is meant.
	TheInput = -2
	// TheLast likewise, where the result of the iteration before is.
	TheLast = -3
)

const (
	// theItem stands in the place of a step's index where a reference means the item.
	theItem = -1
	// theInput likewise, where it is a word alone: the input of the plan, or what an iteration knows.
	theInput = TheInput

	defaultAs = "item"
)

// forEach reads what of a step's for_each stands by itself: all but the list. A for_each that is wrong still makes the
// step one, so that references to items and entries raise no second problem.
func (p *parser) forEach(i int) {
	n := p.steps[i].forEach
	if n == 0 {
		return
	}
	f := &ForEach{As: defaultAs}
	p.plan.Steps[i].ForEach = f
	if p.tape[n].Kind != jsontape.Object {
		return // said where its list is read
	}
	at := p.below(p.stepAt(i), n)
	m := p.fields(forEachLevel, n, at)
	p.steps[i].in, p.steps[i].as = m[forEachIn], m[forEachAs]
	n = m[forEachAs]
	switch {
	case n == 0:
	case p.tape[n].Kind != jsontape.String:
		p.invalid(p.below(at, n), `write "as": "item"`, "must be a string, but is "+p.shown(n))
	default:
		if f.As = p.str(n); !subjects.ValidStepID(f.As) {
			p.invalid(p.below(at, n), strings.Replace(idGrammar(f.As), "an id", "it", 1), fmt.Sprintf("%q is no name for an item", clip(f.As)))
		}
	}
}

// list reads the list of a for_each, once all ids are known, and gives the number of references in it.
func (p *parser) list(i int) (refs int) {
	f := p.plan.Steps[i].ForEach
	if f == nil {
		return 0
	}
	p.nameTaken(i)
	n := p.steps[i].in
	if n == 0 {
		p.noList(i)
	}
	if n == 0 || !p.isList(i, n) {
		p.steps[i].unsure = true
		return 0
	}
	w := walker{p: p, step: i, src: p.src, tape: p.tape, root: n, list: true}
	w.compile(&f.in)
	if f.in.whole && f.in.holes[0].def != "" {
		p.col.addf(fault.InvalidRef, p.listAt(i).String(), "leave it out; where there is no list, the step fails with unresolved_ref",
			"the list can't be %s: that is no array", clip(f.in.holes[0].def))
	}
	return w.refs
}

// noList reports a for_each without a list.
func (p *parser) noList(i int) {
	n := p.steps[i].forEach
	at := p.below(p.stepAt(i), n)
	if p.tape[n].Kind != jsontape.Object {
		in := cmp.Or(p.listOf(i, n), `"$ref:<id>.<path>"`)
		p.invalid(at, fmt.Sprintf(`write "for_each": {"in": %s, "as": "item"}`, in), "must be an object, but is "+p.shown(n))
		return
	}
	hint := `write "in": "$ref:<id>.<path>", or a JSON array`
	for k := n + 1; k < p.tape[n].Next; k = p.tape[k+1].Next {
		name := p.keyName(k)
		if in := p.listOf(i, k+1); in != "" && forEachLevel.number(name) < 0 {
			hint = fmt.Sprintf(`write "in": %s; %q is not known`, in, clip(name))
			p.col.blameAt(string(jsontape.AppendToken([]byte(at.String()), name)))
			break
		}
	}
	p.invalid(at, hint, "for_each names no list")
}

// listOf writes the list of a for_each that a value seems to be; empty for what is none.
func (p *parser) listOf(i int, n int32) string {
	w := walker{p: p, step: i, src: p.src, tape: p.tape, root: n, list: true}
	var at site
	var ref string
	switch p.tape[n].Kind {
	case jsontape.Array:
		return p.value(n)
	case jsontape.String:
		ref = strings.TrimPrefix(p.str(n), refPrefix)
	case jsontape.Object:
		key, value, only := w.onlyKey(n)
		if !only || key != "$ref" || p.tape[value].Kind != jsontape.String {
			return ""
		}
		ref, at.object = p.str(value), true
	default:
		return ""
	}
	return w.likely(ref, &at)
}

// asFrom says that an item's name stands under another key than "as", if id is that name.
func (p *parser) asFrom(i int, id string) string {
	n := p.steps[i].forEach
	if n == 0 || p.tape[n].Kind != jsontape.Object || p.steps[i].as != 0 {
		return ""
	}
	for k := n + 1; k < p.tape[n].Next; k = p.tape[k+1].Next {
		if name := p.keyName(k); p.tape[k+1].Kind == jsontape.String && p.str(k+1) == id && forEachLevel.number(name) < 0 {
			p.col.blameAt(string(jsontape.AppendToken([]byte(p.below(p.stepAt(i), n).String()), name)))
			return fmt.Sprintf(`write "as": %q in the for_each; %q is not known`, id, clip(name))
		}
	}
	return ""
}

// nameTaken refuses an item of the same name as a step: a reference could mean either.
func (p *parser) nameTaken(i int) {
	as := p.plan.Steps[i].ForEach.As
	step, taken := p.plan.ids[as]
	if !taken {
		return
	}
	at := p.below(p.stepAt(i), p.steps[i].forEach)
	if n := p.steps[i].as; n != 0 {
		at = p.below(at, n)
	}
	p.invalid(at, `choose a name that is no step's: "as": "each"`, fmt.Sprintf("the item is named %q, but so is step number %d", clip(as), step+1))
}

// isList reports whether a value can be the list of a for_each: a reference that is all of a string, the object form,
// or an array.
func (p *parser) isList(i int, n int32) bool {
	const form = `write "in": "$ref:<id>.<path>", or a JSON array, which may hold references`
	v := &p.tape[n]
	w := walker{p: p, src: p.src, tape: p.tape}
	switch {
	case v.Kind == jsontape.Array:
		if count := p.count(n); count > MaxItems {
			p.col.addf(fault.LimitExceeded, p.listAt(i).String(), "split the step in several", "the list has %d items, at most %d are allowed", count, MaxItems)
			return false
		}
		return true
	case v.Kind == jsontape.Object && w.hasRefKey(n):
		return true
	case v.Kind != jsontape.String:
		p.invalid(p.listAt(i), form, "must be a reference to a list, or an array, but is "+p.shown(n))
		return false
	}
	text := p.str(n)
	w.step = i
	if f, is := p.refs.foreign(text, w.known); is && !f.digits && !w.refersTo(f.id) {
		return true // the walker says what is wrong with it
	}
	taken := p.refs.parseText(text)
	if taken.whole {
		return true
	}
	if p.refs.mayRefer(text) && p.col.wants(fault.InvalidRef) {
		p.col.add(fault.InvalidRef, p.listAt(i).String(), "the list must be one reference, but this is text: "+clip(text), form)
	} else if !p.refs.mayRefer(text) {
		p.invalid(p.listAt(i), p.listHint(i, text, form), "must be a reference to a list, or an array, but is "+p.shown(n))
	}
	return false
}

// listHint says how a list is written that is a string without a reference.
func (p *parser) listHint(i int, text, form string) string {
	if in := p.listOf(i, p.steps[i].in); in != "" {
		return "write " + in
	}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		return "write the array itself, not a string that holds one"
	}
	return form
}

// listAt returns the place of the list of a for_each.
func (p *parser) listAt(step int) place {
	n := &p.steps[step]
	return p.below(p.below(p.stepAt(step), n.forEach), n.in)
}

// itemHint says where the name of an item may be used, if id is one.
func (p *parser) itemHint(id string) string {
	if p.near.left -= len(p.plan.Steps); p.near.left < 0 {
		return ""
	}
	for i := range p.plan.Steps {
		if s := &p.plan.Steps[i]; s.ForEach != nil && s.ForEach.As == id {
			return fmt.Sprintf("%q is an item, known only in the arguments of the for_each step %q", clip(id), clip(s.ID))
		}
	}
	return ""
}
