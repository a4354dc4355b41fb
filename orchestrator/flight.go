package orchestrator

import (
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/machine"
)

// flight is one attempt that is out: dispatched, and not decided yet. It takes room in its tool's window.
type flight struct {
	attempt int
	window  *window
	sent    time.Time
	seq     atomic.Uint64 // of its message in the step stream, once that is known
}

func (l *loop) window(r *run, step int) *window {
	name, limit := r.plan.Steps[step].Tool, r.machine.Contract(step).Limit
	w := l.windows[name]
	if w == nil {
		w = newWindow(limit, l.o.cfg.Weights)
		l.windows[name] = w
	}
	w.limit = limit
	return w
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
			l.dispatch(r, d, repair, f)
		}
		return
	}
	w := l.window(r, d.Step)
	if w.held == 0 && w.room() {
		l.launch(w, r, held{d, repair})
		return
	}
	r.held++
	w.push(r, held{d, repair})
	l.pump(w)
}

// launch dispatches an attempt that has room.
func (l *loop) launch(w *window, r *run, h held) {
	f := &flight{attempt: h.dispatch.Attempt, window: w, sent: time.Now()}
	r.fly(h.dispatch.Call, f)
	l.dispatch(r, h.dispatch, h.repair, f)
}

func (r *run) fly(c machine.Call, f *flight) {
	if r.flights == nil {
		r.flights = map[machine.Call]*flight{}
	}
	if old := r.flights[c]; old != nil {
		old.window.out--
	}
	r.flights[c] = f
	f.window.out++
}

// pump dispatches what is held back, as far as there is room.
func (l *loop) pump(w *window) {
	for w.held > 0 && w.room() {
		r, h := w.pop()
		if r.phase != running {
			continue // over, or not ours any more
		}
		r.held--
		c := h.dispatch.Call
		if !r.machine.Wanted(c, h.dispatch.Attempt) {
			continue
		}
		if f := r.flights[c]; f != nil && f.attempt == h.dispatch.Attempt {
			continue
		}
		l.launch(w, r, h)
	}
}

// landed takes an attempt out of its window, since it was decided.
func (l *loop) landed(r *run, res *machine.Result) {
	f := r.flights[res.Call]
	if f == nil || f.attempt != res.Attempt {
		return
	}
	delete(r.flights, res.Call)
	w := f.window
	w.out--
	if !f.sent.IsZero() && !res.ByOwner && !res.Started.IsZero() {
		w.measured(time.Since(f.sent), max(res.Ended.Sub(res.Started), 0))
	}
	l.pump(w)
}

// adopt notes an attempt that an earlier owner dispatched and that lies in its stream still.
func (l *loop) adopt(r *run, d machine.Dispatch) {
	if r.phase == running && r.flights[d.Call] == nil && r.machine.Open(d.Call, d.Attempt) {
		r.fly(d.Call, &flight{attempt: d.Attempt, window: l.window(r, d.Step)})
	}
}

// ground gives the room of all that a run has out back: it is over, or another's.
func (l *loop) ground(r *run) {
	var windows []*window
	for _, f := range r.flights {
		f.window.out--
		windows = append(windows, f.window)
	}
	r.flights, r.held = nil, 0
	for _, w := range windows {
		l.pump(w)
	}
}
