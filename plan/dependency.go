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
		if p.node(d.step).unsure {
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

// dependent is a step whose tool depends on others, with all references that it holds.
type dependent struct {
	step int
	list []use // in the list of its for_each
	args []use // in its arguments
}

// use is a reference in a step whose tool depends on others.
type use struct {
	target
	at   string      // its place in the plan
	into []tool.Elem // where its value goes, in the arguments or the list
	bare bool        // its value goes there as it is, not into a string
	only bool        // it has no alternatives
}

// keepUses makes the walkers of a step keep its references, if its tool depends on others.
func (p *parser) keepUses(i int) {
	if p.dependent && !p.isDone(i) && len(p.tools[p.plan.Steps[i].Tool].DependsOn) > 0 {
		p.dependents = append(p.dependents, dependent{step: i})
	}
}

// keep keeps the references of a hole, if they are asked for.
func (w *walker) keep(h *hole, below string) {
	last := len(w.p.dependents) - 1
	if w.asks || last < 0 || w.p.dependents[last].step != w.step {
		return
	}
	d := &w.p.dependents[last]
	into := w.into()
	at := w.pointer() + below
	for _, t := range h.targets {
		if t.of != itsResult {
			continue
		}
		u := use{target: t, at: at, into: into, bare: !h.text, only: len(h.targets) == 1 && h.def == ""}
		if w.list {
			d.list = append(d.list, u)
		} else {
			d.args = append(d.args, u)
		}
	}
}

// flow tells whose output reaches a step by references, straight or through other steps.
type flow struct {
	p     *parser
	first []int32 // where in users the steps begin that refer to each step
	users []int32
	known map[string][]bool
}

func newFlow(p *parser) *flow {
	f := &flow{p: p, first: make([]int32, len(p.plan.Steps)+1), known: map[string][]bool{}}
	f.edges(func(from, _ int) { f.first[from+1]++ })
	for i := range p.plan.Steps {
		f.first[i+1] += f.first[i]
	}
	f.users = make([]int32, f.first[len(p.plan.Steps)])
	next := append([]int32(nil), f.first...)
	f.edges(func(from, to int) {
		f.users[next[from]] = int32(to)
		next[from]++
	})
	return f
}

// edges calls edge for each reference of one step to another.
func (f *flow) edges(edge func(from, to int)) {
	for i := range f.p.plan.Steps {
		s := &f.p.plan.Steps[i]
		templates := [2]*template{&s.args}
		if s.ForEach != nil {
			templates[1] = &s.ForEach.in
		}
		for _, t := range templates {
			if t == nil {
				continue
			}
			for h := range t.holes {
				for _, target := range t.holes[h].targets {
					if target.step != theItem && target.of == itsResult {
						edge(target.step, i)
					}
				}
			}
		}
	}
}

// carriers tells of each step whether its output may hold data of a tool: because it calls it, or takes data from a
// step that carries it. A step with broken references may carry anything.
func (f *flow) carriers(name string) []bool {
	if all, known := f.known[name]; known {
		return all
	}
	all := make([]bool, len(f.p.plan.Steps))
	var queue []int32
	for i := range all {
		if f.p.plan.Steps[i].Tool == name || f.p.node(i).unsure {
			all[i] = true
			queue = append(queue, int32(i))
		}
	}
	for n := 0; n < len(queue); n++ {
		s := queue[n]
		for _, u := range f.users[f.first[s]:f.first[s+1]] {
			if !all[u] {
				all[u] = true
				queue = append(queue, u)
			}
		}
	}
	f.known[name] = all
	return all
}
