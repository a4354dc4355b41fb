package plan

import (
	"slices"
	"sync/atomic"
)

// An amended plan has its steps in one array with the plan that it comes from, behind those of that: who amends a plan a
// thousand times holds its steps once, and reads what is added and nothing else. What a step that was there has to know
// of added ones lies beside the array, so that no plan changes.

// growth is what an amended plan has beside its steps.
type growth struct {
	// newest is how many steps the one plan has, of all that share the array, that may be amended in it: the last one. It is
	// claimed while that goes on.
	newest *atomic.Int64
	old    int     // steps that were there before this amendment
	links  []*page // of all steps; nil for what was not amended so far
	before []*page // of the plan that is amended, until it is
}

const (
	claimed  = -1
	pageSize = 64
)

// page are the links of so many steps. It is changed by the amendment that has made it, and never again.
type page [pageSize]link

// link is what amendments added to a step that was there before.
type link struct {
	dependents []int // all of them; nil for those that the step has itself
	regarded   bool
}

// link returns what was added to a step; nil for nothing.
func (g *growth) link(step int) *link {
	if g == nil || step/pageSize >= len(g.links) || g.links[step/pageSize] == nil {
		return nil
	}
	return &g.links[step/pageSize][step%pageSize]
}

// edit returns it to be changed.
func (g *growth) edit(step int) *link {
	k := step / pageSize
	for k >= len(g.links) {
		g.links = append(g.links, nil)
	}
	switch {
	case g.links[k] == nil:
		g.links[k] = &page{}
	case k < len(g.before) && g.links[k] == g.before[k]:
		mine := *g.links[k]
		g.links[k] = &mine
	}
	return &g.links[k][step%pageSize]
}

// depend notes that an added step waits for one that was there. Lists grow in place: no plan that shares one has as many.
func (g *growth) depend(p *Plan, on, step int) {
	l := g.edit(on)
	if l.dependents == nil {
		l.dependents = slices.Clip(p.Steps[on].dependents)
	}
	l.dependents = append(l.dependents, step)
}

// extended returns a plan with so many empty steps behind those of p, in the array of that if it can be. again says that
// some of those are to be written anew.
func extended(p *Plan, by int, again bool) *Plan {
	n := len(p.Steps)
	var q *Plan
	if g := p.growth; g != nil && !again && g.newest.CompareAndSwap(int64(n), claimed) {
		of := *p
		q = &of
		q.growth = &growth{newest: g.newest, old: n, links: slices.Clone(g.links), before: g.links}
	} else {
		q = apart(p)
		if again { // all of it is linked anew
			q.growth.old = 0
		}
	}
	q.Steps = slices.Grow(q.Steps, by)[:n+by]
	clear(q.Steps[n:])
	if q.ids == nil {
		q.ids = newIDs(n)
		for i := range n {
			q.ids.note(p.Steps[i].ID, i)
		}
	}
	q.ids = append(slices.Clip(q.ids), newIDs(by)...)
	return q
}

// apart returns a plan that shares no array with p, whose steps may be changed. It is claimed by who asks.
func apart(p *Plan) *Plan {
	q := *p
	q.Steps, q.Outputs, q.calcs = slices.Clone(p.Steps), slices.Clip(p.Outputs), slices.Clip(p.calcs)
	for i := range q.Steps {
		q.Steps[i].dependents, q.Steps[i].regarded = slices.Clip(p.Dependents(i)), p.Regarded(i)
	}
	q.growth = &growth{newest: new(atomic.Int64), old: len(p.Steps)}
	q.growth.newest.Store(claimed)
	return &q
}

// release lets a plan that was made by extended or apart be amended.
func release(p *Plan) {
	p.ids.merge()
	p.growth.before = nil
	p.growth.newest.Store(int64(len(p.Steps)))
}

// giveBack lets go of what was claimed for an amendment that comes to nothing.
func giveBack(p *Plan) {
	clear(p.Steps[p.growth.old:])
	p.growth.newest.Store(int64(p.growth.old))
}

// ids finds steps by their ids. An amended plan has those of the plan that it comes from, and its own: as many tables as
// the number of steps has digits, more or less, of which none is changed that another plan has.
type ids []map[string]int32

func newIDs(room int) ids { return ids{make(map[string]int32, room)} }

func (t ids) find(id string) (step int32, known bool) {
	for _, m := range t {
		if step, known = m[id]; known {
			break
		}
	}
	return step, known
}

// at returns the number of a step; 0 for one that is not known.
func (t ids) at(id string) int {
	step, _ := t.find(id)
	return int(step)
}

// note takes a step into the last table.
func (t ids) note(id string, step int) { t[len(t)-1][id] = int32(step) }

// merge puts tables together until each is at least twice as large as the next.
func (t *ids) merge() {
	all := *t
	for n := len(all); n > 1 && len(all[n-2]) < 2*len(all[n-1]); n = len(all) {
		both := make(map[string]int32, len(all[n-2])+len(all[n-1]))
		for _, m := range all[n-2:] {
			for id, step := range m {
				both[id] = step
			}
		}
		all = append(all[:n-2:n-2], both)
	}
	*t = all
}
