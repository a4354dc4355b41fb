package machine

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// atOnce is the most effort of values and conditions that are derived where what they refer to is decided: of one, and of
// all of a run. What takes more, is larger than maxAtOnce, or reads a blob, is built beside the machine and recorded, a
// large one as a handle. All owners have to agree on which those are, so these numbers are a part of the language.
var atOnce = struct{ step, run plan.Effort }{
	step: plan.Effort{Bytes: 4 << 20, Work: 1 << 20},
	run:  plan.Effort{Bytes: 256 << 20, Work: 64 << 20},
}

// maxAtOnce is the largest value, in bytes, that is held in memory.
const maxAtOnce = 256 << 10

// values are those of a run's steps that call no tool.
type values struct {
	held   int64       // bytes of all that were derived
	effort plan.Effort // that is left for those which are derived at once
}

// work returns what one calculation may take at once.
func (v *values) work() int { return max(min(atOnce.step.Work, v.effort.Work), 0) }

// room returns how many bytes those that are not derived yet may have together.
func (v *values) room() int64 { return plan.MaxValues - v.held }

// derive decides a step that is taken: it is over with what its value comes to, or waits for the record of that.
func (v *values) derive(r *Run, i int, at time.Time, out *Effects) {
	if value, err, done := v.atOnce(r, i); done {
		v.derived(r, i, &Result{Value: value, Size: int64(len(value)), Error: err, Derived: true}, at, out)
		return
	}
	r.calls[i].state = deriving
	v.ask(i, out)
}

// ask asks for a value to be built.
func (v *values) ask(i int, out *Effects) {
	out.Derive = append(out.Derive, Derive{Step: i, Room: v.room()})
}

// atOnce derives a value here; done is false where that reads a blob or takes too much.
func (v *values) atOnce(r *Run, i int) (value []byte, err *fault.Error, done bool) {
	sc := r.scopeOf(i)
	step := sc.numberOf(i)
	s := &sc.plan.Steps[step]
	if s.ReadsAny(sc.standing(r).inBlob) || s.TakesInput && sc.input.away {
		return nil, nil, false
	}
	if v.effort.Spent() {
		r.ordered++
		return nil, nil, false
	}
	most := plan.Effort{Bytes: min(atOnce.step.Bytes, v.effort.Bytes), Work: v.work()}
	left := most
	seen := sc.look(r)
	value, err = seen.resolver.Derive(step, min(v.room(), maxAtOnce), &left, seen.results)
	if err == nil && s.Held != nil && !r.start.Trial {
		err = s.Held.Check(value, &left.Work)
	}
	v.effort.Bytes -= most.Bytes - left.Bytes
	v.effort.Work -= most.Work - left.Work
	large := err != nil && err.Code == fault.TooLarge && v.room() > maxAtOnce // how large is seen beside the machine
	if left.Spent() || err != nil && err.Code == fault.TooLarge {
		r.ordered++
	}
	return value, err, !left.Spent() && !large
}

// derived decides a step with what its value came to.
func (v *values) derived(r *Run, i int, res *Result, at time.Time, out *Effects) {
	err := res.Error
	if err == nil && res.Size > v.room() { // another was recorded meanwhile
		err = fault.New(fault.TooLarge, "the value has %d bytes, and there is room for %d: all values of a run have at most %d together",
			res.Size, v.room(), plan.MaxValues).WithHint("refer to less, or hand large data on by a name or an address")
		r.ordered++
	}
	s := &r.calls[i]
	s.result = &Result{Call: s.Call, Attempt: 1, ByOwner: true, Error: err}
	if err != nil {
		r.settle(i, failed, at, out)
		return
	}
	s.result.Value, s.result.Handle, s.result.Size, s.result.Derived = res.Value, res.Handle, res.Size, res.Derived
	r.kept.holds(s.result)
	v.held += res.Size
	r.settle(i, succeeded, at, out)
}
