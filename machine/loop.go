package machine

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// loop is a composite that is entered again and again, each time with a scope of one step: an iteration. Which there are
// follows from the records, as that of any scope. A loop keeps its iterations' places when the state is computed anew.
type loop struct {
	turns
	of      []*scope // that were ever entered in this process, in their order
	entered int      // of those, now
}

// turns are what is done again and again, each perhaps out of the one before.
type turns struct {
	next bool // another is to be taken
	busy bool // somebody takes them
}

// take takes the next turn. One that is over where it is taken, because nothing of it is sent, is followed by the next
// without a call within a call: there may be ten thousand.
func (t *turns) take(turn func()) {
	t.next = true
	if t.busy {
		return
	}
	for t.busy = true; t.next; {
		t.next = false
		turn()
	}
	t.busy = false
}

// current returns the iteration that was entered last, nil where none was.
func (l *loop) current() *scope {
	if l.entered == 0 {
		return nil
	}
	return l.of[l.entered-1]
}

// resultOf returns the result of an iteration, counted from 1; nil before the first.
func (l *loop) resultOf(t *tree, iteration int) *Result {
	if iteration == 0 {
		return nil
	}
	return t.calls[l.of[iteration-1].first].result
}

// loopOf returns the loop of a call that is one.
func (t *tree) loopOf(i int) *loop {
	c := &t.calls[i]
	if c.below == 0 {
		all := t.nested()
		all.loops = append(all.loops, &loop{})
		c.below = int32(len(all.loops))
	}
	return t.scopes.loops[c.below-1]
}

// loopAround returns the loop that a scope is an iteration of.
func (t *tree) loopAround(sc *scope) *loop {
	i, _ := t.index(sc.of)
	return t.loopOf(i)
}

// reset leaves all loops before their first iteration, and agents before their first round. There may be no scopes.
func (s *scopes) reset() {
	if s == nil {
		return
	}
	for _, l := range s.loops {
		*l = loop{of: l.of}
	}
	for _, a := range s.agents {
		*a = rounds{of: a.of, guards: a.guards}
	}
}

// iterate enters the next iteration of a loop.
func (l *loop) iterate(r *Run, i int, at time.Time, out *Effects) {
	l.take(func() { l.enter(r, i, at, out) })
}

// enter opens the scope of the next iteration, unless the run would have too many steps with it.
func (l *loop) enter(r *Run, i int, at time.Time, out *Effects) {
	s := r.stepOf(i)
	steps := len(s.Plan.Steps)
	if inner := s.Does().Plan; inner != nil {
		steps += len(inner.Steps)
	}
	if int(r.steps)+steps > plan.MaxSteps {
		r.ordered++
		r.fail(i, tooManyIterations(l.entered), at, out)
		return
	}
	r.calls[i].state = entered
	sc := l.place(r, i)
	l.entered++
	sc.begin(r)
	r.steps += int32(len(s.Plan.Steps))
	if s.Repeat.Every > 0 && sc.iteration > 1 {
		sc.from = max(sc.from, instantOf(at.Add(s.Repeat.Every)))
	}
	sc.reuseWithin(r, at)
	if sc.remaining == 0 { // it was taken over
		sc.leave(r, at, out)
		return
	}
	sc.open(r, at, out)
}

// place returns the scope of the next iteration, which has a place among the calls from then on.
func (l *loop) place(r *Run, i int) *scope {
	if l.entered == len(l.of) {
		l.of = append(l.of, nil)
	}
	at := &l.of[l.entered]
	if *at == nil || (*at).plan != r.stepOf(i).Plan { // an amendment came to stand elsewhere, and what it adds is read anew
		*at = r.newScope(i)
		(*at).iteration = int32(l.entered + 1)
	}
	return *at
}

func tooManyIterations(n int) *fault.Error {
	return fault.New(fault.LimitExceeded, "after %d iterations, the run would have more than %d steps with another", n, plan.MaxSteps).
		WithHint("repeat less often, or run the parts as plans of their own")
}

// iterated goes on with a loop one of whose iterations is over.
func (l *loop) iterated(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	if each := &r.calls[sc.first]; each.state != succeeded {
		r.fail(i, iterationFailure(each, sc), at, out)
		return
	}
	holds, err, known := l.holdsAfter(r, i, sc)
	switch {
	case known:
		l.goesOn(r, i, sc, holds, err, at, out)
	case r.halting(i):
		r.end(i, cancelled, at, out)
	default:
		r.calls[i].state = closing
		r.askToClose(i, out)
	}
}

