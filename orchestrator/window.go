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
// its own no more may be out than its share, which is another where the run is alone than beside others: as soon as
// those come, what is out of a huge one is what it was found to be when others were there last.
type window struct {
	turns
	limit      int // the tool's fan-out limit in the registry now, whatever the runs began with
	batch      int // how many steps one call of the tool takes, at most
	alone      share
	beside     share
	neighbours *neighbours // say which of them counts
	out        int
	held       int

	slowest time.Duration // execution seen lately

	stake stake // in the room of the tool, which the loops of the process share
}

func newWindow(limit, batch int, weights map[string]int, n *neighbours) *window {
	w := &window{
		turns: turns{weights: weights}, limit: limit, batch: batch, neighbours: n,
		alone: share{size: firstShare}, beside: share{size: firstShare},
	}
	w.bound()
	return w
}

// bound lets the limit count for the shares. No share keeps batches from being full, one after the other.
func (w *window) bound() {
	w.alone.bound(min(w.limit+1, max(leastAlone, 2*w.batch)), w.most())
	w.beside.bound(min(w.limit+1, max(leastBeside, 2*w.batch)), w.most())
}

// share returns that of each run as it is now.
func (w *window) share() *share {
	if w.neighbours.alone() {
		return &w.alone
	}
	return &w.beside
}

// most is how many calls may be out together.
func (w *window) most() int { return w.limit + max(w.limit/4, 1) }

// limitTo sets the tool's limit; false where it is that already.
func (w *window) limitTo(limit int) bool {
	if limit == w.limit {
		return false
	}
	w.limit = limit
	w.bound()
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

// took notes how long an execution was.
func (w *window) took(execution time.Duration) {
	w.slowest = max(execution, w.slowest-w.slowest/64)
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
	return x.out >= x.window.share().size || x.single && x.window.limit > 1 && x.out > 0
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
