package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/machine"
)

// window bounds how many calls of one tool this orchestrator has out: dispatched, and not decided yet. What is beyond
// it is held back and handed out by turns, fair to tenants and runs; once a step lies in the tool's stream it is served
// in its order, so the fewer lie there, the sooner a small run comes to its turn beside a huge one.
//
// All of them together may be a little more than the tool's fan-out limit: more could not be leased, and what is beyond
// keeps the workers busy. What is out of a run or of a tenant has a bound in bytes besides (see burden). Of a run on
// its own no more may be out than its share. The right share depends on how fast the workers are, which nobody
// declares, so it is found from what can be seen of each call of a run that is held back: the time from dispatch to
// record, less the execution itself, is what the call waited. While that is short the share grows, at first by one for
// each call, so that it doubles in a round trip; once calls do wait it shrinks by a quarter, and from then on it feels
// its way, a sixteenth at a time.
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

	stake stake // in the room of the tool, which the loops of the process share

	last      *lane // whose call was decided last
	sharedFor int   // counts down the calls decided since two in a row were of different runs; 0: one run is alone
}

const (
	// shortWait is the wait that is never too long, however quick the tool.
	shortWait = time.Millisecond
	// aloneShare is a share's size at first, and what it doesn't go below while one run has the tool to itself: with
	// fewer calls out, a quick tool would be idle for want of work. leastShare is what it doesn't go below beside
	// others.
	aloneShare = 128
	leastShare = 16
	// sharedCalls is how many calls of one run in a row make it one that is alone.
	sharedCalls = 1024
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

// full reports whether no more of the tool may go for now.
func (w *window) full() bool { return w.stake.full(int64(w.out), int64(w.most())) }

// add counts calls that went, or were decided.
func (w *window) add(n int) {
	w.out += n
	w.stake.count(int64(n))
	w.claim()
}

func (w *window) claim() { w.stake.claim(w.out+w.held > 0, w.held > 0) }

// hold keeps a call back.
func (w *window) hold(x *lane, h held) {
	x.calls.push(h)
	w.held++
	w.claim()
	w.turn(x)
}

// turn lets a lane take turns, if there is something that it may send.
func (w *window) turn(x *lane) {
	if x.calls.len() > 0 && !x.stopped() {
		w.join(x)
	}
}

// sendHeld sends what is held back, as far as there is room. send reports whether the call is out now, or was not
// wanted any more.
func (w *window) sendHeld(send func(*lane, held) bool) {
	for !w.full() && !w.empty() {
		w.serve(func(x *lane) bool {
			for x.calls.len() > 0 && !x.stopped() {
				w.held--
				if send(x, x.calls.pop()) {
					break
				}
			}
			return x.calls.len() > 0 && !x.stopped()
		})
	}
	w.claim()
}

// decided notes whose call was decided, to know whether a run has the tool to itself.
func (w *window) decided(x *lane) {
	switch {
	case w.last != nil && w.last != x && w.last.out+w.last.calls.len() > 0: // not merely the one before it
		w.sharedFor = sharedCalls
	case w.sharedFor > 0:
		w.sharedFor--
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
	if w.sharedFor > 0 {
		least = leastShare
	}
	w.share = max(min(to, w.most()), min(w.limit+1, least))
}

// lane is what one run has of one tool: the calls that wait for room, in their order, and how many are out.
type lane struct {
	run    *run
	window *window
	calls  fifo[held]
	out    int
	inTurn bool // it stands in the window's turns
	single bool // the run began while the tool was sequential-only

	ofRun, ofTenant *burden
	light           int64 // how many bytes a call may have that doesn't wait for bytes
	weight          func(held) int64
	awaitsBytes     bool // it stands in a burden's queue
}

// full reports whether the run may have no more of the tool out for now. A run that began with a tool that took one
// call at a time keeps to that: of its own calls no two are out together, also once the tool takes many.
func (x *lane) full() bool {
	return x.out >= x.window.share || x.single && x.window.limit > 1 && x.out > 0
}

// held is a call that waits for room: a dispatch for now, and how often it was sent again. It is small because of a
// backlog there may be millions.
type held struct{ step, item, attempt, repair int32 }

func holding(d machine.Dispatch, repair int) held {
	return held{int32(d.Step), int32(d.Item), int32(d.Attempt), int32(repair)}
}

func (h held) dispatch() machine.Dispatch {
	return machine.Dispatch{Call: machine.Call{Step: int(h.step), Item: int(h.item)}, Attempt: int(h.attempt)}
}

// turns say whose call is next: tenants take turns by their weights, and the runs of a tenant one by one.
type turns struct {
	weights map[string]int // of tenants; 1 where there is none
	order   fifo[*tenant]
	tenants map[string]*tenant
}

type tenant struct {
	name  string
	left  int // of its turn
	lanes fifo[*lane]
}

// join lets a lane take turns.
func (t *turns) join(x *lane) {
	if x.inTurn {
		return
	}
	x.inTurn = true
	of := t.tenants[x.run.id.Tenant]
	if of == nil {
		of = &tenant{name: x.run.id.Tenant, left: t.weight(x.run.id.Tenant)}
		if t.tenants == nil {
			t.tenants = map[string]*tenant{}
		}
		t.tenants[of.name] = of
		t.order.push(of)
	}
	of.lanes.push(x)
}

func (t *turns) weight(tenant string) int { return max(t.weights[tenant], 1) }

// serve returns the lane whose turn it is to do, which tells whether the lane is to have another turn.
func (t *turns) serve(do func(*lane) (again bool)) {
	of := t.order.front()
	x := of.lanes.pop()
	if do(x) {
		of.lanes.push(x)
	} else {
		x.inTurn = false
	}
	of.left--
	switch {
	case of.lanes.len() == 0:
		t.order.pop()
		delete(t.tenants, of.name)
	case of.left <= 0:
		t.order.pop()
		of.left = t.weight(of.name)
		t.order.push(of)
	}
}

func (t *turns) empty() bool { return t.order.len() == 0 }

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(x T) {
	if f.head > 32 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, x)
}

func (f *fifo[T]) front() T { return f.items[f.head] }

func (f *fifo[T]) pop() T {
	var none T
	x := f.items[f.head]
	f.items[f.head] = none
	f.head++
	return x
}