// goesOn ends a loop, or enters its next iteration; holds is whether its until is true.
func (l *loop) goesOn(r *Run, i int, sc *scope, holds bool, err *fault.Error, at time.Time, out *Effects) {
	repeat := r.stepOf(i).Repeat
	last := int(sc.iteration) == repeat.Max
	switch {
	case err != nil:
		r.fail(i, err, at, out)
	case holds || last && (repeat.Until == nil || r.start.Trial):
		r.comeTo(i, sc, at, out)
	case r.halting(i):
		r.end(i, cancelled, at, out)
	case last:
		r.fail(i, exhausted(repeat.Max, r.calls[sc.first].result), at, out)
	default:
		l.iterate(r, i, at, out)
	}
}

// holdsAfter evaluates the until of a loop after one of its iterations; known is false where that reads a blob or takes
// too much.
func (l *loop) holdsAfter(r *Run, i int, sc *scope) (holds bool, err *fault.Error, known bool) {
	until := r.stepOf(i).Repeat.Until
	if until == nil {
		return false, nil, true
	}
	after := turn{&r.tree, sc, true}
	if slices.ContainsFunc(until.Reads, sc.outer.standing(r).inBlob) || until.TakesInput && sc.outer.input.away || until.TakesLast && after.inBlob() {
		return false, nil, false
	}
	seen := sc.outer.look(r).in(after)
	most := r.values.work()
	left := most
	holds, err = until.HoldsOf(seen.resolver, r.element(sc.of), &left, seen.results)
	if r.values.effort.Work -= most - left; left < 0 {
		r.ordered++
		return false, nil, false
	}
	return holds, err, true
}

// told takes the record of whether the loop is over with an iteration.
func (l *loop) told(r *Run, sc *scope, rec *Record, out *Effects) {
	i, _ := r.index(sc.of)
	l.goesOn(r, i, sc, rec.Told.Holds, rec.Told.Error, rec.Time, out)
}

// Ends reports whether an iteration is over, and it is to be told whether its loop is.
func (t *tree) Ends(c Call) bool {
	if !t.isStep(c.Step) {
		return false
	}
	sc := t.scopeOf(c.Step)
	if sc.iteration == 0 {
		return false
	}
	i, _ := t.index(sc.of)
	return t.calls[i].state == closing && !sc.shaping && t.insideOf(i) == sc
}

// iterationFailure is the error of a loop of which an iteration failed.
func iterationFailure(each *call, sc *scope) *fault.Error {
	err := *each.result.Error
	err.Message = "iteration " + strconv.Itoa(int(sc.iteration)-1) + ": " + err.Message
	err.Retryable = false
	return &err
}

// maxLast is the largest result, in bytes, that the error of a loop holds which ran as often as it may.
const maxLast = 64 << 10

// exhausted is the error of such a loop.
func exhausted(most int, last *Result) *fault.Error {
	err := fault.New(fault.RepeatExhausted, "the until of the loop was not true after any of its %d iterations", most).
		WithHint("raise its max, or let more time pass between two by every; $error:<id>.details.last is the last result")
	details := struct {
		Last  json.RawMessage `json:"last,omitempty"`
		Bytes int64           `json:"bytes"`
	}{Bytes: last.Size}
	if len(last.Value) <= maxLast {
		details.Last = last.Value
	}
	err.Details, _ = json.Marshal(details) // of JSON
	return err
}

// result returns what a loop comes to: the result of its last iteration, or the list of all. It is nil where the
// list lies in blobs, or is too large to be put together here.
func (l *loop) result(r *Run, x *Result) *Result {
	if !r.stepOf(x.Step).Repeat.Collect {
		last := l.resultOf(&r.tree, l.entered)
		x.Value, x.Handle, x.Text, x.Size = last.Value, last.Handle, last.Text, last.Size
		return x
	}
	x.Size = int64(len("[]"))
	for n := 1; n <= l.entered; n++ {
		one := l.resultOf(&r.tree, n)
		if x.Size += one.Size + 1; one.Handle != nil || x.Size > MaxDerived {
			return nil
		}
	}
	x.Value = append(make([]byte, 0, x.Size), '[')
	for n := 1; n <= l.entered; n++ {
		if n > 1 {
			x.Value = append(x.Value, ',')
		}
		x.Value = append(x.Value, l.resultOf(&r.tree, n).Value...)
	}
	x.Value = append(x.Value, ']')
	x.Size = int64(len(x.Value))
	return x
}
