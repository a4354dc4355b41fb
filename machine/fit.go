package machine

import (
	"time"

	"github.com/stepjet/stepjet/fault"
)

// fits says what a success comes to whose result is held against the schema of the state: fitting where that reads a blob
// or takes too much, so that a record has to tell it. What returned something else than fits has failed, whatever its own
// record says, and is not tried again: nothing says that it would return something else then. Results that are made up
// prove nothing.
func (v *values) fits(r *Run, i int, out *Effects) state {
	if r.start.Trial {
		return succeeded
	}
	s := &r.calls[i]
	held := r.stepOf(i).Held
	if s.result.Value != nil && !v.effort.Spent() {
		most := v.work()
		left := most
		err := held.Check(s.result.Value, &left)
		v.effort.Bytes -= s.result.Size
		v.effort.Work -= most - left
		if left > 0 {
			return refuse(s, err)
		}
	}
	r.ordered++
	if s.state.out() { // its worker is done
		r.scopeOf(i).bounded().take(-1)
	}
	s.state = fitting
	out.Fit = append(out.Fit, i)
	return fitting
}

// fitted takes the record of whether a result fits.
func (v *values) fitted(r *Run, t *Told, at time.Time, out *Effects) {
	s := &r.calls[t.Step]
	to := refuse(s, t.Error)
	s.result.Seq = r.seq
	r.settle(t.Step, to, at, out)
}

// refuse returns what a call comes to whose result was held against the state: failed where there is an error.
func refuse(s *call, err *fault.Error) state {
	if err == nil {
		return succeeded
	}
	res := *s.result // the record stays as it is
	res.Error, res.Value, res.Handle, res.Parts = err, nil, nil, nil
	s.result = &res
	return failed
}
