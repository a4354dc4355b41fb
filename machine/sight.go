package machine

import (
	"sync"

	"github.com/stepjet/stepjet/plan"
)

// sight is what the references within a scope see. A run has one while it takes a record, which looks at one scope after the
// other: resolvers of their own would be most of what small scopes cost, and one for each run a good part of what a run costs
// that waits.
type sight struct {
	run      *Run
	sc       *scope
	resolver *plan.Resolver
	results  func(dep int) (json []byte, ok bool) // of results that lie in no blob
	turn     turn                                 // the iteration that is looked from
}

// look returns what is seen in a scope, until the run looks at another.
func (sc *scope) look(r *Run) *sight {
	all := r.nested()
	if all.sight == nil {
		all.sight = idle.Get().(*sight)
		all.sight.run = r
	}
	all.sight.sc = sc
	all.sight.resolver.For(sc.plan)
	return all.sight
}

// idle are those that no run has now. They remember nothing.
var idle = sync.Pool{New: func() any {
	s := &sight{}
	s.resolver, s.results = new(plan.Plan).NewResolver().Fates(s.fate).Input(s.input).In(&s.turn), s.result
	return s
}}

// lookAway hands the sight on to other runs.
func (t *scopes) lookAway() {
	if t == nil || t.sight == nil {
		return
	}
	s := t.sight
	t.sight, s.run, s.sc, s.turn = nil, nil, nil, turn{}
	s.resolver.For(nil)
	idle.Put(s)
}

func (s *sight) fate(step int) plan.Fate { return s.run.Fate(s.sc.at(step)) }

func (s *sight) input() ([]byte, bool) { return s.sc.input.value, s.sc.outer != nil }

func (s *sight) result(dep int) ([]byte, bool) {
	json := s.run.Value(s.sc.at(dep))
	return json, json != nil
}

// in looks from an iteration, or from none.
func (s *sight) in(t turn) *sight {
	s.turn = t
	return s
}

// turn is an iteration, as its arguments see it: the last is the one before. Once it is over, as the until of its loop
// does, to which it is the last itself. Without a scope it is none.
type turn struct {
	tree *tree
	sc   *scope
	over bool
}

// last returns the result of the last iteration; nil before the first.
func (t *turn) last() *Result {
	if t.sc == nil {
		return nil
	}
	n := int(t.sc.iteration)
	if !t.over {
		n--
	}
	return t.tree.loopAround(t.sc).resultOf(t.tree, n)
}

func (t *turn) inBlob() bool {
	x := t.last()
	return x != nil && x.Handle != nil
}

// Last is of plan.Turn.
func (t *turn) Last() ([]byte, bool) {
	x := t.last()
	if x == nil {
		return []byte("null"), true
	}
	return x.Value, x.Value != nil
}

// Index is of plan.Turn.
func (t *turn) Index() int { return int(t.sc.iteration) - 1 }

// origin is where the arguments of a call are written: of an iteration, in the step of its loop.
type origin struct {
	scope *scope
	step  int  // of its plan
	of    Call // the call itself, or the loop
}

func (t *tree) originOf(i int) (origin, turn) {
	c, sc := t.calls[i].Call, t.scopeOf(i)
	if sc.iteration == 0 {
		return origin{sc, sc.numberOf(c.Step), c}, turn{}
	}
	return origin{sc.outer, sc.outer.numberOf(sc.of.Step), sc.of}, turn{t, sc, false}
}

// element returns the item of a composite that is one of a list; nil for any other call.
func (t *tree) element(c Call) []byte {
	if c.Item == 0 {
		return nil
	}
	return t.scopes.elements[c.Step][c.Item-1]
}

// Origin is where the arguments of a call are written, and what they see there.
type Origin struct {
	// Plan is the one in whose step they stand, Step the number of that step in it, Numbers those which the plan's steps
	// have in the run.
	Plan    *plan.Plan
	Step    int
	Numbers Numbers
	// Of is the call itself, or of an iteration its loop: whose item is meant.
	Of Call
	// Iteration is the number of the iteration, from 0; -1 for a call that is none.
	Iteration int
	// Last is the result of the iteration before, nil before the first.
	Last *Result
}

// Origin returns where the arguments of a call are written.
func (t *tree) Origin(c Call) Origin {
	i, ok := t.index(c)
	if !ok {
		i = c.Step
	}
	at, in := t.originOf(i)
	o := Origin{Plan: at.scope.plan, Step: at.step, Numbers: at.scope.numbers(), Of: at.of, Iteration: -1, Last: in.last()}
	if in.sc != nil {
		o.Iteration = in.Index()
	}
	return o
}
