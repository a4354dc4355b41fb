package reference

import (
	"fmt"
	"slices"
)

// ask is one place where a step of a plan in language 2 refers to others: depends_on, a reference with its
// alternatives, or a reference in a condition.
type ask struct {
	of    []int // the steps whose result would do, in their order
	can   bool  // it can do without: a literal ends the alternatives, or something that is always there
	hands bool  // the result is handed on
}

// asksOf returns all that a step asks of others, and in which order: depends_on, the list, the question, the arguments,
// the condition.
func (p *Plan) asksOf(i int, dependsOn *value) (all []ask) {
	s := &p.Steps[i]
	if dependsOn != nil {
		for _, m := range dependsOn.members {
			all = append(all, ask{of: []int{p.index(m.value.text)}})
		}
	}
	if s.ForEach {
		all = append(all, p.asksIn(s.in, s)...)
	}
	if text := s.questionOf(); text != nil {
		all = append(all, p.asksIn(text, s)...)
	}
	all = append(all, p.asksIn(s.arguments, s)...)
	if s.condition != nil {
		all = append(all, p.asksOfCondition(s.condition, s)...)
	}
	return all
}

// asksOfCondition returns what each reference in a condition asks for; all in a chain of ?? are alternatives.
func (p *Plan) asksOfCondition(c *condition, s *PlanStep) (all []ask) {
	if c.ref == nil && c.op != "??" {
		for _, part := range c.parts {
			all = append(all, p.asksOfCondition(part, s)...)
		}
		return all
	}
	one := ask{can: c.ends()}
	for _, r := range c.all(nil) {
		if r.of == ofResult && !(s.ForEach && r.id == s.As) {
			one.of = append(one.of, p.index(r.id))
		} else {
			one.can = true
		}
	}
	if len(one.of) == 0 {
		return nil
	}
	return []ask{one}
}

// asksIn returns what the references within a value ask for.
func (p *Plan) asksIn(v *value, s *PlanStep) (all []ask) {
	for _, leaf := range leaves(v) {
		if leaf.calc != nil {
			for _, one := range p.asksOfCondition(leaf.calc, s) {
				one.hands = true
				all = append(all, one)
			}
			continue
		}
		if target, is, _ := objectForm(leaf); is {
			all = append(all, p.asking(s, target))
			continue
		}
		phrase, _ := parse(leaf.text) // it was parsed before, when the plan was read
		if len(phrase.refs) > 0 {
			one := p.asking(s, phrase.refs...)
			one.can = one.can || phrase.scalar != nil
			all = append(all, one)
			continue
		}
		for _, part := range phrase.pieces {
			if part.ref != nil {
				all = append(all, p.asking(s, *part.ref))
			}
		}
	}
	return all
}

// asking is what some alternatives ask for. The item of a for_each and how a step ended are always there.
func (p *Plan) asking(s *PlanStep, refs ...ref) ask {
	a := ask{hands: true}
	for _, r := range refs {
		if r.of != ofResult || s.ForEach && r.id == s.As {
			a.can = true
		} else {
			a.of = append(a.of, p.index(r.id))
		}
	}
	return a
}

// names reports whether a step names another by $error or $status.
func (p *Plan) names(step, other int) bool {
	s := &p.Steps[step]
	var all []ref
	for _, v := range []*value{s.in, s.questionOf(), s.arguments} {
		if v != nil {
			some, _ := references(v)
			all = append(all, some...)
		}
	}
	if s.condition != nil {
		all = append(all, s.condition.refs...)
	}
	return slices.ContainsFunc(all, func(r ref) bool { return r.of != ofResult && r.id == p.Steps[other].ID })
}

// among reports whether some step of a list ended in one of some ways.
func (r *run) among(steps []int, statuses ...string) bool {
	return slices.ContainsFunc(steps, func(d int) bool { return slices.Contains(statuses, r.steps[d].Status) })
}

// spoiler returns the first step whose failure is why another is skipped; -1 for none. In language 1 the first is that
// in the document, and what is optional skips nothing; in language 2 it is the first that the step refers to, of those
// that it does not name and for which there is nothing else, all that it refers to being over.
func (r *run) spoiler(i int) int {
	for _, d := range r.spoilers(i) {
		return d
	}
	return -1
}

