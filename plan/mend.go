package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/tool"
)

// What to write for a reference that is refused. Every reference that a hint proposes was held against the very check
// that refused the one at hand (judge), so that whoever follows a hint is not refused for that again.

// site is where a reference stands.
type site struct {
	text   bool // it is within text: any value will do
	object bool // it is written {"$ref": …}
	bare   bool // it is part of a condition, which takes any value too

	into  tool.Place // what takes its value, once that was asked for
	found bool
}

// takes returns what takes a value at a place, which is the one in hand unless it was found before.
func (w *walker) takes(at *site) tool.Place {
	if !at.found {
		at.found = true
		if !at.text && !at.bare && w.p.plan.Steps[w.step].Tool != "" {
			at.into = w.destination()
		}
	}
	return at.into
}

// verdict is what a reference's form and the declared types say of it.
type verdict uint8

const (
	fits     verdict = iota // as far as anybody can tell
	noEntry                 // the path leads to nothing in the entries of a for_each step
	nowhere                 // the path leads to nothing that is declared
	unfitted                // what is declared there can't be taken
)

// judge holds a reference against what its producer declares and against what takes its value.
func (w *walker) judge(t *target, at *site) (from source, v verdict) {
	p := w.p
	if t.step != theItem && p.plan.Steps[t.step].ForEach != nil && !leadsIntoEntries(t.path) {
		return from, noEntry
	}
	if p.catalog == nil || p.isDone(w.step) {
		return from, fits
	}
	from, known := w.source(t)
	switch {
	case !known:
		return from, fits
	case from.there.Impossible || from.there.Undeclared:
		return from, nowhere
	case !from.there.MayFit(w.takes(at)):
		return from, unfitted
	}
	return from, fits
}

const (
	maxTried    = 40  // references for one hint
	maxProposed = 5   // likewise, of those that are right
	longestRef  = 256 // that a hint writes, in bytes

	judgeWork = 10 // what a reference that is tried counts among the work of suggestions
)

// proposal is references of which one was probably meant, and how they are put.
type proposal struct {
	refs  []target
	way   phrase
	names []string // for oneOf: of all parts, also of those that don't fit
}

type phrase uint8

const (
	instead  phrase = iota // write them
	meant                  // they are spelt like it
	oneOrAll               // the first takes one item, the second all
	oneOf                  // any of an object's parts
)

// mended returns references for the place of one that is refused there: those that the fewest edits lead to.
func (w *walker) mended(bad target, at *site) proposal {
	tried := 0
	for level := []target{bad}; len(level) > 0; {
		var next []target
		for i := range level {
			for _, group := range w.edits(&level[i], at) {
				right := proposal{way: group.way, names: group.names}
				for _, t := range group.refs {
					if tried++; tried > maxTried || !w.p.near.afford(judgeWork) {
						return proposal{}
					}
					if _, v := w.judge(&t, at); v != fits {
						next = append(next, t)
					} else if w.mayWrite(&t) {
						right.refs = append(right.refs, t)
					}
				}
				if len(right.refs) > 0 {
					return right
				}
			}
		}
		level = next
	}
	return proposal{}
}

// mayWrite reports whether a hint can write a reference in full.
func (w *walker) mayWrite(t *target) bool {
	return !slices.ContainsFunc(t.path, func(e elem) bool { return e.index == hugeIndex }) && len(w.idOf(t))+len(pathInFull(t.path)) <= longestRef
}

// edits returns references that are one edit away from one that is refused, the likelier ones first.
func (w *walker) edits(t *target, at *site) []proposal {
	switch from, v := w.judge(t, at); v {
	case noEntry:
		return entryEdits(t)
	case nowhere:
		return w.pathEdits(t, &from)
	case unfitted:
		return w.valueEdits(t, &from, at)
	default: // it fits
	}
	return nil
}

