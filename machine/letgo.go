package machine

import (
	"slices"
	"time"
)

// kept is what is known of the results that lie in memory. What a scope returned nobody refers to once the scope is over,
// but the values stay in the records, so that they need not stay here. What decides is never one that was let go of: the
// state is a function of the records, whoever let go of what.
type kept struct {
	bytes     int64 // of values that records of attempts brought, and that are here,
	derived   int64 // and of those that were derived
	next      int64 // with how many it is looked again which of them nobody refers to any more
	gone      int   // records whose values were let go of,
	away      int64 // and their bytes
	underived int64 // bytes of values that were derived, and let go of
	missing   bool  // the state is to be computed anew, which takes all that stands in records
}

// holds counts the value of a result that was derived.
func (k *kept) holds(res *Result) {
	if res.Derived {
		k.derived += int64(len(res.Value))
	}
}

// LetGo lets go of the values of results that nothing in the run refers to any more: those in scopes that are over, of
// iterations before the last ones, and of rounds of agents that are behind. Whoever wants one later (a document, the
// request of a planner) reads its record again. It looks only where there are at least so many bytes, and twice as many as
// it left behind last time, so that looking costs little however long the run is; with 0
// it always looks. whole reports whether the requests of an
// agent's planner have all rounds in them: then those are read again and again, and stay. list is told of the for_each steps
// of tools whose lists nobody refers to any more.
func LetGo(r *Run, least int64, whole func(agent, planner Call) bool, list func(step int)) {
	k := &r.kept
	if k.bytes+k.derived < max(least, k.next) || r.scopes == nil || k.missing || r.finished {
		return
	}
	g := letting{run: r, whole: whole, over: make([]verdict, len(r.scopes.below)+1)}
	g.refer()
	k.bytes = 0
	for i := range r.log {
		res := r.log[i].Result
		if res == nil || res.Value == nil {
			continue
		}
		if at, there := r.index(res.Call); there && g.unreferred(at) {
			res.Value, res.Away = nil, true
			k.gone, k.away = k.gone+1, k.away+res.Size
			continue
		}
		k.bytes += int64(len(res.Value))
	}
	g.underive()
	g.leave()
	for step := range r.counts {
		if r.isStep(step) && r.stepOf(step).Plan == nil && g.unreferred(step) && g.over[r.calls[step].scope] == behind {
			list(step)
		}
	}
	if k.next = 2 * (k.bytes + k.derived); least == 0 {
		k.next = 0
	}
	for step := range r.entries {
		if g.unreferred(step) {
			delete(r.entries, step)
		}
	}
}

// underive lets go of what values and composites came to, but for those in rounds of agents: what those came to is shown as
// a whole, and found out of much.
func (g *letting) underive() {
	k := &g.run.kept
	k.derived = 0
	for i := range g.run.calls {
		res := g.run.calls[i].result
		if res == nil || !res.Derived || res.Value == nil {
			continue
		}
		if g.unreferred(i) && g.over[g.run.calls[i].scope] == behind && g.run.stepOf(i).Agent() == nil {
			res.Value, res.Away = nil, true
			k.underived += res.Size
			continue
		}
		k.derived += int64(len(res.Value))
	}
}

// leave lets go of the inputs of scopes, likewise.
func (g *letting) leave() {
	for _, sc := range g.run.scopes.below {
		if len(sc.base().Steps) > 0 && sc.input.value != nil && g.run.calls[sc.first].state != absent && g.unreferred(sc.first) && g.over[sc.number] == behind {
			sc.input = input{gone: true}
		}
	}
}

// InputLetGo reports whether the machine has let go of the input of the scope that a step stands in: it can be made again, of
// the arguments of the scope's composite.
func InputLetGo(r *Run, step int) bool { return r.scopeOf(step).input.gone }

// verdict is what was found out of a scope.
type verdict uint8

const (
	unknown verdict = iota
	inUse
	behind        // nobody refers to what is in it
	behindInRound // likewise, and it is in a round of an agent
)

// letting finds out which results nobody refers to any more.
type letting struct {
	run      *Run
	whole    func(agent, planner Call) bool
	over     []verdict    // by the number of the scope
	referred map[int]bool // steps of earlier rounds that a round which goes on has steps for
}

// refer finds the steps of earlier rounds that are referred to in rounds that go on.
func (g *letting) refer() {
	for _, a := range g.run.scopes.agents {
		sc := a.current()
		if sc == nil {
			continue
		}
		for n := range sc.plan.Steps {
			g.referTo(g.run.calls[sc.at(n)].result)
		}
		if begun := begunIn(g.run, sc); begun != nil {
			for n := range begun.plan.Steps {
				g.referTo(g.run.calls[begun.at(n)].result)
			}
		}
	}
}

