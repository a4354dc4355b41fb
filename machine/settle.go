package machine

import (
	"time"

	"github.com/stepjet/stepjet/plan"
)

// settle makes a step terminal and lets its dependents go on. A failure stops its scope where the plan says so.
func (r *Run) settle(i int, to state, at time.Time, out *Effects) {
	type todo struct {
		step int // of the plan
		to   state
	}
	sc := r.scopeOf(i)
	steps := sc.plan.Steps
	work, halts := []todo{{sc.numberOf(i), to}}, false
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		s := &r.calls[sc.at(x.step)]
		if s.state.terminal() {
			continue
		}
		if x.to == failed && sc.stops(x.step, s.discarded != notDiscarded) {
			sc.failFast, sc.stopping, halts = x.step, true, true
		}
		switch {
		case s.state == expanding:
			r.uncounted--
		case s.state.out():
			sc.bounded().take(-1)
		}
		s.state, s.decided = x.to, instantOf(at)
		r.closeQuestion(s.Call)
		sc.remaining--
		out.Settled = append(out.Settled, s.Call)
		endedIn(r, sc, s.Call)
		sc.waves.settled(steps[x.step].Depth)
		spoils := x.to != succeeded && !steps[x.step].Optional
		for _, d := range sc.plan.Dependents(x.step) {
			dep := &r.calls[sc.at(d)]
			dep.missing--
			switch {
			case dep.state != waiting:
			case sc.plan.Language == 1 && spoils:
				if x.to != cancelled {
					work = append(work, todo{d, skipped})
				}
			case dep.missing > 0 || sc.waves != nil || sc.stopping:
			case sc.plan.Language == 1 && sc.standing(r).spoiler(d) != d: // it is still to be skipped
			case sc.plan.Language == 1:
				r.makeReady(sc.at(d), at, out)
			default:
				sc.reach(r, d)
			}
		}
	}
	if halts {
		sc.halt(r, at, out)
	}
	if sc.waves != nil && !sc.stopping {
		sc.openWave(r, at, out)
	}
	if sc.round > 0 && i == sc.first {
		plannerOver(r, sc, at, out)
	}
	sc.takeReached(r, at, out)
	sc.leave(r, at, out)
}

// stops reports whether the failure of a step stops the scope: the plan says so, no step deals
// with it, and the step still counts.
func (sc *scope) stops(step int, discarded bool) bool {
	s := &sc.plan.Steps[step]
	return sc.plan.OnFailure == plan.Stop && !s.Optional && !sc.plan.Regarded(step) && !sc.stopping && !discarded
}

// waves are those of a scope whose plan is scheduled so.
type waves struct {
	next  int     // to be opened
	steps [][]int // of each, in the order of the plan
	left  []int   // of each: the steps that are not terminal
}

func newWaves(p *plan.Plan) *waves {
	w := &waves{steps: p.Waves()}
	w.left = make([]int, len(w.steps))
	for i := range w.steps {
		w.left[i] = len(w.steps[i])
	}
	return w
}

// settled counts a step that is over. There may be no waves.
func (w *waves) settled(depth int) {
	if w != nil {
		w.left[depth]--
	}
}

// openWave makes the next wave's steps ready once every step of the waves before is terminal. Waves open in their
// order, so only the last one opened can still hold something up.
func (sc *scope) openWave(r *Run, at time.Time, out *Effects) {
	for w := sc.waves; w.next < len(w.steps) && (w.next == 0 || w.left[w.next-1] == 0); {
		wave := w.steps[w.next]
		w.next++ // first, because a record that came early may settle a step here and now
		opened := false
		for _, step := range wave {
			if i := sc.at(step); r.calls[i].state == waiting && !sc.stopping {
				r.become(i, sc.verdict(r, step), at, out)
				opened = opened || !r.calls[i].state.terminal()
			}
		}
		if opened {
			return
		}
	}
}
