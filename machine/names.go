package machine

import (
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// Token names a call in subjects and documents: the step's id, S=i for an item, or S/=i for an iteration.
func (t *tree) Token(c Call) string {
	sc := t.scopeOf(c.Step)
	if sc.iteration > 0 {
		return subjects.Iteration(sc.token, int(sc.iteration)-1)
	}
	id := t.stepOf(c.Step).ID
	if c.Item > 0 {
		id = subjects.ItemToken(id, c.Item-1)
	}
	return subjects.InScope(sc.token, id)
}

// nameOf is Token, which the plan has too.
func (t *tree) nameOf(c Call) string {
	if c.Step == ThePlan {
		return subjects.RootScope
	}
	return t.Token(c)
}

// Find returns the call that a token names, and whether there is such a call by now.
func (t *tree) Find(token string) (Call, bool) {
	segments, ok := subjects.ParseStepToken(token)
	sc, c := &t.root, Call{}
	for i := 0; i < len(segments) && ok; i++ {
		x := &segments[i]
		if i > 0 {
			if a := agentAt(t, c); a != nil && i+1 < len(segments) {
				i++
				sc, x = a.round(x, &segments[i]), &segments[i]
			} else {
				sc = t.insideBy(c, x)
			}
			if sc == nil {
				return Call{}, false
			}
		}
		if x.Kind == subjects.IterationSegment {
			c = Call{Step: sc.at(0)}
			continue
		}
		step, known := indexOf(sc.plan, x)
		c, ok = Call{Step: sc.at(step)}, known
		if x.Kind == subjects.ItemSegment {
			c.Item = x.Number + 1
		}
	}
	if !ok || len(segments) == 0 {
		return Call{}, false
	}
	return c, true
}

// indexOf returns the step of a plan that a segment names.
func indexOf(p *plan.Plan, x *subjects.Segment) (int, bool) {
	if x.Kind == subjects.CallSegment {
		return p.Index(x.String())
	}
	at, known := p.Index(x.Name)
	return at, known && x.Kind != subjects.IterationSegment
}

// toldOf returns the composite whose output a record tells, or the call that it is about: what a round comes to goes by
// the token of that.
func toldOf(r *Run, token string) (Call, bool) {
	c, there := r.Find(subjects.ScopeOf(token))
	if !there || !subjects.IsIteration(token) || agentAt(&r.tree, c) == nil {
		return r.Find(token)
	}
	sc := r.inside(c)
	return c, sc != nil && sc.token == token
}

// Named returns the step that a token may be of, now or once its scope is entered, and whether it is an item's: whatever
// the lengths of lists turn out to be.
func Named(r *Run, token string) (s *plan.Step, isItem, ok bool) {
	t := &r.tree
	segments, ok := subjects.ParseStepToken(token)
	sc, p, c := &t.root, t.root.plan, Call{}
	for i := 0; i < len(segments) && ok; i++ {
		x := &segments[i]
		if i > 0 && s.Agent() != nil && s.Repeat == nil {
			if sc == nil || i+1 == len(segments) || isItem != (s.ForEach != nil) ||
				x.Kind != subjects.IterationSegment || x.Number >= mostRounds(s.Agent()) {
				return nil, false, false
			}
			i++
			a := agentAt(t, c)
			if sc = nil; a != nil {
				sc = a.round(x, &segments[i])
			}
			if x = &segments[i]; sc == nil && x.Kind != subjects.CallSegment {
				return nil, false, false
			}
			if guard := guardStep(s.Plan, x); sc == nil && guard != nil {
				return guard, false, i+1 == len(segments)
			}
			p = s.Plan // of a round that is not entered yet
		} else if i > 0 {
			if p = s.Plan; p == nil || isItem != (s.ForEach != nil) || (s.Repeat != nil) != (x.Kind == subjects.IterationSegment) {
				return nil, false, false
			}
			if sc != nil {
				sc = t.insideBy(c, x)
			}
		}
		if sc != nil {
			p = sc.plan
		}
		at, known := 0, x.Kind == subjects.IterationSegment && x.Number < s.Repeat.Max
		if x.Kind != subjects.IterationSegment {
			at, known = indexOf(p, x)
		}
		if !known {
			return nil, false, false
		}
		s, isItem = &p.Steps[at], x.Kind == subjects.ItemSegment
		ok = x.Kind != subjects.ItemSegment || isItem && s.ForEach != nil && x.Number < plan.MaxItems
		if sc != nil {
			c = Call{Step: sc.at(at)}
		}
		if isItem {
			c.Item = x.Number + 1
		}
	}
	return s, isItem, ok && s != nil
}

// mostRounds is how many rounds an agent may have, that of its last answer included.
func mostRounds(a *plan.Agent) int {
	if a.Responds {
		return a.MaxRounds + 1
	}
	return a.MaxRounds
}

// scopeNamed returns the scope of a composite that was entered, by its token; nil where there is none. A loop has none of
// its own: its iterations have.
func scopeNamed(t *tree, token string) *scope {
	if token == atRoot.token {
		return &t.root
	}
	if sc := roundNamed(t, token); sc != nil {
		return sc
	}
	c, ok := t.Find(token)
	if !ok {
		return nil
	}
	if sc := t.inside(c); sc != nil && sc.iteration == 0 {
		return sc
	}
	return nil
}

// roundNamed returns the scope of what a round of an agent runs, by the round's token; nil where nothing of it was begun.
func roundNamed(t *tree, token string) *scope {
	if !subjects.IsIteration(token) {
		return nil
	}
	c, ok := t.Find(subjects.ScopeOf(token))
	if !ok {
		return nil
	}
	a := agentAt(t, c)
	if a == nil {
		return nil
	}
	for _, sc := range a.of[:a.entered] {
		if sc.token == token && !asksPlanner(sc) {
			return sc
		}
	}
	return nil
}

// RoundNamed returns the agent and the number of a round of which something was begun, by its token; ok is false for any
// other.
func RoundNamed(r *Run, token string) (agent Call, round int, ok bool) {
	sc := roundNamed(&r.tree, token)
	if sc == nil {
		return Call{}, 0, false
	}
	return sc.of, int(sc.round) - 1, true
}

// ScopeNamed returns the plan of a scope as it is now, and the numbers of its steps; ok is false for one that there is not,
// or that is not entered yet.
func ScopeNamed(r *Run, token string) (p *plan.Plan, of Numbers, ok bool) {
	sc := scopeNamed(&r.tree, token)
	if sc == nil {
		return nil, Numbers{}, false
	}
	return sc.plan, sc.numbers(), true
}

// Revision returns the number of the last amendment of a scope, and whether the scope is entered.
func Revision(r *Run, scope string) (n int, ok bool) {
	sc := scopeNamed(&r.tree, scope)
	if sc == nil {
		return 0, false
	}
	return sc.revision(), true
}
