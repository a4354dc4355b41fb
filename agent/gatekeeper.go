package agent

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
)

// gatekeeper goes through the calls of one answer.
type gatekeeper struct {
	f         *Facts // that the call in hand is admitted on
	begun     *Facts // those of the calls before from
	from      int
	now       *Facts // those of all others
	a         *Admission
	entries   map[string]*Entry
	exclusive bool // a facade could be opened that hides all others
	fences    map[string]*fence
	may       []*brought // by call: what those that it waits for may bring about, and itself
	whole     []*brought // by call: with the calls of its plan; nil as long as nobody waits for it
	leads     map[int]bool
}

// fence keeps calls in order that would come to something else in another one.
type fence struct {
	last  int // the call that moves what the fence is about; -1 for none
	since []int
}

// brought are facts that calls may set, as the entries that they call.
type brought struct{ entries map[*Entry]bool }

func (b *brought) take(other *brought) {
	if other != nil {
		for e := range other.entries {
			b.entries[e] = true
		}
	}
}

// some reports whether some entry may have brought something about.
func (b *brought) some(of func(e *Entry) bool) bool {
	for e := range b.entries {
		if of(e) {
			return true
		}
	}
	return false
}

// call decides about one call.
func (g *gatekeeper) call(c int) {
	call := &g.a.calls[c]
	if g.f = g.begun; c >= g.from {
		g.f = g.now
	}
	g.may[c] = &brought{entries: map[*Entry]bool{}}
	for _, d := range call.After {
		g.bring(c, d)
	}
	if call.Within >= 0 {
		g.may[c].take(g.may[call.Within])
	}
	if call.Entry == "" {
		g.hold(g.before(c, g.keysWithin(c)))
		return
	}
	e := g.entries[call.Entry]
	if e == nil {
		g.settle(c, nil, g.f.unknown(call.Entry))
		return
	}
	keys := g.keys(e)
	before := g.before(c, keys)
	if why := g.locked(e, g.may[c]); why != "" {
		g.settle(c, nil, fault.New(fault.Locked, "%s", why))
		return
	}
	if g.once(c, e) {
		return
	}
	g.hold(before)
	if g.answered(c, e) {
		return
	}
	for _, k := range keys {
		g.fence(k.name).pass(c, k.moves)
	}
	g.listed(c, e, keys)
	g.may[c].entries[e] = true
}

// bring notes what a call that is waited for may bring about, with all within it.
func (g *gatekeeper) bring(c, d int) {
	if g.whole[d] == nil {
		g.whole[d] = g.may[d]
		if len(g.a.children[d+1]) > 0 {
			g.whole[d] = &brought{entries: map[*Entry]bool{}}
			g.whole[d].take(g.may[d])
			for i := d + 1; i < len(g.a.calls) && g.a.above(i, d); i++ {
				g.whole[d].take(g.may[i])
			}
		}
	}
	g.may[c].take(g.whole[d])
}

// settle notes what a call has come to.
func (g *gatekeeper) settle(c int, result []byte, err *fault.Error) {
	g.a.Settled[c] = Settled{result, err}
}

// once reports whether a call is not made because its entry is called once: it was before, or may be again and again.
func (g *gatekeeper) once(c int, e *Entry) bool {
	if !e.HasOnce {
		return false
	}
	if id := g.a.calls[c].ID; g.repeated(c) {
		g.a.Problems = append(g.a.Problems, fault.Problem{Code: fault.InvalidValue, Step: id,
			Message: fmt.Sprintf("%q is called once, and %q may call it again and again", e.Name, id),
			Hint:    "call it by a step of its own, without for_each and repeat"})
		return true
	}
	answer, _ := g.f.Gate(e.Name)
	if answer != nil {
		g.settle(c, answer, nil)
	}
	return answer != nil
}

// answered settles a call that waits for nothing and needs no worker: a facade that is opened, what tells of its tools.
// It reports whether that failed; what opens a facade is as good as one that was called.
func (g *gatekeeper) answered(c int, e *Entry) bool {
	call := &g.a.calls[c]
	if e.Kind != KindFacade && e.Kind != KindContext || call.Arguments == nil {
		return false
	}
	if len(call.After) > 0 || len(g.a.Waits[c]) > 0 || call.Within >= 0 || call.Repeated {
		return false
	}
	result, err, is := g.f.Answer(e.Name, call.Arguments, nil)
	if is {
		g.settle(c, result, err)
	}
	return is && err != nil
}