// entryEdits lead to what a for_each step yields: an array of entries, with what the tool returned under data.
func entryEdits(t *target) []proposal {
	rest := t.path
	if rest[0].isKey && rest[0].key == "results" {
		if rest = rest[1:]; len(rest) == 0 {
			return []proposal{{refs: []target{t.to(nil)}}}
		}
	}
	data := elem{key: "data", index: noIndex, isKey: true}
	switch {
	case rest[0].index != noIndex:
		return []proposal{{refs: []target{t.to(rest)}}, {refs: []target{t.to(rest[:1], append([]elem{data}, rest[1:]...)...)}}}
	case rest[0].key == "summary":
		rest = []elem{{key: "status", index: noIndex, isKey: true}}
	case !isEntryField(&rest[0]):
		rest = append([]elem{data}, rest...)
	}
	return []proposal{{refs: []target{t.to([]elem{{}}, rest...)}}, {refs: []target{t.to([]elem{{index: everyItem}}, rest...)}}}
}

// pathEdits change the element of a path that leads nowhere.
func (w *walker) pathEdits(t *target, from *source) (all []proposal) {
	at := from.there.At + from.skip // in the reference's own path
	if at < 0 {
		return nil // the reference to the list is to blame, and is judged by itself
	}
	e, before, behind := t.path[at], t.path[:at], t.path[at+1:]
	if len(from.there.Names) > 0 && e.isKey {
		named := func(names []string) (refs []target) {
			for _, name := range names[:min(len(names), maxListed)] {
				refs = append(refs, t.to(before, append([]elem{{key: name, index: indexOf(name), isKey: true}}, behind...)...))
			}
			return refs
		}
		if near := w.p.near.nearest(e.key, from.there.Names); len(near) > 0 {
			return []proposal{{refs: named(near), way: meant}}
		}
		return append(w.elsewhere(t, from, e.key), proposal{refs: named(from.there.Names), way: oneOf, names: from.there.Names})
	}
	switch isArray := slices.Equal(from.there.Types, []string{"array"}); {
	case isArray && e.isKey:
		one, every := append([]elem{{}}, t.path[at:]...), append([]elem{{index: everyItem}}, t.path[at:]...)
		all = append(all, proposal{refs: []target{t.to(before, one...), t.to(before, every...)}, way: oneOrAll})
	case e.index >= 0 && slices.ContainsFunc(before, func(e elem) bool { return e.isEvery() }): // [*].id[0]: an item of the list that [*] makes
		all = append(all, proposal{refs: []target{itemised(t.to(before), e.index)}})
	case len(behind) > 0:
		all = append(all, proposal{refs: []target{t.to(before, behind...)}})
	}
	if e.isKey {
		all = append(all, w.elsewhere(t, from, e.key)...)
	}
	return append(all, proposal{refs: []target{t.to(before)}})
}

// elsewhere leads to a part of the same name elsewhere in the producer's output.
func (w *walker) elsewhere(t *target, from *source, key string) []proposal {
	if from.skip < 0 {
		return nil
	}
	path, is := w.p.declaredAt(from.tool, key)
	if !is {
		return nil
	}
	return []proposal{{refs: []target{t.to(t.path[:from.skip], path...)}, way: meant}}
}

// valueEdits lead from a value that doesn't fit to parts of it, or to what it is part of.
func (w *walker) valueEdits(t *target, from *source, at *site) (all []proposal) {
	if fields := from.there.Fields(w.takes(at), maxProposed); len(fields) > 0 {
		var refs []target
		for _, f := range fields {
			if len(f) > len(fields[0]) {
				break
			}
			var rest []elem
			for _, key := range f {
				rest = append(rest, elem{key: key, index: indexOf(key), isKey: true})
			}
			refs = append(refs, t.to(t.path, rest...))
		}
		all = append(all, proposal{refs: refs})
	}
	isEntry := t.step != theItem && w.p.plan.Steps[t.step].ForEach != nil && len(t.path) == 1
	switch last := lastIndex(t.path); {
	case slices.ContainsFunc(t.path, func(e elem) bool { return e.isEvery() }):
		all = append(all, proposal{refs: []target{itemised(*t, 0)}})
	case slices.Equal(from.there.Kinds(), []string{"array"}):
		all = append(all, proposal{refs: []target{t.to(t.path, elem{})}})
	case last >= 0 && slices.Contains(w.takes(at).Kinds(), "array"):
		all = append(all, proposal{refs: []target{t.to(t.path[:last], append([]elem{{index: everyItem}}, t.path[last+1:]...)...)}})
	}
	if isEntry {
		all = append(all, proposal{refs: []target{t.to(t.path, elem{key: "data", index: noIndex, isKey: true})}})
	}
	return all
}

