package orchestrator

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/tool"
)

// flight is one attempt that is out: dispatched, and not decided yet. It takes room in its tool's window.
type flight struct {
	attempt int
	line    *line
	sent    time.Time     // the last time; zero where an earlier owner sent it
	seq     atomic.Uint64 // of its message in the step stream, once that is known
	bytes   int64         // of its arguments; those that an earlier owner sent are not counted
	landed  bool
}

// line gives what a run has of a step's tool.
func (l *loop) line(r *run, step int) *line {
	name, frozen := r.plan.Steps[step].Tool, r.machine.Contract(step)
	if x := r.lines[name]; x != nil {
		return x
	}
	w := l.windows[name]
	if w == nil {
		w = newWindow(l.reg.limit(name, frozen.Limit), l.cfg.Weights)
		l.windows[name] = w
	}
	if r.lines == nil {
		r.lines = map[string]*line{}
	}
	x := &line{run: r, window: w, single: frozen.Mode == tool.SequentialOnly}
	l.loaded(x)
	r.lines[name] = x
	return x
}

// offer dispatches an attempt now, or as soon as its tool's window has room for it. One that is to wait for its time
// takes no room: it lies in the stream as a scheduled message. repair is not 0 for what the sweep found lost.
func (l *loop) offer(r *run, d machine.Dispatch, repair int) {
	if !d.At.IsZero() {
		l.dispatch(r, d, repair, nil)
		return
	}
	if f := r.flights[d.Call]; f != nil && f.attempt == d.Attempt {
		if repair > 0 {
			f.sent = l.clock.Now()
			f.seq.Store(0)
			l.dispatch(r, d, repair, f)
		}
		return
	}
	x := l.line(r, d.Step)
	if w := x.window; w.held > 0 || w.out >= w.most() || x.full() || x.overfull() != nil {
		w.hold(x, holding(d, repair))
		l.pump(w)
		return
	}
	l.launch(x, d, repair)
}

// launch dispatches an attempt that has room.
func (l *loop) launch(x *line, d machine.Dispatch, repair int) {
	f := &flight{attempt: d.Attempt, line: x, sent: l.clock.Now()}
	x.run.fly(d.Call, f)
	l.dispatch(x.run, d, repair, f)
}

func (r *run) fly(c machine.Call, f *flight) {
	if r.flights == nil {
		r.flights = map[machine.Call]*flight{}
	}
	if old := r.flights[c]; old != nil {
		old.land()
	}
	r.flights[c] = f
	f.line.out++
	f.line.window.out++
}

func (f *flight) land() {
	f.line.out--
	f.line.window.out--
	f.add(-f.bytes)
	f.landed = true
}

// pump dispatches what is held back, as far as there is room.
func (l *loop) pump(w *window) {
	w.pump(func(x *line, h held) bool {
		r, d := x.run, h.dispatch()
		if r.phase != running || !r.machine.Wanted(d.Call, d.Attempt) {
			return false // over, given up, or not ours any more
		}
		if f := r.flights[d.Call]; f != nil && f.attempt == d.Attempt {
			return false
		}
		l.launch(x, d, int(h.repair))
		return true
	})
}

// landed takes an attempt out of its window, since it was decided.
func (l *loop) landed(r *run, res *machine.Result) {
	f := r.flights[res.Call]
	if f == nil || f.attempt != res.Attempt {
		return
	}
	delete(r.flights, res.Call)
	f.land()
	x, w := f.line, f.line.window
	w.decided(x)
	l.eased(x)
	executed, execution := !res.ByOwner && !res.Started.IsZero(), max(res.Ended.Sub(res.Started), 0)
	if executed {
		w.took(execution)
	}
	if w.held == 0 {
		return
	}
	if x.calls.len() > 0 && !f.sent.IsZero() && executed {
		w.measured(l.clock.Now().Sub(f.sent), execution)
	}
	w.turn(x)
	l.pump(w)
}

// limited lets the limit of a tool count that the registry has now, for runs that began under another one too: a limit is
// the tool's, and the consumer that all of them share has it already.
func (l *loop) limited(name string) {
	w := l.windows[name]
	if w == nil || !w.limitTo(l.reg.limit(name, w.limit)) {
		return
	}
	for _, r := range l.runs.oldestFirst(func(r *run) bool { return r.lines[name] != nil }) {
		w.turn(r.lines[name])
	}
	l.pump(w)
}

// adopt notes an attempt that an earlier owner dispatched and that lies in its stream still.
func (l *loop) adopt(r *run, d machine.Dispatch) {
	if r.phase == running && r.flights[d.Call] == nil && r.machine.Open(d.Call, d.Attempt) {
		r.fly(d.Call, &flight{attempt: d.Attempt, line: l.line(r, d.Step)})
	}
}

// ground gives the room of all that a run has out back: it is over, or another's.
func (l *loop) ground(r *run) {
	for _, f := range r.flights {
		f.land()
	}
	lines := r.lines
	r.flights, r.lines, r.burden = nil, nil, nil
	var waiting []string // tools for which others have something held back
	for name, x := range lines {
		for ; x.calls.len() > 0; x.calls.pop() {
			x.window.held--
		}
		l.unloaded(x)
		if x.window.held > 0 {
			waiting = append(waiting, name)
		}
	}
	slices.Sort(waiting)
	for _, name := range waiting {
		l.pump(lines[name].window)
	}
	if of := l.burdens[r.id.Tenant]; of != nil {
		of.wake(l.pump)
	}
}

// heldOf tells how many calls of a run wait for room at a step's tool.
func (r *run) heldOf(step int) int {
	if x := r.lines[r.plan.Steps[step].Tool]; x != nil {
		return x.calls.len()
	}
	return 0
}
