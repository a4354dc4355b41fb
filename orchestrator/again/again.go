// Package again says what a run takes over of the rounds of agents from the one that it tries again. It follows from the run's
// start and the records by which a call becomes ready, so that every owner comes to the same (ADR 6).
package again

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Run is a run that tries another one again.
type Run struct {
	Machine *machine.Run
	Reuse   *wire.Reuse // nil for a run that tries none again
}

func (r Run) some() bool { return r.Reuse != nil && len(r.Reuse.Rounds) > 0 }

// Taken reports whether a call in a round was answered with what was taken over.
func (r Run) Taken(c machine.Call) bool {
	if !r.some() || r.Reuse.Round(r.Machine.Token(c)) == nil {
		return false
	}
	res := r.Machine.Decided(c)
	if machine.Summary(r.Machine, c) { // one that was not due, or not any more, is decided by the owner, too
		res = r.Machine.Result(c)
	}
	return res != nil && res.ByOwner && res.Error == nil
}

// Told reports whether what an agent tells people by a call that is over was told by the run that this one tries again.
func (r Run) Told(c machine.Call) bool {
	return r.some() && slices.Contains(r.Reuse.Told, r.Machine.Token(c)) && (&unchanged{r, map[int]bool{}}).call(c)
}

// Made reports whether something of what a composite in a round is made of was made in this run, or nothing of it was taken
// over.
func (r Run) Made(c machine.Call) bool {
	if !r.some() {
		return true
	}
	again, anew := r.leaves(c)
	return again == 0 || anew > 0
}

// Of returns what is taken over of a call in a round that is ready; nil where it is to be made.
func (r Run) Of(c machine.Call) *wire.ReusedResult {
	if !r.some() {
		return nil
	}
	x := r.Reuse.Round(r.Machine.Token(c))
	if x == nil || !(&unchanged{r, map[int]bool{}}).call(c) {
		return nil
	}
	return x
}

// unchanged finds out what is as it was in the run that this one tries again.
type unchanged struct {
	Run
	looked map[int]bool // steps whose dependencies were looked at
}

// call reports whether everything before a call in its loop, and around it, came of what was taken over.
func (u *unchanged) call(c machine.Call) bool {
	for {
		of, round, own, inRound := machine.RoundAround(u.Machine, c)
		switch {
		case !inRound:
			return true
		case own || machine.Summary(u.Machine, c):
			if round > 0 && !u.round(of, round-1) {
				return false
			}
		case !u.Taken(machine.Rounds(u.Machine, of, round)[0].Planner) || !u.above(c, of):
			return false
		}
		c = of
	}
}

// above reports whether all that a call in a round waited for is, and all that the calls waited for that it stands in.
func (u *unchanged) above(c, agent machine.Call) bool {
	for ; c != agent; c = u.Machine.Composite(c.Step) {
		if !u.dependencies(c.Step) {
			return false
		}
	}
	return true
}

func (u *unchanged) dependencies(step int) bool {
	if u.looked[step] {
		return true // or it is being found out
	}
	u.looked[step] = true
	p, of := u.Machine.Scope(step)
	for k := range p.Steps {
		if of.Of(k) != step {
			continue
		}
		for _, d := range p.Steps[k].Deps {
			if !u.step(of.Of(d)) || !u.dependencies(of.Of(d)) {
				return false
			}
		}
	}
	return true
}

// step reports whether a step that is over made nothing anew, and whether all is there that it was made of.
func (u *unchanged) step(step int) bool {
	again, anew := u.leaves(machine.Call{Step: step})
	return anew == 0 && again == u.count(u.Machine.Token(machine.Call{Step: step}))
}

// round reports that of a round that is over. Whether a summary was made before it is no matter: that hangs on how many bytes the
// rounds had, times in them too, and what the planner answered was paid for all the same.
func (u *unchanged) round(of machine.Call, n int) bool {
	v := machine.Rounds(u.Machine, of, n)[0]
	again, anew := 1, 0
	if v.Plan != nil {
		for k := range v.Plan.Steps {
			one, other := u.leaves(machine.Call{Step: v.Numbers.Of(k)})
			again, anew = again+one, anew+other
		}
	}
	token := subjects.Iteration(u.Machine.Token(of), n)
	if u.Reuse.Round(subjects.OwnCall(token, "summary")) != nil {
		again++
	}
	return u.Taken(v.Planner) && anew == 0 && again == u.count(token)
}

// leaves counts the calls of a step, at any depth, that were taken over, and those that were made in this run.
func (r Run) leaves(c machine.Call) (again, anew int) {
	n, isList := r.Machine.Items(c.Step)
	for c.Item = 0; c.Item <= n; c.Item++ {
		within := false
		for p, of := range r.Machine.Inside(c) {
			within = true
			for k := range p.Steps {
				one, other := r.leaves(machine.Call{Step: of.Of(k)})
				again, anew = again+one, anew+other
			}
		}
		res := r.Machine.Decided(c)
		switch {
		case within || isList && c.Item == 0 || res == nil:
		case r.Taken(c):
			again++
		case !res.ByOwner:
			anew++
		}
	}
	return again, anew
}

// count returns how many results there are of what a token names, at any depth.
func (r Run) count(token string) (n int) {
	for each := range r.Reuse.Rounds {
		if each == token || strings.HasPrefix(each, token) && (each[len(token)] == '/' || each[len(token)] == '=') {
			n++
		}
	}
	return n
}
