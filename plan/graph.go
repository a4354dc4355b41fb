package plan

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// maxShown is the most steps of a cycle that a message names; of a longer one it names as many from both ends.
const maxShown = 50

// cycles reports each set of steps that wait for each other, once, by a shortest cycle through its first step. Steps
// that wait for themselves were reported where that was found.
func (p *parser) cycles() {
	g := &sccs{steps: p.plan.Steps, from: p.free}
	for _, set := range g.find() {
		if p.col.wants(fault.Cycle) {
			p.cycle(set, g.of)
		}
	}
}

// cycle reports one set; of gives the set of each step that may be in one.
func (p *parser) cycle(set []int32, of []int32) {
	start := set[0]
	for _, s := range set {
		start = min(start, s)
	}
	ring := p.ring(int(start), of)
	first, second := ring[0], ring[1]
	ids := make([]string, len(ring))
	for i, s := range ring {
		ids[i] = p.plan.Steps[s].ID
	}
	hint := fmt.Sprintf("%q waits for %q here; take one of these references or depends_on away", clip(ids[0]), clip(ids[1]))
	p.col.add(fault.Cycle, p.placeOf(first, second), fmt.Sprintf("%d steps wait for each other: %s", len(ring)-1, arrows(ids)), hint)
}

func arrows(ids []string) string {
	if len(ids) <= maxShown {
		return strings.Join(ids, " -> ")
	}
	const half = maxShown / 2
	return strings.Join(ids[:half], " -> ") + fmt.Sprintf(" -> … %d more … -> ", len(ids)-2*half) + strings.Join(ids[len(ids)-half:], " -> ")
}

// ring returns a shortest way from a step to itself within its set, both ends included.
func (p *parser) ring(start int, of []int32) []int {
	from := map[int]int{} // where each step was reached from
	queue := []int{start}
	for {
		s := queue[0] // never empty before start is reached: the set is strongly connected
		queue = queue[1:]
		for _, d := range p.plan.Steps[s].Deps {
			if d < p.free || of[d-p.free] != of[start-p.free] {
				continue
			}
			if d == start {
				return unwind(from, start, s)
			}
			if _, seen := from[d]; !seen {
				from[d] = s
				queue = append(queue, d)
			}
		}
	}
}

// unwind returns the way start, …, last, start.
func unwind(from map[int]int, start, last int) []int {
	back := []int{start}
	for s := last; s != start; s = from[s] {
		back = append(back, s)
	}
	back = append(back, start)
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}

// placeOf returns the place where step refers to dep.
func (p *parser) placeOf(step, dep int) string {
	n := p.node(step)
	if n.dependsOn != 0 && p.tape[n.dependsOn].Kind == jsontape.Array {
		at := p.below(p.stepAt(step), n.dependsOn).String()
		for i, v := 0, n.dependsOn+1; v < p.tape[n.dependsOn].Next; i, v = i+1, p.tape[v].Next {
			if p.tape[v].Kind != jsontape.String {
				continue
			}
			if d, ok := p.plan.ids.find(p.str(v)); ok && int(d) == dep {
				return string(jsontape.AppendIndex([]byte(at), i))
			}
		}
	}
	if n.in != 0 {
		w := walker{p: p, step: step, src: p.src, tape: p.tape, root: n.in, list: true}
		if at := w.seekRef(dep); at != "" {
			return at
		}
	}
	if n.question != 0 {
		w := walker{p: p, step: step, src: p.src, tape: p.tape, root: n.question, asks: true}
		if at := w.seekRef(dep); at != "" {
			return at
		}
	}
	if n.value != 0 {
		w := walker{p: p, step: step, src: p.src, tape: p.tape, root: n.value, calc: true}
		if at := w.seekRef(dep); at != "" {
			return at
		}
		return p.stepAt(step).String()
	}
	w := walker{p: p, step: step, src: p.src, tape: p.tape, root: n.arguments}
	if n.arguments != 0 && p.tape[n.arguments].Kind == jsontape.String {
		quiet := parser{src: p.src, tape: p.tape, frame: p.frame} // what is wrong in the string was reported before
		w.root = 0
		if !quiet.innerText(&w, n.arguments) {
			return p.stepAt(step).String()
		}
	}
	if at := w.seekRef(dep); at != "" {
		return at
	}
	return p.stepAt(step).String()
}

// seekRef returns the place of the first reference to dep; empty where there is none.
func (w *walker) seekRef(dep int) string {
	w.seek = dep + 1
	w.cut.src = w.src // what is cut is thrown away
	w.value(w.root)
	return w.found
}

// sccs finds the sets of steps that wait for each other: Tarjan's algorithm, without recursion, in time linear to steps
// and dependencies.
type sccs struct {
	steps []Step
	from  int     // the steps before wait for none from here on, and are in no set of several
	of    []int32 // the set of each step from there on, from 1

	index, low []int32 // order of discovery, from 1
	stack      []int32
	calls      []call
	sets       [][]int32 // those of more than one step
	count      int32
}

// call is a step whose dependencies are being followed.
type call struct {
	step int32 // counted from sccs.from
	next int   // of its Deps
}