// listed refuses what a list may not have, whose items are side by side: no order is between those, so a call that may lock
// another could not be told from one that comes too late.
func (g *gatekeeper) listed(c int, e *Entry, keys []fenceKey) {
	list := -1
	for i := c; i >= 0; i = g.a.calls[i].Within {
		if g.a.calls[i].Listed {
			list = i // the outermost
		}
	}
	if list < 0 {
		return
	}
	for _, k := range keys {
		var why string
		switch {
		case !k.moves || e.HasOnce: // what is called once is in no list anyway
			continue
		case k.name == stateFence && g.leadsToOne(list):
			continue
		case k.name == stateFence:
			why = fmt.Sprintf("%q leads to the state %q, in which not all can be called that the items of %q call side by side", e.Name, e.To, g.a.calls[list].ID)
		default:
			why = fmt.Sprintf("%q is a facade that locks what others call, and the items of %q call side by side", e.Name, g.a.calls[list].ID)
		}
		g.a.Lists = append(g.a.Lists, fault.Problem{
			Code: fault.InvalidValue, Step: g.a.calls[c].ID, Message: why, Hint: "call it by steps of their own, or one after the other by repeat",
		})
		return
	}
}

// leadsToOne reports whether all calls of a list that move the state lead to the same, in which all of its calls may be made:
// then it does not matter which item comes first.
func (g *gatekeeper) leadsToOne(list int) bool {
	if one, known := g.leads[list]; known {
		return one
	}
	to, one := "", true
	within := func(each func(e *Entry)) {
		for i := list; i < len(g.a.calls) && (i == list || g.a.above(i, list)); i++ {
			if e := g.entries[g.a.calls[i].Entry]; e != nil {
				each(e)
			}
		}
	}
	within(func(e *Entry) {
		one = one && (e.To == "" || to == "" || e.To == to)
		to = cmp.Or(to, e.To)
	})
	within(func(e *Entry) { one = one && (e.states == nil || slices.Contains(e.states, to)) })
	g.leads[list] = one
	return one
}

// repeated reports whether a call may be made more than once.
func (g *gatekeeper) repeated(c int) bool {
	for ; c >= 0; c = g.a.calls[c].Within {
		if g.a.calls[c].Repeated {
			return true
		}
	}
	return false
}

// stateFence is the fence of the state machine.
const stateFence = "state"

// fenceKey is a fence that an entry stands at.
type fenceKey struct {
	name  string
	moves bool // its success may let others come to something else
}

// keys are the fences of an entry: that of the state machine, those of facades whose arguments count, that of a facade
// that hides all others, and its own where it is called once.
func (g *gatekeeper) keys(e *Entry) (keys []fenceKey) {
	if e.states != nil || e.To != "" {
		keys = append(keys, fenceKey{stateFence, e.To != ""})
	}
	for x := e; x != nil; x = x.within {
		if x.Kind == KindFacade && x.facade.takesArgs {
			keys = append(keys, fenceKey{"facade " + x.Name, x == e})
		}
	}
	if g.exclusive {
		keys = append(keys, fenceKey{"exclusive", e.Kind == KindFacade && e.facade.exclusive})
	}
	if e.HasOnce {
		keys = append(keys, fenceKey{"once " + e.Tool, true})
	}
	return keys
}

func (g *gatekeeper) fence(name string) *fence {
	if g.fences[name] == nil {
		g.fences[name] = &fence{last: -1}
	}
	return g.fences[name]
}

// before are the calls that one waits for at a fence.
func (f *fence) before(moves bool) (calls []int) {
	if f.last >= 0 {
		calls = append(calls, f.last)
	}
	if moves {
		calls = append(calls, f.since...)
	}
	return calls
}

// ordered is a call that waits for another one of the same plan.
type ordered struct{ late, early int }

// before returns what a call waits for at its fences, and notes what that may bring about. Where they stand in different
// plans, those wait for each other that stand in the same.
func (g *gatekeeper) before(c int, keys []fenceKey) (all []ordered) {
	for _, k := range keys {
		for _, d := range g.fence(k.name).before(k.moves) {
			late, early := g.way(c), g.way(d)
			i := 0
			for i < len(late) && i < len(early) && late[i] == early[i] {
				i++
			}
			if i < len(late) && i < len(early) { // else one stands in the other's plan
				all = append(all, ordered{late[i], early[i]})
				g.bring(c, early[i])
			}
		}
	}
	return all
}

// way returns the calls whose plans a call stands in, from the outermost, and itself.
func (g *gatekeeper) way(c int) (way []int) {
	for ; c >= 0; c = g.a.calls[c].Within {
		way = append(way, c)
	}
	slices.Reverse(way)
	return way
}

