package plan

import (
	"github.com/stepjet/stepjet/tool"
)

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
	if last < 0 || w.p.dependents[last].step != w.step {
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
		if f.p.plan.Steps[i].Tool == name || f.p.steps[i].unsure {
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
