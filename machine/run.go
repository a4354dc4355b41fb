// Package machine is a run as a state machine: records in, effects out.
//
// It is pure: no I/O, no clock, no goroutine; time is an argument. The state of a run is a function of its plan, its
// start and the set of its records in the order of their ledger sequences, so two owners that read the same ledger reach
// the same state, and an owner that restarts rebuilds it.
//
// Safety. An attempt is decided by one record, because the ledger takes one record a subject. Attempt A+1 is asked for
// only after A was decided a retryable failure, so a step has at most one success. A step is dispatched only once all
// its dependencies are terminal and the non-optional ones have succeeded.
//
// Liveness. Outstanding lists at any time what should be out; whoever compares it with what is out repairs what was lost.
//
// Records that come twice are ignored. Records that come out of their order are put into it: the state is computed anew
// from the sorted records (it happens in simulations; a ledger cursor has one order).
package machine

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Start is what was frozen when the run began, and everybody follows.
type Start struct {
	// Key is the run's identity T/R/G; jitter is a hash of it, the step and the attempt.
	Key string
	// Submitted is the time of the plan record, from which the run's timeout counts.
	Submitted time.Time
	// Started is the time of the start record: steps without dependencies are ready then.
	Started time.Time
	// Contracts are those of the tools used, by name.
	Contracts map[string]tool.Contract
}

type state uint8

const (
	waiting   state = iota // for dependencies, or for its wave
	ready                  // dispatched, or about to be
	retrying               // its next attempt waits for its time
	succeeded              // the rest are terminal
	failed
	skipped
	cancelled
)

func (s state) terminal() bool { return s >= succeeded }

// step is the state of one step.
type step struct {
	state    state
	expiring bool // its deadline passed and a record was asked for
	missing  int  // dependencies that are not terminal
	attempt  int  // the attempt that is out, or the one that decided
	executed int  // attempts that a worker decided
	ready    time.Time
	deadline time.Time
	at       time.Time // retrying: when the next attempt is due
	decided  time.Time
	result   *Result // of the last attempt decided
}

// Run is the state of one run. It is not safe for concurrent use.
type Run struct {
	plan  *plan.Plan
	start Start

	steps     []step
	remaining int // steps that are not terminal
	deadline  time.Time

	// stopping is set by the record that lets nothing new start: a stop, or the failure under on_failure "stop".
	stopping bool
	stop     *Stop
	failFast int // the step whose failure stopped the run, or -1
	expiring bool

	wave      int     // the next to be opened
	waves     [][]int // nil unless the schedule is waves
	openAt    []int   // by wave: steps that are not terminal; nil unless the schedule is waves
	deadlines deadlines

	log      []Record // in the order of their sequences
	early    map[attemptKey]*Record
	lastTime time.Time
	begun    bool
	finished bool
}

type attemptKey struct{ step, attempt int }

// New gives the run before its first step. The caller owns p and must not change it.
func New(p *plan.Plan, start Start) *Run {
	r := &Run{plan: p, start: start}
	r.reset()
	return r
}

func (r *Run) reset() {
	n := len(r.plan.Steps)
	r.steps = make([]step, n)
	r.remaining, r.deadline = n, r.start.Submitted.Add(r.plan.Timeout)
	r.stopping, r.stop, r.failFast, r.expiring = false, nil, -1, false
	r.wave, r.openAt, r.deadlines, r.early = 0, nil, nil, nil
	r.lastTime, r.begun, r.finished = r.start.Started, false, false
	if r.plan.Schedule == plan.Waves {
		r.waves = r.plan.Waves()
		r.openAt = make([]int, len(r.waves))
	}
	for i := range r.plan.Steps {
		r.steps[i].missing = len(r.plan.Steps[i].Deps)
		if r.openAt != nil {
			r.openAt[r.plan.Steps[i].Depth]++
		}
	}
}

// Begin makes the steps without dependencies ready. It is called once, before the first Apply.
func (r *Run) Begin(out *Effects) {
	if r.begun {
		return
	}
	r.begun = true
	if r.openAt != nil {
		r.openWave(r.start.Started, out)
		return
	}
	for i := range r.steps {
		if r.steps[i].missing == 0 && r.steps[i].state == waiting {
			r.makeReady(i, r.start.Started, out)
		}
	}
}

// Apply reads one record, which belongs to the machine from then on. now decides only whether a retry is already due; the state depends on the records alone.
func (r *Run) Apply(rec Record, now time.Time, out *Effects) {
	r.Begin(out)
	at, known := slices.BinarySearchFunc(r.log, rec.Seq, func(l Record, seq uint64) int { return cmp.Compare(l.Seq, seq) })
	if known {
		return
	}
	rec.normalise()
	inOrder := at == len(r.log)
	r.log = slices.Insert(r.log, at, rec)
	if inOrder {
		r.apply(&r.log[at], now, out)
		return
	}
	r.replay(now, out)
}