func (r *run) spoilers(i int) (all []int) {
	if !r.plan.Second {
		return slices.DeleteFunc(slices.Clone(r.plan.Steps[i].Deps), func(d int) bool {
			return r.steps[d].Status == succeeded || r.plan.Steps[d].Optional
		})
	}
	for _, a := range r.plan.Steps[i].asks {
		if a.can || r.among(a.of, succeeded) {
			continue
		}
		for _, d := range a.of {
			if r.among([]int{d}, failed, skipped, cancelled) && !r.plan.Steps[d].Optional && !r.plan.names(i, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// Spoiled tells, of a plan in language 2, which of its steps a failure reaches, by how all of them ended: those and no
// others are skipped, unless the run was stopped before. In language 1 it tells nothing.
func (p *Plan) Spoiled(status func(step int) string) []bool {
	r, all := newRun(p, nil), make([]bool, len(p.Steps))
	for i := range r.steps {
		r.steps[i].Status = status(i)
	}
	for i := range all {
		all[i] = p.Second && r.spoiler(i) >= 0
	}
	return all
}

// untaken is whether a step lacks what another would have handed it that was not taken.
func (r *run) untaken(i int) bool {
	return slices.ContainsFunc(r.plan.Steps[i].asks, func(a ask) bool {
		return a.hands && !a.can && !r.among(a.of, succeeded) && r.among(a.of, notTaken)
	})
}

// derive decides steps of language 2 that need no record to be over, or to be let through: again and again the first,
// in the order of the document, all that it refers to being over. A failure that stops the run ends this.
func (r *run) derive() (stopped bool) {
	for i := 0; r.plan.Second && !r.shut() && i < len(r.steps); i++ {
		if r.over(i) || r.taken[i] || !r.reached(i) || r.judging(i) || r.building(i) {
			continue
		}
		r.take(i)
		if r.stopsAll(i) {
			return true
		}
		i = -1 // from the first again
	}
	return false
}

// take decides what becomes of a step all that it refers to being over.
func (r *run) take(i int) {
	s := &r.steps[i]
	holds, err := false, (*Err)(nil)
	switch {
	case r.spoiler(i) >= 0:
		s.Status, s.Code, s.Message = skipped, codeSkipped, r.skipMessage(i)
		return
	case !r.untaken(i):
		holds, err = r.holds(i)
	}
	switch {
	case err != nil:
		s.fail(err)
	case holds && r.plan.Steps[i].Value:
		r.settleValue(i)
	case holds && r.person(i, -1) == "" && r.isEmpty(i):
		r.gather(i, false)
	case holds:
		r.taken[i] = true
	default:
		s.Status = notTaken
	}
}

// judging is whether a step can't be decided until a record says what its condition comes to, since that lies in blobs.
func (r *run) judging(i int) bool {
	c := r.plan.Steps[i].condition
	if c == nil || r.told[i] != nil || r.spoiler(i) >= 0 || r.untaken(i) {
		return false
	}
	return slices.ContainsFunc(c.refs, func(x ref) bool {
		d := r.plan.index(x.id)
		return x.of == ofResult && r.steps[d].Status == succeeded && r.blobs[d]
	})
}

// holds is what a step's condition comes to, or what a record says of it.
func (r *run) holds(i int) (bool, *Err) {
	if told := r.told[i]; told != nil {
		return told.Holds, told.Err
	}
	return r.plan.Holds(i, r.sight())
}

// sight is what references see of a run.
func (r *run) sight() Sight {
	return Sight{
		Result: r.dependency,
		Status: func(dep int) string { return r.steps[dep].Status },
		Err: func(dep int) *Err {
			s := r.steps[dep]
			if s.Code == "" {
				return nil
			}
			return &Err{Code: s.Code, Message: s.Message}
		},
	}
}

// handledBy returns who dealt with the failure of a step of language 2 and succeeded: the first that names it by $error
// or $status; else, where all others that refer to it had another alternative, the first of those. -1 for nobody.
func (r *run) handledBy(i int) int {
	if !r.plan.Second || r.steps[i].Status != failed {
		return -1
	}
	for d := range r.plan.Steps {
		if r.plan.names(d, i) && r.steps[d].Status == succeeded {
			return d
		}
	}
	first := -1
	for d, s := range r.plan.Steps {
		for _, a := range s.asks {
			if !slices.Contains(a.of, i) {
				continue
			}
			if !a.can && !r.among(a.of, succeeded) {
				return -1
			}
			if first < 0 && r.steps[d].Status == succeeded {
				first = d
			}
		}
	}
	return first
}

// excused is whether a step did not succeed, and yet that is no reason for the run not to have: its failure was
// handled, or it was skipped through such failures alone.
func (r *run) excused(i int) bool {
	if r.plan.Second && r.steps[i].Status == skipped {
		return !slices.ContainsFunc(r.spoilers(i), func(d int) bool { return !r.excused(d) })
	}
	return r.handledBy(i) >= 0
}

// skipMessage names the step that a step was skipped for.
func (r *run) skipMessage(i int) string {
	return fmt.Sprintf("Skipped because dependency '%s' failed", r.plan.Steps[r.spoiler(i)].ID)
}