func (g *letting) referTo(res *Result) {
	if res == nil {
		return
	}
	for _, p := range res.Parts {
		if g.referred == nil {
			g.referred = map[int]bool{}
		}
		if !g.referred[p.Step] {
			g.referred[p.Step] = true
			g.referTo(g.run.calls[p.Step].result)
		}
	}
}

// unreferred reports whether nobody refers to what a call returned any more.
func (g *letting) unreferred(i int) bool {
	sc := g.run.scopeOf(i)
	if g.referred[g.run.calls[i].Step] {
		return false
	}
	v := &g.over[sc.number]
	if *v == unknown {
		*v = g.find(sc)
	}
	return *v != inUse
}

// find finds out whether a scope is over, or one that it stands in. What is in a round of an agent is shown to the planner of
// the next; so it stays until then, whatever is over within the round.
func (g *letting) find(sc *scope) verdict {
	over, inRound := false, false
	for ; sc.outer != nil; sc = sc.outer {
		i, _ := g.run.index(sc.of)
		switch {
		case g.run.calls[i].state.terminal():
			over = true
		case sc.round > 0 && !inRound && g.shown(sc, i):
			return inUse
		case sc.round > 0 && !inRound, sc.iteration > 0 && g.passed(sc):
			over = true
		}
		inRound = inRound || sc.round > 0
	}
	switch {
	case !over:
		return inUse
	case inRound:
		return behindInRound
	}
	return behind
}

// shown reports whether the planner of an agent that goes on is still to be shown what a round came to.
func (g *letting) shown(sc *scope, i int) bool {
	a := roundsOf(&g.run.tree, i)
	return a.pending != nil || sc.round >= a.current().round-1 || g.whole(sc.of, Call{Step: a.of[0].first})
}

// passed reports whether neither the next iteration of a loop that goes on refers to one, nor what the loop comes to. A
// list of all that is too large to be derived is read beside this, whoever has let go of what.
func (g *letting) passed(sc *scope) bool {
	i, _ := g.run.index(sc.of)
	l := g.run.loopOf(i)
	if int(sc.iteration) >= l.entered-1 {
		return false
	}
	if !g.run.stepOf(i).Repeat.Collect {
		return true
	}
	size := int64(0)
	for n := 1; n < l.entered && size <= MaxDerived; n++ {
		size += l.resultOf(&g.run.tree, n).Size
	}
	return size > MaxDerived
}

// Away returns how many bytes were let go of.
func Away(r *Run) int64 { return r.kept.away + r.kept.underived }

// MissingOf returns the results that were let go of and that a round is to have steps for, or, for nil, those of all
// records. Each is to be read again and given back before the record of the round is applied.
func MissingOf(r *Run, round *Round) (list []*Result) {
	if r.kept.gone == 0 {
		return nil
	}
	if round == nil {
		for i := range r.log {
			if res := r.log[i].Result; res != nil && res.Away {
				list = append(list, res)
			}
		}
		return list
	}
	i, ok := waitsForRound(r, round.Scope)
	if !ok {
		return nil
	}
	return missingParts(r, i, round.Earlier)
}

// MissingFor is MissingOf for an amendment of a round.
func MissingFor(r *Run, a *Amendment) []*Result {
	if r.kept.gone == 0 || a.Admitted == nil {
		return nil
	}
	sc := roundNamed(&r.tree, a.Scope)
	if a.Streamed != nil {
		if sc = scopeNamed(&r.tree, a.Scope); sc != nil {
			sc = sc.outer
		}
	}
	if sc == nil || sc.round == 0 {
		return nil
	}
	i, _ := r.index(sc.of)
	return missingParts(r, i, slices.Concat(a.Admitted.Earlier, a.Admitted.Reaches))
}

func missingParts(r *Run, i int, earlier []Earlier) (list []*Result) {
	g := letting{run: r}
	for _, e := range earlier {
		g.referTo(&Result{Parts: roundsOf(&r.tree, i).parts(r, e)})
	}
	if g.referred == nil {
		return nil
	}
	for c := range r.All() {
		if res := r.Decided(c); res != nil && res.Away && g.referred[c.Step] {
			list = append(list, res)
		}
	}
	return list
}

// GiveBack takes the value of a result that was let go of.
func GiveBack(r *Run, res *Result, value []byte) {
	if !res.Away || res.Derived {
		return
	}
	res.Value, res.Away = value, false
	r.kept.bytes += int64(len(value))
	r.kept.gone, r.kept.away = r.kept.gone-1, r.kept.away-res.Size
}

// Recalls reports whether the run waits for all values that were let go of (MissingOf): its state is to be computed anew.
// Until they were given back nothing of it is to be relied on.
func Recalls(r *Run) bool { return r.kept.missing }

// Recall goes on once all values were given back. They stay until as many bytes have come again.
func Recall(r *Run, now time.Time, out *Effects) {
	if !r.kept.missing || r.kept.gone > 0 {
		return
	}
	r.kept.missing, r.kept.next = false, 2*r.kept.bytes
	r.replay(now, out)
	r.withhold(out)
}
