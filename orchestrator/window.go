package orchestrator

import "time"

// window bounds how many calls of one tool this orchestrator has out: dispatched, and not decided yet. What is beyond it
// waits in a queue that is fair to tenants and runs; once a step lies in the tool's stream it is served in its order, so
// the fewer lie there, the sooner a small run comes to its turn beside a huge one.
//
// The right size depends on how fast the workers are, which nobody declares. So it is found from what can be seen of each
// call: the time from dispatch to record, less the execution itself, is what the call waited. At first the window grows
// by one for each call that did not wait long, so it doubles in a round trip; once calls do wait it shrinks by a quarter,
// and from then on it feels its way, a sixteenth at a time.
type window struct {
	queue
	limit  int // the tool's fan-out limit, as last seen
	size   int
	out    int
	steady bool // it has been too large once
	seen   int  // calls measured since the last change of a steady window, or its last judgement
	late   int  // of them, those that waited too long
}

const (
	// shortWait is the wait that is never too long, however quick the tool.
	shortWait = time.Millisecond
	// firstWindow is a window's size at first, leastWindow what it never goes below, as far as the tool's limit allows
	// for more, and maxWindow its greatest, whatever the limit.
	firstWindow = 32
	leastWindow = 8
	maxWindow   = 8192
)

func newWindow(limit int, weights map[string]int) *window {
	return &window{limit: limit, size: min(firstWindow, limit+1), queue: queue{weights: weights}}
}

func (w *window) room() bool { return w.out < w.size }

// measured learns from one call: how long it was under way, and how much of that was its execution.
func (w *window) measured(underWay, execution time.Duration) {
	wait, enough := underWay-execution, max(shortWait, execution/8)
	w.seen++
	if wait > 2*enough {
		w.late++
	} else if !w.steady && w.held > 0 && wait <= enough {
		w.resize(w.size + 1)
	}
	if w.seen < w.size {
		return
	}
	switch {
	case w.late > w.seen/2:
		w.steady = true
		w.resize(w.size - max(w.size/4, 1))
	case w.steady && w.held > 0 && w.late <= w.seen/8:
		w.resize(w.size + max(w.size/16, 1))
	}
	w.seen, w.late = 0, 0
}

func (w *window) resize(to int) {
	w.size = max(min(to, 2*w.limit+firstWindow, maxWindow), min(w.limit, leastWindow))
}
