package machine

import (
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// scope is the steps of one plan within a run: those of the plan that was submitted are its root scope. Its plan numbers
// its steps from 0; in Run.calls, and in a Call, they stand from first on, in the same order.
type scope struct {
	plan      *plan.Plan
	contracts []*tool.Contract // of the steps' tools: each step asks for its own several times
	first     int

	remaining int // steps that are not terminal
	// stopping is set by the record that lets nothing new start: a stop, or the failure under on_failure "stop".
	stopping bool
	failFast int     // the step, of the plan, whose failure stopped it, or -1
	reached  reached // steps of which is to be decided what becomes of them

	room    room
	shaping bool    // its steps are over, and a record is to tell what it comes to
	output  *Result // what it came to; nil while that is not known, and for a plan without an output

	wave   int     // the next to be opened
	waves  [][]int // nil unless the schedule is waves
	openAt []int   // by wave: steps that are not terminal; nil unless the schedule is waves
}

// begin brings a scope to where none of its steps is looked at yet.
func (sc *scope) begin(calls []call) {
	steps := sc.plan.Steps
	sc.remaining, sc.stopping, sc.failFast, sc.reached, sc.wave, sc.openAt = len(steps), false, -1, reached{}, 0, nil
	sc.room, sc.shaping, sc.output = room{}, false, nil
	if sc.plan.Schedule == plan.Waves {
		sc.waves = sc.plan.Waves()
		sc.openAt = make([]int, len(sc.waves))
	}
	for i := range steps {
		calls[sc.first+i] = call{Call: Call{Step: sc.first + i}, missing: int32(len(steps[i].Deps))}
		if sc.openAt != nil {
			sc.openAt[steps[i].Depth]++
		}
	}
}

// scopeOf returns the scope that a call stands in.
func (r *Run) scopeOf(_ int) *scope { return &r.root }

// stepOf returns the plan's step that a call belongs to.
func (r *Run) stepOf(i int) *plan.Step {
	sc := r.scopeOf(i)
	return &sc.plan.Steps[r.calls[i].Step-sc.first]
}

// standing returns how the steps of a scope stand now. It is good until the next call is added.
func (r *Run) standing(sc *scope) standing {
	return standing{sc.plan, r.calls[sc.first : sc.first+len(sc.plan.Steps)], r.calls}
}

// isStep reports whether there is a step of such a number by now.
func (r *Run) isStep(step int) bool {
	return step >= 0 && step < len(r.calls) && r.calls[step].Item == 0
}
