package orchestrator

import "time"

// window bounds how many calls of one tool this orchestrator has out: dispatched, and not decided yet. What is beyond it
// waits in a queue that is fair to tenants and runs; once a step lies in the tool's stream it is served in its order, so
// the fewer lie there, the sooner a small run comes to its turn beside a huge one.
//
// The right size depends on how fast the workers are, which nobody declares. So it is found from what can be seen of each
// call: the time from dispatch to record, less the execution itself, is what the call waited. While that stays short, and
// calls are held back, the window grows by one for each call decided, so it doubles in a round trip; once the wait is
// long, it shrinks by a quarter for each round trip.
type window struct {
	queue
	limit int // the tool's fan-out limit, as last seen
	size  int
	out   int
	late  int // calls in a row of measurements that waited too long
}

const (
	// shortWait is the wait that is never too long, however quick the tool.
	shortWait = time.Millisecond
	// firstWindow and maxWindow bound a window's size, whatever the tool's limit.
	firstWindow = 32
	maxWindow   = 8192
)

func newWindow(limit int, weights map[string]int) *window {
	return &window{limit: limit, size: min(firstWindow, limit+2), queue: queue{weights: weights}}
}

func (w *window) room() bool { return w.out < w.size }

// measured learns from one call: how long it was under way, and how much of that was its execution.
func (w *window) measured(underWay, execution time.Duration) {
	wait := underWay - execution
	enough := max(shortWait, execution/2)
	switch {
	case wait <= enough:
		if w.held > 0 && w.size < min(2*w.limit+firstWindow, maxWindow) {
			w.size++
		}
		w.late = 0
	case wait > 2*enough:
		if w.late++; w.late >= w.size {
			w.size -= w.size / 4
			w.late = 0
		}
	}
}
