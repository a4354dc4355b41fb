package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// source is where the value of a reference comes from, as far as it is declared.
type source struct {
	tool  string      // whose output it is part of
	there tool.Place  // what its output schema says
	path  []tool.Elem // in its output
	skip  int         // how many elements the reference's own path has before path; negative where the list's come first
}

// typed refuses a reference by what its producer declares and what its own tool takes (impossible_ref). It is asked of
// references without alternatives.
func (w *walker) typed(t *target, at site, below string) {
	if w.p.catalog == nil {
		return
	}
	switch from, v := w.judge(t, &at); v {
	case nowhere:
		w.notThere(t, &from, &at, below)
	case unfitted:
		w.doesNotFit(t, &from, &at, below)
	default: // it fits, or another message says why not
	}
}

// source finds out what is declared of what a reference leads to.
func (w *walker) source(t *target) (source, bool) {
	p := w.p
	step, path := t.step, t.path
	if step == theItem {
		list := &p.plan.Steps[w.step].ForEach.in
		if !list.whole || len(list.holes[0].targets) != 1 || list.holes[0].def != "" {
			return source{}, false
		}
		of := &list.holes[0].targets[0]
		if of.of != itsResult {
			return source{}, false
		}
		step, path = of.step, ofAnyItem(of.path, t.path)
	}
	s := &p.plan.Steps[step]
	if s.Value {
		return source{}, false
	}
	output := p.outputOf(step)
	if s.ForEach == nil {
		if output == nil {
			return source{}, false
		}
		from := source{tool: s.Tool, path: elems(path), skip: len(t.path) - len(path)}
		from.there = output.Find(from.path)
		from.there.Optional = from.there.Optional || s.Optional
		return from, true
	}
	from := source{tool: s.Tool, skip: len(t.path) - len(path)}
	switch {
	case len(path) == 0:
		from.there = tool.TypePlace("array", s.Optional)
		return from, true
	case path[0].index == noIndex: // refused by entry
		return source{}, false
	case len(path) == 1:
		from.there = tool.TypePlace("object", true)
	case path[1].key == "index":
		from.there = tool.TypePlace("integer", true)
	case path[1].key == "status":
		from.there = tool.TypePlace("string", true)
	case path[1].key != "data" || output == nil:
		if !path[0].isEvery() {
			return source{}, false
		}
	default:
		from.path = elems(path[2:])
		from.skip += 2
		from.there = output.Find(from.path)
		from.there.Optional = true
	}
	if path[0].isEvery() && !from.there.Impossible && !from.there.Undeclared {
		from.there = from.there.Listed()
	}
	return from, true
}

// ofAnyItem is the way to an item's part from the result that the list is part of.
func ofAnyItem(list, item []elem) []elem {
	path := slices.Clone(list)
	every := false
	for i := range path {
		if path[i].isEvery() {
			path[i].index, every = tool.AnyItem, true
		}
	}
	if !every {
		path = append(path, elem{index: tool.AnyItem})
	}
	return append(path, item...)
}

// outputOf returns the schema of what a step returns; nil where none is declared, or another one may have been.
func (p *parser) outputOf(step int) *tool.Schema {
	name := p.plan.Steps[step].Tool
	s := &p.plan.Steps[step]
	if name == "" || name == RecursiveTool || s.Ask || s.Repeat != nil && s.Repeat.Collect || p.isDone(step) {
		return nil
	}
	t, _ := p.lookup(name)
	return t.Output
}

// destination is the place in the input schema of the step's tool that the value in hand goes to.
func (w *walker) destination() tool.Place {
	if w.asks {
		return tool.Place{}
	}
	if w.list {
		if len(w.path) > 0 {
			return tool.Place{}
		}
		return tool.TypePlace("array", false)
	}
	schema := w.p.schema(w.step)
	if schema.AcceptsAnyObject() {
		if len(w.path) == 0 {
			return tool.TypePlace("object", false)
		}
		return tool.Place{}
	}
	return schema.Form(w.hasArgument).Find(w.into())
}

// hasArgument reports whether the arguments that are walked have a key.
func (w *walker) hasArgument(key string) bool {
	for k := w.root + 1; k < w.tape[w.root].Next; k = w.tape[k+1].Next {
		if made, _ := w.p.refs.keyText(w.text(k)); made == key {
			return true
		}
	}
	return false
}

// into returns the way to the value in hand, in the arguments or the list.
func (w *walker) into() []tool.Elem {
	into := make([]tool.Elem, len(w.path))
	for i, t := range w.path {
		into[i] = tool.Elem{Key: t.made, Index: t.index, IsKey: t.isKey}
		if t.isKey {
			into[i].Index = noIndex
		}
	}
	return into
}

