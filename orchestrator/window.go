package orchestrator

import "time"

// window bounds how many calls of one tool this orchestrator has out: dispatched, and not decided yet. What is beyond it
// is held back and handed out by turns, fair to tenants and runs; once a step lies in the tool's stream it is served in
// its order, so the fewer lie there, the sooner a small run comes to its turn beside a huge one.
//
// All of them together may be a little more than the tool's fan-out limit: more could not be leased, and what is beyond
// keeps the workers busy. What is out of a run or of a tenant has a bound in bytes besides (see burden). Of a run on its own no more may be out than its share. The right share depends on how fast the
// workers are, which nobody declares, so it is found from what can be seen of each call of a run that is held back: the
// time from dispatch to record, less the execution itself, is what the call waited. While that is short the share grows,
// at first by one for each call, so that it doubles in a round trip; once calls do wait it shrinks by a quarter, and from
// then on it feels its way, a sixteenth at a time.
type window struct {
	turns
	limit  int // the tool's fan-out limit in the registry now, whatever the runs began with
	share  int
	out    int
	held   int
	steady bool // the share has been too large once
	seen   int  // calls measured since the share was last judged
	late   int  // of them, those that waited too long

	slowest time.Duration // execution seen lately

	last  *line // whose call was decided last
	crowd int   // counts down the calls decided since two in a row were of different runs; 0: one run is alone
}

const (
	// shortWait is the wait that is never too long, however quick the tool.
	shortWait = time.Millisecond
	// aloneShare is a share's size at first, and what it doesn't go below while one run has the tool to itself: with fewer
	// calls out, a quick tool would be idle for want of work. leastShare is what it doesn't go below beside others.
	aloneShare = 128
	leastShare = 16
	// crowdFor is how many calls of one run in a row make it one that is alone.
	crowdFor = 1024
)

func newWindow(limit int, weights map[string]int) *window {
	w := &window{turns: turns{weights: weights}, limit: limit}
	w.share = min(aloneShare, w.most())
	return w
}

// most is how many calls may be out together.
func (w *window) most() int { return w.limit + max(w.limit/4, 1) }

// limitTo sets the tool's limit; false where it is that already.
func (w *window) limitTo(limit int) bool {
	if limit == w.limit {
		return false
	}
	w.limit = limit
	w.resize(w.share)
	return true
}

// hold keeps a call back.
func (w *window) hold(x *line, h held) {
	x.calls.push(h)
	w.held++
	w.turn(x)
}

// turn lets a line take turns, if there is something that it may send.
func (w *window) turn(x *line) {
	if x.calls.len() > 0 && !x.stopped() {
		w.join(x)
	}
}

// pump sends what is held back, as far as there is room. send reports whether the call is out now, or was not wanted
// any more.
func (w *window) pump(send func(*line, held) bool) {
	for w.out < w.most() && !w.empty() {
		w.serve(func(x *line) bool {
			for x.calls.len() > 0 && !x.stopped() {
				w.held--
				if send(x, x.calls.pop()) {
					break
				}
			}
			return x.calls.len() > 0 && !x.stopped()
		})
	}
}

// decided notes whose call was decided, to know whether a run has the tool to itself.
func (w *window) decided(x *line) {
	switch {
	case w.last != nil && w.last != x && w.last.out+w.last.calls.len() > 0: // not merely the one before it
		w.crowd = crowdFor
	case w.crowd > 0:
		w.crowd--
	}
	w.last = x
}

// measured learns from one call of a run that is held back: how long it was under way, and how much of that was its
// execution.
func (w *window) measured(underWay, execution time.Duration) {
	wait, enough := underWay-execution, max(shortWait, execution/4)
	w.seen++
	if wait > 2*enough {
		w.late++
	} else if !w.steady && wait <= enough {
		w.resize(w.share + 1)
	}
	if w.seen < w.share {
		return
	}
	switch {
	case w.late > w.seen/2:
		w.steady = true
		w.resize(w.share - max(w.share/4, 1))
	case w.steady && w.late <= w.seen/8:
		w.resize(w.share + max(w.share/16, 1))
	}
	w.seen, w.late = 0, 0
}

// took notes how long an execution was.
func (w *window) took(execution time.Duration) {
	w.slowest = max(execution, w.slowest-w.slowest/64)
}

func (w *window) resize(to int) {
	least := aloneShare
	if w.crowd > 0 {
		least = leastShare
	}
	w.share = max(min(to, w.most()), min(w.limit+1, least))
}
