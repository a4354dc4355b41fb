package plan

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/tool"
)

// dependencies checks that the steps take what their tools depend on (plan language, "Dependent tools"). It never
// refuses a plan whose data may come the right way: where it can't be sure, it says nothing.
func (p *parser) dependencies() {
	if len(p.dependents) == 0 {
		return
	}
	f := newFlow(p)
	for i := range p.dependents {
		d := &p.dependents[i]
		if p.steps[d.step].unsure {
			continue
		}
		for _, dep := range p.tools[p.plan.Steps[d.step].Tool].DependsOn {
			p.dependency(d, dep, f.carriers(dep.Tool))
		}
	}
}

// dependency checks one dependency of a step's tool. carries tells which steps' output may hold what it needs.
func (p *parser) dependency(d *dependent, dep tool.Dependency, carries []bool) {
	var direct []use
	through := false
	for _, u := range slices.Concat(d.list, d.args) {
		switch {
		case u.step == theItem || !carries[u.step]:
		case p.plan.Steps[u.step].Tool == dep.Tool:
			direct = append(direct, u)
		default:
			through = true
		}
	}
	if len(direct) == 0 && !through {
		p.nothingTaken(d, dep)
		return
	}
	taken := p.takenFrom(d, dep.Tool)
	if !through {
		for _, field := range dep.RequiredFields {
			if !slices.ContainsFunc(taken, func(t taking) bool { return p.mayHold(t, dep.Tool, field) }) {
				p.fieldNotTaken(d, dep, field, direct)
			}
		}
	}
}

// taking is one way in which a step takes data straight from a step of another tool.
type taking struct {
	use
	path []elem // from the tool's output
	any  bool   // by way of a list that is put together, or with the entries around it: its form is not known
}

// takenFrom returns what a step takes straight from steps that call a tool, in its arguments or by way of the item.
func (p *parser) takenFrom(d *dependent, name string) (all []taking) {
	for _, u := range p.straight(d.args, name) {
		all = p.take(all, u, u.step, u.path)
	}
	list := p.straight(d.list, name)
	switch {
	case len(list) == 0:
		return all
	case !p.plan.Steps[d.step].ForEach.in.whole || !list[0].only:
		return append(all, taking{use: list[0], any: true})
	}
	first := append(slices.Clone(list[0].path), elem{index: 0}) // all items are alike, as far as schemas go
	for _, u := range d.args {
		if u.step == theItem {
			all = p.take(all, u, list[0].step, slices.Concat(first, u.path))
		}
	}
	return all
}

// straight returns those references that take data of a tool from a step that calls it.
func (p *parser) straight(uses []use, name string) (all []use) {
	for _, u := range uses {
		if u.step != theItem && p.plan.Steps[u.step].Tool == name {
			all = append(all, u)
		}
	}
	return all
}

// take adds what a reference takes of a step by a path. Where that step has a for_each, the path goes through its
// entries; what counts is the one into the data of an entry.
func (p *parser) take(all []taking, u use, step int, path []elem) []taking {
	switch {
	case p.plan.Steps[step].ForEach == nil:
		return append(all, taking{use: u, path: path})
	case len(path) < 2: // the entries, or a whole one: not of the form that the tool declares
		return append(all, taking{use: u, any: true})
	case path[1].key != "data": // an entry's status, index or error
		return all
	}
	return append(all, taking{use: u, path: path[2:]})
}

// mayHold reports whether what is taken may hold a field of the tool's output, as far as anybody can tell.
func (p *parser) mayHold(t taking, name, field string) bool {
	if t.any {
		return true
	}
	keys := false
	for i := range t.path {
		if t.path[i].isKey && t.path[i].key == field {
			return true
		}
		keys = keys || t.path[i].index == noIndex
	}
	if !keys || t.path[len(t.path)-1].index != noIndex {
		return true // all of it, or an item of something
	}
	if slices.ContainsFunc(t.into, func(e tool.Elem) bool { return e.IsKey && e.Key == field }) {
		return true
	}
	if output := p.tools[name].Output; output != nil {
		there := output.Look(elems(t.path))
		return len(there.Types) == 0 || slices.Contains(there.Types, "object") || slices.Contains(there.Types, "array")
	}
	return soundsLikeMany(t.path[len(t.path)-1].key)
}

// soundsLikeMany reports whether a key is named like something that has parts.
func soundsLikeMany(key string) bool {
	key = strings.ToLower(key)
	for _, end := range []string{"s", "list", "data", "result", "item", "output", "object", "all"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return false
}

// elems returns a path as package tool has it.
func elems(path []elem) []tool.Elem {
	all := make([]tool.Elem, len(path))
	for i, e := range path {
		all[i] = tool.Elem{Key: e.key, Index: e.index, IsKey: e.isKey}
	}
	return all
}
