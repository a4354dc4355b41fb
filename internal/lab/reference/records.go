package reference

import "fmt"

// Decided is one record of a run's ledger that decides something.
type Decided struct {
	// Step is the id of the step whose next attempt was decided, "S=i" for an item; empty for a stop record.
	Step string
	// Reply is how it was decided.
	Reply Reply
	// ByOwner is whether the orchestrator decided, so that no tool was executed: the step was cancelled (an error with
	// the code cancelled), timed out, or its arguments came to nothing.
	ByOwner bool
	// Blob is whether the result lies in a blob, so that a condition that reads it needs a record.
	Blob bool
	// Told, of a record that says what a step's condition came to, is what it says.
	Told *Told
	// Value, of a record that says what a step's value came to, is what it says.
	Value *ToldValue
	// Answer, of a record that a question was answered, is what it says; Step is "=" for the plan's own.
	Answer *Answer
	// Weighed, of a record that says whether the contract of the step's tool asks for an approval, is what it says.
	Weighed *Told
	// Stop, of a stop record, is the status that it gives the run: cancelled or expired.
	Stop string
}

// Told is what a condition came to that had to be read from blobs, as a record says.
type Told struct {
	// Holds counts where Err is nil.
	Holds bool
	// Err is why it could not be told.
	Err *Err
}

// ToldValue is what a value came to that had to be made of blobs, as a record says.
type ToldValue struct {
	// JSON is the value; it counts where Err is nil.
	JSON []byte
	// Blob is whether it lies in a blob itself.
	Blob bool
	// Err is why there is none.
	Err *Err
}

// RunStopped derives what a run came to from its records alone, in the order of the ledger. It is for runs in which
// time has a say: those with on_failure: stop, and those that were cancelled or expired. The first final failure of a
// step that isn't optional (under on_failure: stop), or the first stop record while a step was still open, stops the
// run: descendants of failures are skipped, all else that wasn't ready is cancelled, no attempt is tried again, and a
// ready step is whatever its record says, cancelled where it has none.
//
// The error says that the records can't be those of a run: a step was decided twice, or before its dependencies, or was
// executed without arguments, or steps are open at the end of a run that nothing stopped.
func RunStopped(plan []byte, contracts map[string]Contract, decided []Decided) (*Result, error) {
	r, stopped, err := follow(plan, contracts, decided)
	if err != nil {
		return nil, err
	}
	if !stopped && r.open() {
		return nil, fmt.Errorf("steps are open, and nothing stopped the run")
	}
	r.stop(nil)
	return r.result(), nil
}

// Begun returns the steps that the records of a run so far allow to begin, or did before they were over.
func Begun(plan []byte, contracts map[string]Contract, decided []Decided) (map[string]bool, error) {
	r, _, err := follow(plan, contracts, decided)
	if err != nil {
		return nil, err
	}
	begun := map[string]bool{}
	for i, s := range r.plan.Steps {
		if (r.taken[i] || r.ready(i)) && r.person(i, -1) == "" || r.steps[i].decided > 0 {
			begun[s.ID] = true
		}
	}
	return begun, nil
}

// follow is what a run has come to with some records, and whether one of them stopped it.
func follow(plan []byte, contracts map[string]Contract, decided []Decided) (r *run, stopped bool, err error) {
	p, err := Parse(plan)
	if err != nil {
		return nil, false, err
	}
	r = newRun(p, contracts)
	if p.Concurrency > 0 {
		r.seats = map[seat]bool{}
	}
	stopped = r.emptyLists()
	if stopped {
		r.stop(r.readySteps())
	}
	r.seatCalls()
	for n, d := range decided {
		if d.Step == "" {
			stopped = r.stopRecord(d.Stop, stopped) || stopped
			continue
		}
		if d.Answer != nil || d.Weighed != nil {
			stopped = r.askedRecord(d, stopped)
			continue
		}
		id, item := splitToken(d.Step)
		i := p.index(id)
		if d.Told != nil && i >= 0 && (stopped || r.reached(i) && r.judging(i)) {
			stopped = r.toldRecord(i, d.Told, stopped)
			continue
		}
		if d.Value != nil && i >= 0 && (stopped || r.reached(i) && r.building(i)) {
			if !stopped {
				r.values[i] = d.Value
				stopped = r.deriveAll()
			}
			continue
		}
		if i < 0 || d.Told != nil || d.Value != nil || !r.mayBegin(i, item) && !r.refused(i, d) {
			return nil, false, fmt.Errorf("record %d decides step %q, which was not ready", n, d.Step)
		}
		was := r.readySteps()
		if item >= 0 {
			err = r.itemRecord(i, item, d, stopped)
		} else {
			err = r.record(i, d, stopped)
		}
		if err != nil {
			return nil, false, fmt.Errorf("record %d: %w", n, err)
		}
		stopped = r.goOn(i, was, stopped)
	}
	return r, stopped, nil
}