func (g *sccs) find() [][]int32 {
	n := len(g.steps) - g.from
	all := make([]int32, 3*n)
	g.of, g.index, g.low = all[:n], all[n:2*n], all[2*n:]
	counter := int32(0)
	for s := range n {
		if g.index[s] != 0 {
			continue
		}
		g.enter(int32(s), &counter)
		for len(g.calls) > 0 {
			c := &g.calls[len(g.calls)-1]
			if deps := g.steps[g.from+int(c.step)].Deps; c.next < len(deps) {
				d := int32(deps[c.next] - g.from)
				c.next++
				if d < 0 {
					continue
				}
				if g.index[d] == 0 {
					g.enter(d, &counter)
				} else if g.of[d] == 0 {
					g.low[c.step] = min(g.low[c.step], g.index[d])
				}
				continue
			}
			g.leave(c.step)
		}
	}
	return g.sets
}

func (g *sccs) enter(s int32, counter *int32) {
	*counter++
	g.index[s], g.low[s] = *counter, *counter
	g.stack = append(g.stack, s)
	g.calls = append(g.calls, call{step: s})
}

// leave ends a step; if it is the first discovered of its set, the set is what lies above it on the stack.
func (g *sccs) leave(s int32) {
	g.calls = g.calls[:len(g.calls)-1]
	if len(g.calls) > 0 {
		caller := g.calls[len(g.calls)-1].step
		g.low[caller] = min(g.low[caller], g.low[s])
	}
	if g.low[s] != g.index[s] {
		return
	}
	g.count++
	from := len(g.stack)
	for {
		from--
		g.of[g.stack[from]] = g.count
		if g.stack[from] == s {
			break
		}
	}
	if len(g.stack)-from > 1 {
		set := append([]int32(nil), g.stack[from:]...)
		for i := range set {
			set[i] += int32(g.from)
		}
		g.sets = append(g.sets, set)
	}
	g.stack = g.stack[:from]
}

// link fills in dependents and depths of a plan without cycles.
func (p *Plan) link() {
	total := 0
	counts := make([]int32, 2*len(p.Steps))
	counts, waiting := counts[:len(p.Steps)], counts[len(p.Steps):]
	for i := range p.Steps {
		deps := p.Steps[i].Deps
		total += len(deps)
		waiting[i] = int32(len(deps))
		for _, d := range deps {
			counts[d]++
		}
	}
	all := make([]int, total)
	for i := range p.Steps {
		n := int(counts[i])
		p.Steps[i].dependents, all = all[:0:n], all[n:]
	}
	for i := range p.Steps { // in order, so that each list is sorted
		for _, d := range p.Steps[i].Deps {
			p.Steps[d].dependents = append(p.Steps[d].dependents, i)
		}
	}
	p.depths(0, waiting)
}

// depths gives each step from the first on its wave, in topological order. waiting is each one's number of dependencies
// among them.
func (p *Plan) depths(first int, waiting []int32) {
	queue := make([]int, 0, len(waiting))
	for i, n := range waiting {
		if n == 0 {
			queue = append(queue, first+i)
		}
	}
	for n := 0; n < len(queue); n++ {
		s := &p.Steps[queue[n]]
		p.Depth = max(p.Depth, s.Depth+1)
		for _, d := range s.dependents {
			p.Steps[d].Depth = max(p.Steps[d].Depth, s.Depth+1)
			if waiting[d-first]--; waiting[d-first] == 0 {
				queue = append(queue, d)
			}
		}
	}
}

// relink is link for a plan that was linked before some steps were written anew.
func (p *Plan) relink() {
	for i := range p.Steps {
		p.Steps[i].Depth, p.Steps[i].regarded = 0, false
	}
	for i := range p.Steps {
		for _, d := range p.Steps[i].Named {
			p.Steps[d].regarded = true
		}
	}
	p.Depth = 0
	p.link()
}

// linkFrom is link for a plan of which all steps before n are linked, and refer to none behind them.
func (p *Plan) linkFrom(n int) {
	waiting := make([]int32, len(p.Steps)-n)
	for i := n; i < len(p.Steps); i++ {
		s := &p.Steps[i]
		for _, d := range s.Deps {
			if d < n {
				p.growth.depend(p, d, i)
				s.Depth = max(s.Depth, p.Steps[d].Depth+1)
				continue
			}
			p.Steps[d].dependents = append(p.Steps[d].dependents, i)
			waiting[i-n]++
		}
	}
	p.depths(n, waiting)
}

// regard notes that a step is named by another.
func (p *Plan) regard(step int) {
	if p.growth != nil && step < p.growth.old {
		p.growth.edit(step).regarded = true
		return
	}
	p.Steps[step].regarded = true
}

// Dependents returns the steps that wait for one: indexes, sorted and unique. They must not be changed.
func (p *Plan) Dependents(step int) []int {
	if l := p.growth.link(step); l != nil && l.dependents != nil {
		return l.dependents
	}
	return p.Steps[step].dependents
}

// Regarded reports whether some step names one by $error or $status, and thereby deals with its failure.
func (p *Plan) Regarded(step int) bool {
	l := p.growth.link(step)
	return p.Steps[step].regarded || l != nil && l.regarded
}