// to is a reference to the same step by another path.
func (t *target) to(path []elem, rest ...elem) target {
	return target{step: t.step, path: append(slices.Clone(path), rest...)}
}

// itemised is a reference that asks for one item where t asks for all of them.
func itemised(t target, index int) target {
	t.path = slices.Clone(t.path)
	for i := range t.path {
		if t.path[i].isEvery() {
			t.path[i] = elem{index: index}
			index = 0
		}
	}
	return t
}

// lastIndex is the place of the last [n] in a path, -1 for none.
func lastIndex(path []elem) int {
	for i := len(path) - 1; i >= 0; i-- {
		if !path[i].isKey && path[i].index >= 0 {
			return i
		}
	}
	return -1
}

// mendHint says what to write in the place of a reference that is refused; empty where nothing is known that would do.
func (w *walker) mendHint(t target, at *site) string {
	return w.put(w.mended(t, at), at)
}

// put words a proposal.
func (w *walker) put(x proposal, at *site) string {
	refs := make([]string, min(len(x.refs), maxProposed))
	for i := range refs {
		refs[i] = w.written(&x.refs[i], at)
	}
	switch {
	case len(refs) == 0:
		return ""
	case x.way == meant:
		return didYouMean(refs, func(s string) string { return s })
	case x.way == oneOrAll && len(refs) == 2:
		return fmt.Sprintf("write %s for one item, or %s for all", refs[0], refs[1])
	case x.way == oneOf && len(x.names) > fewNames && len(refs) > fewNames:
		return "there are: " + listSome(x.names)
	case x.way == oneOf && len(x.names) > fewNames:
		return fmt.Sprintf("there are: %s; what fits here is %s", listSome(x.names), strings.Join(refs, " or "))
	}
	return "write " + strings.Join(refs, " or ")
}

// proposed is a reference that was probably meant, if it would not be refused, or else those nearest to it.
func (w *walker) proposed(t target, at *site) proposal {
	if !w.p.near.afford(judgeWork) {
		return proposal{}
	}
	if _, v := w.judge(&t, at); v == fits && w.mayWrite(&t) {
		return proposal{refs: []target{t}, way: meant}
	}
	return w.mended(t, at)
}

// written writes a reference in the form that its place has.
func (w *walker) written(t *target, at *site) string {
	if at.bare {
		return refPrefix + w.idOf(t) + pathWith(t.path, bareInExpression)
	}
	return at.written(w.idOf(t) + pathInFull(t.path))
}

func (at *site) written(ref string) string {
	switch {
	case at.object:
		return fmt.Sprintf(`{"$ref": %q}`, ref)
	case at.text:
		return fmt.Sprintf("${ref:%s}", ref)
	}
	return fmt.Sprintf("%q", refPrefix+ref)
}

// inText writes a reference as it stands within text.
func (w *walker) inText(ref string) string {
	return cmp.Or(w.likely(ref, &site{text: true}), "${ref:<id>.<path>}")
}

// unprefixed says how a reference is written behind "$ref" that has the prefix of one in a string.
func (w *walker) unprefixed(ref string) string {
	return "leave out the prefix: " + cmp.Or(w.likely(ref, &site{object: true}), `{"$ref": "<id>.<path>"}`)
}

// likely writes a reference, or the one nearest to it that is not refused; empty where there is none.
func (w *walker) likely(ref string, at *site) string {
	if t, known := w.target(ref); known {
		if found := w.proposed(t, at); len(found.refs) > 0 {
			return w.written(&found.refs[0], at)
		}
	}
	return ""
}

// target reads a reference that a hint is to write; ok is false for one to no known step or item.
func (w *walker) target(ref string) (t target, ok bool) {
	var own refParser
	r, end, why := own.parse(ref, 0)
	if why != "" || end != len(ref) {
		return t, false
	}
	return w.targetOf(r.id, r.path)
}

func (w *walker) targetOf(id string, path []elem) (t target, ok bool) {
	if w.item != "" && id == w.item {
		return target{step: theItem, path: path}, true
	}
	step, ok := w.p.plan.ids.find(id)
	return target{step: int(step), path: path}, ok
}