// replay computes the state anew from all records in their order, then asks for all that should be out.
func (r *Run) replay(now time.Time, out *Effects) {
	wasFinished := r.finished
	r.reset()
	var scratch Effects
	r.Begin(&scratch)
	for i := range r.log {
		r.apply(&r.log[i], now, &scratch)
	}
	out.Reset()
	out.Settled = append(out.Settled, scratch.Settled...)
	out.Finished = r.finished && !wasFinished
	r.Outstanding(now, out)
}

func (r *Run) apply(rec *Record, now time.Time, out *Effects) {
	if r.finished {
		return // a stop after the last deciding record, or a record of a step that was derived
	}
	if rec.Time.After(r.lastTime) {
		r.lastTime = rec.Time
	}
	switch {
	case rec.Stop != nil:
		r.applyStop(rec, out)
	case rec.Result != nil:
		r.applyResult(rec, now, out)
	}
	if r.remaining == 0 && !r.finished {
		r.finished = true
		out.Finished = true
	}
}

// normalise turns a tool's output into the JSON value it stands for. A pure function of the record, so all owners agree
// that a success with unreadable output is a failure.
func (rec *Record) normalise() {
	res := rec.Result
	if res == nil || res.Error != nil || res.Value != nil {
		return
	}
	value, err := plan.Output(res.Body, res.Text)
	res.Body = nil
	if err != nil {
		res.Error = err
		return
	}
	res.Size = int64(len(value))
	if res.Handle == nil {
		res.Value = value
	}
}

// makeReady asks for the first attempt of a step whose inputs are there.
func (r *Run) makeReady(i int, at time.Time, out *Effects) {
	s := &r.steps[i]
	s.state, s.attempt, s.ready = ready, 1, at
	if t := r.plan.Steps[i].Timeout; t > 0 {
		s.deadline = at.Add(t)
		heap.Push(&r.deadlines, deadline{s.deadline, i})
	}
	if rec, ok := r.early[attemptKey{i, 1}]; ok {
		r.decide(i, rec, rec.Time, out)
		return
	}
	out.Dispatch = append(out.Dispatch, Dispatch{Step: i, Attempt: 1})
}

// settle makes a step terminal and lets its dependents go on.
func (r *Run) settle(i int, to state, at time.Time, out *Effects) {
	type todo struct {
		step int
		to   state
	}
	work := []todo{{i, to}}
	for len(work) > 0 {
		x := work[len(work)-1]
		work = work[:len(work)-1]
		s := &r.steps[x.step]
		if s.state.terminal() {
			continue
		}
		s.state, s.decided = x.to, at
		r.remaining--
		out.Settled = append(out.Settled, x.step)
		if r.openAt != nil {
			r.openAt[r.plan.Steps[x.step].Depth]--
		}
		spoils := x.to != succeeded && !r.plan.Steps[x.step].Optional
		for _, d := range r.plan.Steps[x.step].Dependents {
			dep := &r.steps[d]
			dep.missing--
			switch {
			case dep.state != waiting:
			case spoils && x.to != cancelled:
				work = append(work, todo{d, skipped})
			case dep.missing == 0 && r.openAt == nil && !r.stopping:
				r.makeReady(d, at, out)
			}
		}
	}
	if r.openAt != nil && !r.stopping {
		r.openWave(at, out)
	}
}

// openWave makes the next wave's steps ready once every step of the waves before is terminal. Waves open in their order,
// so only the last one opened can still hold something up.
func (r *Run) openWave(at time.Time, out *Effects) {
	for r.wave < len(r.openAt) && (r.wave == 0 || r.openAt[r.wave-1] == 0) {
		wave := r.waves[r.wave]
		r.wave++ // first, because a record that came early may settle a step here and now
		opened := false
		for _, i := range wave {
			if r.steps[i].state == waiting {
				opened = true
				r.makeReady(i, at, out)
			}
		}
		if opened {
			return
		}
	}
}

// Plan gives the run's plan.
func (r *Run) Plan() *plan.Plan { return r.plan }

// Finished reports whether every step is terminal.
func (r *Run) Finished() bool { return r.finished }

// Result gives the record of a step's success, or nil.
func (r *Run) Result(step int) *Result {
	if r.steps[step].state != succeeded {
		return nil
	}
	return r.steps[step].result
}

// Contract gives the frozen contract of a step's tool.
func (r *Run) Contract(step int) tool.Contract { return r.start.Contracts[r.plan.Steps[step].Tool] }

// Stopping reports whether nothing new may start any more.
func (r *Run) Stopping() bool { return r.stopping }

// Open reports whether this attempt of a step is the one to be decided now.
func (r *Run) Open(step, attempt int) bool {
	s := &r.steps[step]
	return (s.state == ready || s.state == retrying) && s.attempt == attempt
}
