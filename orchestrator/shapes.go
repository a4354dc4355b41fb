package orchestrator

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// shapeOf returns the plan of a scope of a run as it is written now. Errors: NotAmendable for a run that is written in
// another form, such as the state dialect; InvalidID.
func shapeOf(r *run, scope string) (*wire.Shape, error) {
	s, ok := wire.ReadShape(r.body)
	if !ok {
		return nil, fault.New(fault.NotAmendable, "the run was not submitted as a plan of steps, so it can't be amended as a whole").
			WithHint(`say what is to change: "add" and "discard"`)
	}
	amendShape(r, s, subjects.RootScope)
	if scope == subjects.RootScope {
		return s, nil
	}
	segments, _ := subjects.ParseStepToken(scope)
	for i := range segments {
		if s, ok = s.Within(segments[i].Name); !ok {
			return nil, fault.New(fault.InvalidID, "there is no plan at %q", text.Clip(scope, 80)).WithHint(`"=" is the plan of the run`)
		}
		amendShape(r, s, subjects.StepToken(segments[:i+1]...))
	}
	return s, nil
}

func amendShape(r *run, s *wire.Shape, scope string) {
	for _, a := range r.machine.InForce(scope) {
		s.Amend(changeOf(a), func(id string) bool {
			c, known := r.machine.Find(subjects.InScope(scope, id))
			return known && machine.Gone(r.machine, c.Step)
		})
	}
}

// lastShape returns the plan of a run as amendments have left it, for whoever runs it again: it waits for no amendments any
// more, and what was discarded without a result is no part of it, unless something else refers to it. Plans within the
// items of a list have the shape that they began with, since each item has its own. ok is false for a run that was
// never amended.
func lastShape(r *run) (body json.RawMessage, ok bool) {
	if r.machine == nil || len(r.machine.Amendments()) == 0 {
		return nil, false
	}
	s, ok := wire.ReadShape(r.body)
	if !ok {
		return nil, false
	}
	settleShape(r, s, subjects.RootScope)
	return s.JSON(), true
}

func settleShape(r *run, s *wire.Shape, scope string) {
	amendShape(r, s, scope)
	for _, id := range s.Composites() {
		inner, _ := s.Within(id)
		settleShape(r, inner, subjects.InScope(scope, id))
		s.Replace(id, inner)
	}
	s.Close()
	if p, numbers, entered := machine.ScopeNamed(r.machine, scope); entered {
		s.Drop(droppedOf(r, p, numbers))
	}
}

// droppedOf returns the steps of a scope that were discarded and came to nothing, and that no other step refers to.
func droppedOf(r *run, p *plan.Plan, of machine.Numbers) (ids []string) {
	dropped := make([]bool, len(p.Steps))
	for again := true; again; {
		again = false
		for i := range p.Steps {
			st := r.machine.Step(machine.Call{Step: of.Of(i)}, time.Time{})
			wanted := slices.ContainsFunc(p.Steps[i].Dependents, func(d int) bool { return !dropped[d] })
			if !dropped[i] && st.Discarded && st.Status != outcome.StepSucceeded && !wanted {
				dropped[i], again = true, true
				ids = append(ids, p.Steps[i].ID)
			}
		}
	}
	return ids
}

// changeOf is what an amendment changes.
func changeOf(a *machine.Amendment) *wire.Change {
	return &wire.Change{
		Add: a.Add, Discard: wire.Discard{Steps: a.Discard, Rest: a.Rest}, Output: a.Output, OutputSteps: a.OutputSteps, Close: a.Close,
	}
}
