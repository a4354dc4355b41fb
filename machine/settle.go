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
	work, halts := []todo{{i - sc.first, to}}, false
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		s := &r.calls[sc.first+x.step]
		if s.state.terminal() {
			continue
		}
		if x.to == failed && sc.stops(x.step) {
			sc.failFast, sc.stopping, halts = x.step, true, true
		}
		switch {
		case s.state == expanding:
			r.uncounted--
		case s.state.out():
			r.leaveRoom(sc.first + x.step)
		}
		s.state, s.decided = x.to, instantOf(at)
		r.closeQuestion(s.Call)
		sc.remaining--
		out.Settled = append(out.Settled, s.Call)
		if sc.openAt != nil {
			sc.openAt[steps[x.step].Depth]--
		}
		spoils := x.to != succeeded && !steps[x.step].Optional
		for _, d := range steps[x.step].Dependents {
			dep := &r.calls[sc.first+d]
			dep.missing--
			switch {
			case dep.state != waiting:
			case sc.plan.Language == 1 && spoils:
				if x.to != cancelled {
					work = append(work, todo{d, skipped})
				}
			case dep.missing > 0 || sc.openAt != nil || sc.stopping:
			case sc.plan.Language == 1 && r.standing(sc).spoiler(d) != d: // it is still to be skipped
			case sc.plan.Language == 1:
				r.makeReady(sc.first+d, at, out)
			default:
				sc.reached.add(d)
			}
		}
	}
	if halts {
		r.halt(at, out)
	}
	if sc.openAt != nil && !sc.stopping {
		r.openWave(sc, at, out)
	}
	r.takeReached(sc, at, out)
}

// stops reports whether the failure of a step stops the scope: the plan says so, and no step deals with it.
func (sc *scope) stops(step int) bool {
	s := &sc.plan.Steps[step]
	return sc.plan.OnFailure == plan.Stop && !s.Optional && !s.Regarded && !sc.stopping
}

// openWave makes the next wave's steps ready once every step of the waves before is terminal. Waves open in their
// order, so only the last one opened can still hold something up.
func (r *Run) openWave(sc *scope, at time.Time, out *Effects) {
	for sc.wave < len(sc.openAt) && (sc.wave == 0 || sc.openAt[sc.wave-1] == 0) {
		wave := sc.waves[sc.wave]
		sc.wave++ // first, because a record that came early may settle a step here and now
		opened := false
		for _, step := range wave {
			if i := sc.first + step; r.calls[i].state == waiting && !sc.stopping {
				r.become(i, r.verdict(sc, step), at, out)
				opened = opened || !r.calls[i].state.terminal()
			}
		}
		if opened {
			return
		}
	}
}