// notThere reports a reference to something that the producer's output schema rules out, or doesn't declare.
func (w *walker) notThere(t *target, from *source, at *site, below string) {
	there := &from.there
	if there.At+from.skip < 0 {
		return // the reference to the list is to blame, and is judged by itself
	}
	if there.Impossible && !w.p.col.wants(fault.ImpossibleRef) || there.Undeclared && !w.p.col.wantsWarning() {
		return
	}
	e := from.path[there.At]
	shown := elem{key: e.Key, index: e.Index, isKey: e.IsKey}
	what := "what " + quotedTool(from.tool) + " returns"
	if there.At > 0 {
		what = fmt.Sprintf("%s of what %s returns", strings.TrimPrefix(elemText(from.path[:there.At]), "."), quotedTool(from.tool))
	}
	hint := otherwise(w, t, from, at)
	if hint == "" {
		hint = w.mendHint(*t, at)
	}
	switch {
	case hint != "":
	case len(there.Names) > 0:
		hint = "there are: " + listSome(there.Names)
	default:
		hint = noOther
	}
	if there.Undeclared {
		w.p.col.warn(fault.ImpossibleRef, w.pointer()+below,
			fmt.Sprintf("%s%s: %s has no %s by its output schema, which allows more than it declares", refPrefix, clip(t.text), what, shown.shown()), hint)
		return
	}
	w.p.col.add(fault.ImpossibleRef, w.pointer()+below,
		fmt.Sprintf("%s%s can never be there: %s is %s and has no %s", refPrefix, clip(t.text), what, text.OneOfTypes(there.Types), shown.shown()), hint)
}

// otherwise says what to write where a path asks for what is no part of a result: how the step ended, or how long a
// list is, which an expression can tell. It is empty for all else.
func otherwise(w *walker, t *target, from *source, at *site) string {
	bad := from.there.At + from.skip
	if t.step == theItem || bad >= len(t.path) || !t.path[bad].isKey || !w.mayWrite(t) {
		return ""
	}
	key := t.path[bad].key
	if bad == 0 && (key == "error" || key == "status" && len(t.path) == 1) {
		of := itsError
		if key == "status" {
			of = itsStatus
		}
		return "write " + ended(w, of, t, at)
	}
	long := key == "length" || key == "size" || key == "count"
	if !long || !at.bare || bad+1 < len(t.path) || !slices.Equal(from.there.Types, []string{"array"}) {
		return ""
	}
	return "write len(" + refPrefix + w.idOf(t) + pathWith(t.path[:bad], bareInExpression) + ")"
}

// ended writes a reference to how a step ended, with the rest of a path behind its first element.
func ended(w *walker, of aspect, t *target, at *site) string {
	ref := of.prefix() + w.idOf(t) + pathInFull(t.path[1:])
	switch {
	case at.bare:
		return ref
	case at.text:
		return "${" + ref[1:] + "}"
	}
	return quoteJSON(ref)
}

// fewNames is the most names of an object that a hint joins by "or".
const fewNames = 2

// noOther is the hint where nothing is known that would do.
const noOther = "refer to another value, or let a step between them convert it"

func quotedTool(name string) string { return fmt.Sprintf("%q", clip(name)) }

// idOf returns the id that a reference is written with.
func (w *walker) idOf(t *target) string {
	if t.step == theItem {
		return w.item
	}
	return w.p.plan.Steps[t.step].ID
}

// elemText writes a path of package tool.
func elemText(path []tool.Elem) string {
	all := make([]elem, len(path))
	for i, e := range path {
		all[i] = elem{key: e.Key, index: e.Index, isKey: e.IsKey}
		if e.Index == tool.AnyItem {
			all[i].index = 0
		}
	}
	return pathText(all)
}

// doesNotFit reports a reference to a value that the step's tool can't take where it goes.
func (w *walker) doesNotFit(t *target, from *source, at *site, below string) {
	if !w.p.col.wants(fault.ImpossibleRef) {
		return
	}
	own := refPrefix + clip(t.text)
	is, takes := from.there.Kinds(), at.into.Kinds()
	where := quotedTool(w.p.plan.Steps[w.step].Tool) + " takes"
	if w.list {
		where = "a for_each takes"
	}
	message := fmt.Sprintf("%s is %s, as %q declares, but %s %s here", own, text.OneOfTypes(is), from.tool, where, text.OneOfTypes(takes))
	if len(is) == 0 || len(takes) == 0 || !tool.Disjoint(is, takes) {
		message = fmt.Sprintf("no value of %s, as %q declares it, fits what %s here", own, from.tool, where)
	}
	w.p.col.add(fault.ImpossibleRef, w.pointer()+below, message, w.fitHint(t, at, is, takes))
}

// fitHint says which part of a value fits, or how it is turned into what does.
func (w *walker) fitHint(t *target, at *site, is, takes []string) string {
	hint := w.mendHint(*t, at)
	if slices.Equal(is, []string{"array"}) {
		each := w.eachHint(t, at)
		switch {
		case hint != "" && each != "":
			return hint + " for one item, or " + each
		case each != "":
			return each
		}
	}
	switch {
	case hint != "":
		return hint
	case slices.Contains(takes, "string") && len(is) > 0 && w.mayWrite(t) && !slices.Contains(is, "object") && !slices.Contains(is, "array"):
		return fmt.Sprintf("write \"%s\" for it as text", w.written(t, &site{text: true}))
	}
	return noOther
}

// eachHint says how a step runs once for each item of an array that it can't take as a whole; empty where that would
// not do.
func (w *walker) eachHint(t *target, at *site) string {
	_, taken := w.p.plan.ids.find(defaultAs)
	if w.list || taken || w.p.plan.Steps[w.step].ForEach != nil || !w.mayWrite(t) {
		return ""
	}
	item := target{step: t.step, path: ofAnyItem(t.path, nil)}
	found := w.proposed(item, at)
	if len(found.refs) == 0 || !slices.Equal(found.refs[0].path[:min(len(found.refs[0].path), len(item.path))], item.path) {
		return ""
	}
	part := at.written(defaultAs + pathInFull(found.refs[0].path[len(item.path):]))
	return fmt.Sprintf("run the step once for each: \"for_each\": {\"in\": %s}, and %s here", w.written(t, &site{}), part)
}
