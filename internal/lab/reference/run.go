package reference

import (
	"slices"
)

// Run runs a plan: again and again the first step, in the order of the document, whose dependencies are over. call
// plays the tools, contracts are by tool name, and whoever is asked agrees, or has nothing to say. Under on_failure: stop
// this is one of the orders that are possible; see RunStopped for the others. The error is for a plan that isn't
// acceptable at all.
func Run(plan []byte, contracts map[string]Contract, call Behaviour) (*Result, error) {
	return RunAsking(plan, contracts, call, everybody)
}

// RunAsking is Run with people who have a mind of their own.
func RunAsking(plan []byte, contracts map[string]Contract, call Behaviour, people People) (*Result, error) {
	p, err := Parse(plan)
	if err != nil {
		return nil, err
	}
	r := newRun(p, contracts)
	r.people = people
	if r.shut() {
		a := people(thePlan, forApproval)
		r.planAnswered(&a)
	}
	stopped := r.derive()
	for i := r.next(); i >= 0 && !stopped; i = r.next() {
		r.execute(i, call)
		if stopped = r.stopsAll(i) || r.derive(); !stopped {
			r.skipBlocked()
		}
	}
	if stopped {
		r.stop(nil)
	}
	return r.result(), nil
}

// run is what is known of a run so far. A step without a status is not over yet.
type run struct {
	plan      *Plan
	contracts map[string]Contract
	steps     []Step
	depths    []int  // of the steps; made by depth
	status    string // cancelled or expired, from a stop record

	// In language 2:
	taken map[int]bool  // steps that were let through
	blobs map[int]bool  // steps whose result lies in a blob
	told  map[int]*Told // what records say of conditions
	seats map[seat]bool // calls that had room so far; nil where none needs any

	values map[int]*ToldValue // what records say of values
	held   int                // bytes of all values

	// Of questions, by the names of steps and items:
	people  People
	said    map[string]bool   // what was approved of
	edited  map[string][]byte // arguments that an answer gave
	spent   map[string]int    // the highest number of an answer that said nothing
	weighed map[string]*Told  // what records say of the contracts' conditions
}

func newRun(p *Plan, contracts map[string]Contract) *run {
	return &run{
		plan: p, contracts: contracts, steps: make([]Step, len(p.Steps)),
		taken: map[int]bool{}, blobs: map[int]bool{}, told: map[int]*Told{}, values: map[int]*ToldValue{},
		said: map[string]bool{}, edited: map[string][]byte{}, spent: map[string]int{}, weighed: map[string]*Told{},
	}
}

func (r *run) over(i int) bool { return r.steps[i].Status != "" }

// next returns the first step that is ready; -1 where there is none.
func (r *run) next() int {
	for i := range r.steps {
		if r.ready(i) {
			return i
		}
	}
	return -1
}

// ready is whether a step could have been dispatched: it isn't over, and nothing keeps it from being.
func (r *run) ready(i int) bool {
	if r.shut() {
		return false
	}
	if r.plan.Second {
		return r.taken[i] && !r.over(i)
	}
	return !r.over(i) && !r.blocked(i) && r.reached(i)
}

// mayBegin is whether a step, or an item of it, could have been dispatched.
func (r *run) mayBegin(i, item int) bool { return r.ready(i) && r.seated(i, item) }

