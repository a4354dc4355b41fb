package machine

import (
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// Consider reads an amendment of a run as it would count if its record came now, against a catalog, and tells all that is
// wrong with what it says at once, and what is odd about it. An error says that the scope can't be amended at all, whatever
// it says. Nothing changes.
func Consider(r *Run, a *Amendment, c plan.Catalog) (*plan.Addition, plan.Report, *fault.Error) {
	x, ok := r.amendments.of(r, a)
	if !ok {
		return nil, plan.Report{}, fault.New(fault.InvalidID, "there is no plan at %q, or it was not entered yet", a.Scope).
			WithHint(`"=" is the plan of the run; that of a step is named by the step's token`)
	}
	if x.sc.round > 0 && x.sc.token != a.Scope { // an owner of before has recorded such, which counts as it did
		return nil, plan.Report{}, fault.New(fault.InvalidID, "%q is an agent, which has no plan of its own", a.Scope).
			WithHint("name the round: what of it runs now is %q", x.sc.token)
	}
	if err := x.unamendable(); err != nil {
		return nil, plan.Report{}, err
	}
	if err := x.unapproved(); err != nil {
		return nil, plan.Report{}, err
	}
	if len(r.list) >= MaxAmendments && !a.only() {
		return nil, plan.Report{}, tooManyAmendments()
	}
	addition := x.addition()
	addition.Gone, addition.Done = x.gone, x.takenOver
	added, report := plan.Check(x.sc.plan, addition, c)
	report.Problems = append(append(x.unknown(), report.Problems...), x.guarded()...)
	if added != nil && int(r.steps)+added.More > plan.MaxSteps {
		report.Problems = append(report.Problems, fault.Problem{
			Code: fault.LimitExceeded, Path: "/add", Message: fmt.Sprintf("with these steps the run would have more than %d", plan.MaxSteps),
			Hint: "run the parts as plans of their own",
		})
	}
	return added, report, nil
}

// takenOver reports whether the result of a step is from the run that this one tries again, whose tools may have declared
// something else.
func (x *amending) takenOver(step int) bool { return x.calls[x.sc.at(step)].reused }

// unknown finds what the amendment discards that the plan doesn't have.
func (x *amending) unknown() (problems []fault.Problem) {
	for i, id := range x.a.Discard {
		if _, known := x.sc.plan.Index(id); !known {
			problems = append(problems, fault.Problem{
				Code: fault.UnknownRef, Path: fmt.Sprintf("/discard/%d", i), Message: fmt.Sprintf("there is no step %q", id),
				Hint: "look at the plan as it is now: stepjet get RUN",
			})
		}
	}
	return problems
}

// guarded finds steps that people approve and the amendment would discard: who may reject them does so.
func (x *amending) guarded() (problems []fault.Problem) {
	above := x.approvedAbove()
	for _, n := range x.discarded() {
		s := &x.sc.plan.Steps[n]
		if i := x.sc.at(n); x.calls[i].state.terminal() || !above && !x.wantsPerson(s, i) {
			continue
		}
		problems = append(problems, fault.Problem{
			Code: fault.Permission, Path: "/discard", Step: s.ID, Message: fmt.Sprintf("the step %q is one that people approve, so no amendment takes it away", s.ID),
			Hint: "whoever approves it rejects it: stepjet reject RUN STEP",
		})
	}
	return problems
}

// discarded returns the steps that the amendment names to be discarded, in the order of the plan.
func (x *amending) discarded() (steps []int) {
	if x.a.Rest {
		for n := range x.sc.plan.Steps {
			steps = append(steps, n)
		}
		return steps
	}
	for _, id := range x.a.Discard {
		if n, known := x.sc.plan.Index(id); known {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// wantsPerson reports whether a step, or one within it, is approved by a person.
func (x *amending) wantsPerson(s *plan.Step, i int) bool {
	if s.Approval != nil || x.Contract(i).Approval != "" {
		return true
	}
	if s.Plan == nil {
		return false
	}
	tools := x.used(&x.tree)
	for inner := range s.Plan.All() {
		if c := tools.contracts[inner.Tool]; inner.Approval != nil || c != nil && c.Approval != "" {
			return true
		}
	}
	return false
}

// approvedAbove reports whether the scope lies within a step that people approve.
func (x *amending) approvedAbove() bool {
	for sc := x.sc; sc.outer != nil; sc = sc.outer {
		if x.stepOf(sc.of.Step).Approval != nil {
			return true
		}
	}
	return false
}

// AddedTools returns the tools that an amendment's steps call, each once.
func AddedTools(x *plan.Addition) (names []string) {
	add := func(s *plan.Step) {
		if s.Tool != "" && !s.Ask && !slices.Contains(names, s.Tool) {
			names = append(names, s.Tool)
		}
	}
	for i := range x.Steps {
		s := &x.Steps[i]
		add(s)
		if s.Plan != nil {
			for inner := range s.Plan.All() {
				add(inner)
			}
		}
	}
	return names
}

func tooManyAmendments() *fault.Error {
	return fault.New(fault.LimitExceeded, "the run was amended %d times, and can't be any more", MaxAmendments).
		WithHint("amend in larger parts, or let a plan of its own do the rest")
}

// unamendable says why a scope can't be amended at all; nil where it can.
func (x *amending) unamendable() *fault.Error {
	sc := x.sc
	switch {
	case sc.plan.Language == 1:
		return fault.New(fault.NotAmendable, "the plan uses nothing of the second version of the language, so it stays as it was submitted").
			WithHint(`a plan that is to be amended says so: "open": true`)
	case sc.plan.Schedule == plan.Waves:
		return fault.New(fault.NotAmendable, "a plan that is scheduled by waves stays as it was submitted").
			WithHint(`leave "schedule": "waves" out`)
	case sc.stopping || sc.over() || x.finished || sc.shaping:
		return fault.New(fault.AlreadyFinished, "the plan of %s came to its end before it was amended", shownScope(sc)).
			WithHint("what is to be done besides is a plan of its own")
	}
	if isBegun(sc) || x.a.Streamed != nil {
		return x.unstreamed()
	}
	if err := x.fixed(); err != nil && !(x.a.ByOwner && x.a.only()) {
		return err
	}
	if i, ok := x.index(sc.of); sc.outer != nil && (!ok || x.calls[i].state != entered) {
		return fault.New(fault.AlreadyFinished, "the step %s came to its end before its plan was amended", sc.token).
			WithHint("what is to be done besides is a plan of its own")
	}
	return nil
}

// fixed says why nobody changes the plan of a scope, which its owner closes all the same where it is open; nil for one that
// people may amend.
func (x *amending) fixed() *fault.Error {
	if in := x.inRound(); in != "" {
		return fault.New(fault.NotAmendable, "the plan of %s lies within a round of an agent, and is amended with that alone", shownScope(x.sc)).
			WithHint("amend the round: discard the step of %s, and add it as it should be", in)
	}
	if name := x.calledBy(); name != "" {
		return fault.New(fault.NotAmendable, "the plan of %s is that of the template %q, which stays as it is", shownScope(x.sc), name).
			WithHint("amend the plan that calls it")
	}
	return nil
}

// calledBy returns the template whose plan the scope is, or lies within; empty where somebody wrote it.
func (x *amending) calledBy() string {
	for sc := x.sc; sc.outer != nil && sc.round == 0; sc = sc.outer {
		if t := x.stepOf(sc.of.Step).Template; t != nil {
			return t.Name
		}
	}
	return ""
}

// inRound returns the token of the round that the scope lies within, as the plan of a step that the planner wrote; empty for
// any other.
func (x *amending) inRound() string {
	for sc := x.sc; sc.outer != nil && sc.round == 0 && x.stepOf(sc.of.Step).Template == nil; sc = sc.outer {
		if around := sc.outer; around.round > 0 {
			return around.token
		}
	}
	return ""
}

func shownScope(sc *scope) string {
	if sc.outer == nil {
		return "the run"
	}
	return "the step " + sc.token
}

// stale says why an amendment does nothing where it stands; nil where what it was made for is still so.
func (x *amending) stale() *fault.Error {
	for _, id := range x.a.Discard {
		if _, known := x.sc.plan.Index(id); !known {
			return fault.New(fault.UnknownRef, "there is no step %q to be discarded", id).
				WithHint("look at the plan as it is now: stepjet get RUN")
		}
	}
	for _, id := range x.a.ids {
		n, known := x.sc.plan.Index(id)
		if !known {
			continue
		}
		c := &x.calls[x.sc.at(n)]
		switch {
		case !x.a.discards(id):
			return taken(id, "is used already")
		case c.state != waiting || c.discarded != notDiscarded:
			return taken(id, "is of a step that had begun, or was over")
		}
	}
	return nil
}

func taken(id, why string) *fault.Error {
	return fault.New(fault.DuplicateStep, "the id %q %s", id, why).WithHint("give the step another, as in %q", id+"_2")
}