// hold lets calls wait for each other.
func (g *gatekeeper) hold(all []ordered) {
	for _, o := range all {
		if !slices.Contains(g.a.calls[o.late].After, o.early) && !slices.Contains(g.a.Waits[o.late], o.early) {
			g.a.Waits[o.late] = append(g.a.Waits[o.late], o.early)
		}
	}
}

// keysWithin are the fences of all calls of a plan: it waits for what they wait for.
func (g *gatekeeper) keysWithin(c int) (keys []fenceKey) {
	for i := c + 1; i < len(g.a.calls) && g.a.above(i, c); i++ {
		if e := g.entries[g.a.calls[i].Entry]; e != nil {
			keys = append(keys, g.keys(e)...)
		}
	}
	return keys
}

// pass notes that a call stands at a fence.
func (f *fence) pass(c int, moves bool) {
	if moves {
		f.last, f.since = c, nil
		return
	}
	f.since = append(f.since, c)
}

// locked returns why an entry is locked and stays so, whatever the calls come to that are waited for.
func (g *gatekeeper) locked(e *Entry, may *brought) string {
	for i := range e.clauses {
		c := &e.clauses[i]
		holds, err := c.cond.holds(g.f.look)
		if holds && err == nil || g.opens(c, may) {
			continue
		}
		return wording{g.f}.why(e, c, err)
	}
	return ""
}

// opens reports whether calls may bring about what a clause asks for.
func (g *gatekeeper) opens(c *clause, may *brought) bool {
	calls := func(tool string) bool { return may.some(func(e *Entry) bool { return e.Tool == tool }) }
	anyTool := func(e *Entry) bool { return e.Kind == KindTool } // its worker may say what its result is
	switch c.kind {
	case clauseOpened:
		return calls(c.names[0])
	case clauseState:
		return may.some(func(e *Entry) bool { return slices.Contains(c.names, e.To) })
	case clauseAll:
		return !slices.ContainsFunc(c.names, func(t string) bool { return !wording{g.f}.has(c, t) && !calls(t) })
	case clauseAny:
		return slices.ContainsFunc(c.names, calls)
	case clauseArtifact, clauseBound, clauseShared:
		return may.some(anyTool)
	case clauseWhen:
		return slices.ContainsFunc(c.cond.refs, func(r reference) bool {
			switch r.word {
			case ofCalled, ofSucceeded, ofOpened:
				return calls(r.path[0].key)
			case ofArtifact, ofBound:
				return may.some(anyTool)
			case ofState:
				return may.some(func(e *Entry) bool { return e.To != "" || len(r.path) > 0 && anyTool(e) })
			}
			return false
		})
	case clauseExclusive: // what was opened stays so
	}
	return false
}

// Admit goes through the calls of an answer, in its order but each behind what it depends on, and says what becomes of
// each as of these facts. A call that is locked is admitted where calls that it waits for may open it, and settled with
// locked otherwise. Whether it is open when it is ready, Gate says again.
func (f *Facts) Admit(calls []Call) *Admission { return f.AdmitMore(calls, len(calls), f) }

// AdmitMore is Admit for calls of which the first were admitted before, on these facts, and stay as they were. Those from a
// place on are added while these run, and admitted on the facts of now.
func (f *Facts) AdmitMore(calls []Call, from int, now *Facts) *Admission {
	a := Admitted(calls, make([][]int, len(calls)))
	g := &gatekeeper{begun: f, from: from, now: now, a: a, leads: map[int]bool{}, fences: map[string]*fence{}, entries: map[string]*Entry{}, may: make([]*brought, len(calls)), whole: make([]*brought, len(calls))}
	for e := range f.entries {
		g.entries[e.Name] = e
		g.exclusive = g.exclusive || e.Kind == KindFacade && e.facade.exclusive && !f.opened.has(e.Name)
	}
	for _, c := range a.order {
		g.call(c)
	}
	return a
}

// Admitted returns the admission of calls by what was recorded of it: for each of them those that it waits for beside After.
func Admitted(calls []Call, waits [][]int) *Admission {
	a := &Admission{Waits: waits, Settled: map[int]Settled{}, calls: calls}
	a.children = make([][]int, len(calls)+1)
	for i, c := range calls {
		a.children[c.Within+1] = append(a.children[c.Within+1], i)
	}
	a.line(-1, make([]bool, len(calls)))
	a.place = make([]int, len(calls))
	for i, c := range a.order {
		a.place[c] = i
	}
	return a
}