// refused is whether a record says of a for_each step as a whole that it has no list.
func (r *run) refused(i int, d Decided) bool {
	return d.ByOwner && r.ready(i) && r.plan.Steps[i].ForEach
}

// goOn derives what follows once a record has said something of a step, -1 for the plan, and says whether the run is
// stopped. was are the steps that were ready before.
func (r *run) goOn(i int, was []bool, stopped bool) bool {
	switch {
	case stopped:
		return true
	case i >= 0 && r.stopsAll(i):
		r.stop(was)
		return true
	}
	r.skipBlocked()
	return r.deriveAll()
}

// askedRecord takes a record that is about what a person is asked.
func (r *run) askedRecord(d Decided, stopped bool) bool {
	was, i := r.readySteps(), -1
	if d.Weighed != nil {
		r.weighs(d)
	} else {
		i = r.answer(d)
	}
	return r.goOn(i, was, stopped || r.status != "")
}

// toldRecord takes a record of what a condition came to, which says nothing any more once the run is stopped.
func (r *run) toldRecord(i int, told *Told, stopped bool) bool {
	if stopped {
		return true
	}
	r.told[i] = told
	return r.deriveAll()
}

// deriveAll derives all that follows from a record, and says whether that stopped the run.
func (r *run) deriveAll() (stopped bool) {
	if stopped = r.emptyLists(); stopped {
		r.stop(r.readySteps())
	} else {
		r.seatCalls()
	}
	return stopped
}

// stopRecord takes a stop record. It counts if a step is still open, and only the first does.
func (r *run) stopRecord(status string, stopped bool) bool {
	if !r.open() || r.status != "" {
		return false
	}
	r.status = status
	if !stopped {
		r.stop(r.readySteps())
	}
	return true
}

// record takes one record of a step that is open.
func (r *run) record(i int, d Decided, stopped bool) error {
	s := &r.steps[i]
	if !d.ByOwner {
		s.Attempts++
	}
	r.blobs[i] = r.blobs[i] || d.Blob
	if r.person(i, -1) != "" {
		return fmt.Errorf("step %q was executed, of which nobody has approved", d.Step)
	}
	if stopped && r.givenUp(i, d.Reply) {
		s.cancel()
		return nil
	}
	if r.plan.Steps[i].ForEach { // its list came to nothing, or it was given up
		if d.Reply.Err == nil || !d.ByOwner {
			return fmt.Errorf("step %q was executed, and not its items", d.Step)
		}
		s.fail(d.Reply.Err)
		return nil
	}
	if failure := r.resolve(i); failure != nil && !d.ByOwner {
		return fmt.Errorf("step %q was executed, though its arguments come to %s", d.Step, failure.Code)
	}
	s.decide(d.Reply, r.attemptsLeft(i, stopped), r.contracts[r.plan.Steps[i].Tool].Asks)
	r.leaveSeat(i, -1)
	return nil
}

// attemptsLeft is how many attempts a step may have: once it is stopped, none after the one in hand.
func (r *run) attemptsLeft(i int, stopped bool) int {
	if stopped {
		return 0
	}
	return r.attempts(i)
}

// open is whether some step isn't over.
func (r *run) open() bool {
	for i := range r.steps {
		if !r.over(i) {
			return true
		}
	}
	return false
}
