package machine

import "github.com/stepjet/stepjet/plan"

// sight is what the references within a scope see. A run has one, which looks at one scope after the other: resolvers of
// their own would be most of what small scopes cost.
type sight struct {
	run      *Run
	sc       *scope
	resolver *plan.Resolver
	results  func(dep int) (json []byte, ok bool) // of results that lie in no blob
}

// look returns what is seen in a scope, until the run looks at another.
func (sc *scope) look(r *Run) *sight {
	all := r.nested()
	if all.sight == nil {
		s := &sight{run: r}
		s.resolver, s.results = sc.plan.NewResolver().Fates(s.fate).Input(s.input), s.result
		all.sight = s
	}
	all.sight.sc = sc
	all.sight.resolver.For(sc.plan)
	return all.sight
}

func (s *sight) fate(step int) plan.Fate { return s.run.Fate(s.sc.first + step) }

func (s *sight) input() ([]byte, bool) { return s.sc.input.value, s.sc.outer != nil }

func (s *sight) result(dep int) ([]byte, bool) {
	json := s.run.Value(s.sc.first + dep)
	return json, json != nil
}