// reached is whether all dependencies of a step are over. Under schedule: waves every step of lesser depth is over too.
func (r *run) reached(i int) bool {
	open := func(d int) bool { return !r.over(d) }
	if r.plan.Waves {
		for d := range r.steps {
			if r.depth(d) < r.depth(i) && open(d) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(r.plan.Steps[i].Deps, open)
}

// depth is the length of the longest way to a step from one without dependencies.
func (r *run) depth(i int) int {
	if r.depths == nil {
		r.depths = make([]int, len(r.steps))
		for range r.steps { // once for each length that a way can have
			for j, s := range r.plan.Steps {
				for _, d := range s.Deps {
					r.depths[j] = max(r.depths[j], r.depths[d]+1)
				}
			}
		}
	}
	return r.depths[i]
}

// blocked is whether a step has to be skipped: a direct dependency that isn't optional failed or was skipped. (One that
// was cancelled skips nothing: then the whole run has stopped.)
func (r *run) blocked(i int) bool {
	return slices.ContainsFunc(r.plan.Steps[i].Deps, func(d int) bool {
		status := r.steps[d].Status
		return !r.plan.Steps[d].Optional && (status == failed || status == skipped)
	})
}

// skipBlocked skips every step of language 1 that is blocked, until no other one is. It needn't wait for their other
// dependencies.
func (r *run) skipBlocked() {
	for again := !r.plan.Second; again; {
		again = false
		for i := range r.steps {
			if !r.over(i) && r.blocked(i) {
				r.steps[i].Status, r.steps[i].Code = skipped, codeSkipped
				again = true
			}
		}
	}
}

func (s *Step) cancel() { s.Status, s.Code = cancelled, codeCancelled }

func (s *Step) fail(err *Err) {
	s.Status, s.Code, s.Message, s.retryable, s.hint = failed, err.Code, err.Message, err.Retryable, err.Hint
}

// execute resolves a step's arguments and calls its tool until an attempt is final.
func (r *run) execute(i int, call Behaviour) {
	if !r.consult(i, -1) || r.over(i) {
		return
	}
	if r.plan.Steps[i].ForEach {
		r.executeItems(i, call)
		return
	}
	s := &r.steps[i]
	if err := r.resolve(i); err != nil {
		s.fail(err)
		return
	}
	r.call(s, r.plan.Steps[i].ID, i, call)
}

// call calls the tool of step i until s, which is that step or one of its items, is over.
func (r *run) call(s *Step, name string, i int, call Behaviour) {
	for s.Status == "" {
		reply := call(name, r.plan.Steps[i].Tool, slices.Clone(s.Arguments), s.decided+1)
		s.Attempts++
		s.decide(reply, r.attempts(i), r.contracts[r.plan.Steps[i].Tool].Asks)
		if s.waits {
			a := r.people(name, forValue)
			if a.Decision == expire { // it has all the time there is
				a = Answer{Decision: reject}
			}
			s.told(&a)
		}
	}
}

// dependency returns what a dependency came to.
func (r *run) dependency(d int) ([]byte, bool) {
	return r.steps[d].Result, r.steps[d].Status == succeeded
}

// resolve fills in a step's arguments. Where that fails, so does the step, and nothing is dispatched.
func (r *run) resolve(i int) *Err {
	if args := r.edited[r.name(i, -1)]; args != nil {
		r.steps[i].Arguments = args
		return nil
	}
	args, err := r.plan.Arguments(i, r.sight())
	r.steps[i].Arguments = args
	return err
}

// decide takes the reply to the next attempt. A failure that may be tried again, while there are attempts left, leaves
// the step open.
func (s *Step) decide(reply Reply, attempts int, mayAsk bool) {
	err := reply.Err
	s.decided++
	if reply.Asks {
		s.asks(mayAsk)
		return
	}
	if err == nil {
		s.Result, err = Convert(reply.Body, reply.Text)
	}
	switch {
	case err == nil:
		s.Status = succeeded
	case retryable(err) && s.decided-s.asked < attempts:
	default:
		s.fail(err)
	}
}

func retryable(e *Err) bool {
	return e.Retryable && (e.Code == codeToolFailed || e.Code == codeTimeout)
}

// attempts returns the most attempts of a step: its own number, else its tool's.
func (r *run) attempts(i int) int {
	s := r.plan.Steps[i]
	if s.MaxAttempts > 0 {
		return s.MaxAttempts
	}
	return max(1, r.contracts[s.Tool].MaxAttempts)
}

// stopsAll is whether a step's failure is one that stops the whole run: nobody names the step by $error or $status.
func (r *run) stopsAll(i int) bool {
	if !r.plan.Stop || r.steps[i].Status != failed || r.plan.Steps[i].Optional {
		return false
	}
	for d := range r.steps {
		if r.plan.names(d, i) {
			return false
		}
	}
	return true
}

// stop ends all steps that will not start any more: descendants of failures are skipped, the rest cancelled. Steps that
// were ready before the record that stops the run stay open, since a record decides them; was has them, nil for none.
// What waits for a person needs none.
func (r *run) stop(was []bool) {
	r.skipBlocked()
	for i := range r.steps {
		switch {
		case r.over(i):
		case was == nil || !was[i]:
			r.steps[i].cancel()
		case r.asksEach(i) && r.dropAsked(i):
			r.gather(i, true)
		}
		r.unseat(i, true)
	}
}

// readySteps tells for each step whether it is ready, and nobody is asked about it.
func (r *run) readySteps() []bool {
	set := make([]bool, len(r.steps))
	for i := range r.steps {
		set[i] = r.ready(i) && r.person(i, -1) == "" && (r.plan.Steps[i].ForEach || r.seated(i, -1))
	}
	return set
}

// result sums up a run whose steps are all over.
func (r *run) result() *Result {
	out := &Result{Status: r.runStatus(), Steps: map[string]Step{}}
	for i, s := range r.steps {
		id := r.plan.Steps[i].ID
		if s.Status == skipped {
			s.Message = r.skipMessage(i)
		}
		out.Steps[id] = s
		switch s.Status {
		case succeeded:
		case notTaken:
			out.NotTaken = append(out.NotTaken, id)
		default:
			e := StepError{Step: id, Code: s.Code, Message: s.Message, Attempts: s.Attempts}
			if by := r.handledBy(i); by >= 0 {
				e.HandledBy = r.plan.Steps[by].ID
			}
			out.Errors = append(out.Errors, e)
		}
	}
	for _, i := range r.plan.Outputs {
		switch r.steps[i].Status {
		case succeeded:
			out.Results = append(out.Results, Output{Step: r.plan.Steps[i].ID, JSON: r.steps[i].Result})
		case notTaken:
			out.Results = append(out.Results, Output{Step: r.plan.Steps[i].ID, JSON: []byte("null")})
		}
	}
	if r.plan.Output != nil {
		out.Results = nil
	}
	r.comeTo(out)
	return out
}

// runStatus is the first that fits: stopped from outside; nothing but optional steps failed, or what was handled; an
// output step succeeded.
func (r *run) runStatus() string {
	bad := false
	for i, s := range r.steps {
		bad = bad || s.Status != succeeded && s.Status != notTaken && !r.plan.Steps[i].Optional && !r.excused(i)
	}
	switch {
	case r.status != "":
		return r.status
	case !bad:
		return succeeded
	case slices.ContainsFunc(r.plan.Outputs, func(i int) bool { return r.steps[i].Status == succeeded }):
		return partial
	}
	return failed
}
