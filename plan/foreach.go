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
	// MaxItems is the most items of a for_each step's list.
	MaxItems = 10_000
	// MaxAllItems is the most items that all lists of a plan may have: in a plan of more than 100 for_each steps each
	// may have its share of them.
	MaxAllItems = 1_000_000
)

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
	n := p.node(i).forEach
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
	p.node(i).in, p.node(i).as = m[forEachIn], m[forEachAs]
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
	n := p.node(i).in
	if n == 0 {
		p.noList(i)
	}
	if n == 0 || !p.isList(i, n) {
		p.node(i).unsure = true
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
	n := p.node(i).forEach
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
	n := p.node(i).forEach
	if n == 0 || p.tape[n].Kind != jsontape.Object || p.node(i).as != 0 {
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
	step, taken := p.plan.ids.find(as)
	if !taken {
		return
	}
	at := p.below(p.stepAt(i), p.node(i).forEach)
	if n := p.node(i).as; n != 0 {
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
	if in := p.listOf(i, p.node(i).in); in != "" {
		return "write " + in
	}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		return "write the array itself, not a string that holds one"
	}
	return form
}

// listAt returns the place of the list of a for_each.
func (p *parser) listAt(step int) place {
	n := p.node(step)
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

// mostItems returns how many items each list of the plan may have. It depends on the plan alone, so that all who read a
// list judge alike.
func (p *Plan) mostItems() int {
	lists := 0
	for i := range p.Steps {
		if p.Steps[i].ForEach != nil {
			lists++
		}
	}
	return min(MaxItems, MaxAllItems/max(lists, 1))
}

// Items returns the items of a for_each step's list, each as JSON; an empty list has none. They share memory with the
// results where the list is a reference as a whole. result is as for Arguments.
//
// Errors: those of Arguments; unresolved_ref where the list is null or missing, or is no array, since to do nothing
// then would hide a mistake; invalid_arguments for more than MaxItems items. The step must be one that has a ForEach.
func (p *Plan) Items(step int, result func(dep int) (json []byte, ok bool)) ([][]byte, *fault.Error) {
	r := Resolver{plan: p}
	return r.Items(step, result)
}

// ItemArguments is Arguments for one item of a for_each step.
func (p *Plan) ItemArguments(step int, item []byte, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	r := Resolver{plan: p}
	return r.ItemArguments(step, item, result)
}

// list resolves a step's list and takes it apart.
func (r *Resolver) list(step int, result func(dep int) (json []byte, ok bool)) ([][]byte, *fault.Error) {
	t := &r.plan.Steps[step].ForEach.in
	var value []byte
	var err *fault.Error
	if t.whole {
		value, err = r.resolve(&t.holes[0], nil, r.limit(), result)
	} else {
		value, err = r.fill(t, nil, result)
	}
	switch {
	case err != nil:
		return nil, err
	case len(value) == 0 || value[0] == 'n':
		why := listText(t) + " is null or missing"
		if t.whole {
			if saw, missed := r.missed(&t.holes[0], nil, result); missed {
				why = listText(t) + " found nothing; " + saw
			}
		}
		return nil, fault.New(fault.UnresolvedRef, "there is no list: %s", why).
			WithHint("have it come to an array; an empty one is fine")
	case value[0] != '[':
		return nil, fault.New(fault.UnresolvedRef, "there is no list: %s is %s", listText(t), kindOf(value)).
			WithHint("refer to the array within it, or have the step before return one")
	}
	items, count := split(value)
	if most := r.plan.mostItems(); count > most {
		return nil, fault.New(fault.InvalidArguments, "the list has %d items, at most %d are allowed", count, most).
			WithHint("let the tool before return fewer, or in pages")
	}
	return items, nil
}

// listText names a list that is a reference as a whole.
func listText(t *template) string {
	if !t.whole {
		return "it"
	}
	return t.holes[0].targets[0].shown()
}

// split returns the items of an array, up to MaxItems, and how many there are.
func split(array []byte) (items [][]byte, count int) {
	for i := jsontape.Item(array, 0, 0); i >= 0; i = jsontape.NextItem(array, i) {
		end := jsontape.SkipValue(array, i)
		if end <= i {
			break
		}
		if count++; count <= MaxItems {
			items = append(items, array[i:end:end])
		}
	}
	return items, count
}
