package orchestrator

import (
	"sync/atomic"
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

// share is how many calls of one run may be out at a tool. The right number depends on how fast the workers are, which
// nobody declares, so it is found from what can be seen of each call of a run that is held back: the time from dispatch
// to record, less the execution itself, is what the call waited. While that is short the share grows, at first by one
// for each call, so that it doubles in a round trip; once calls do wait it shrinks by a quarter, and from then on it
// feels its way, a sixteenth at a time.
type share struct {
	size   int
	least  int
	most   int
	steady bool // it has been too large once
	seen   int  // calls measured since it was last judged
	late   int  // of them, those that waited too long
}

const (
	// shortWait is the wait that is never too long, however quick the tool.
	shortWait = time.Millisecond / 2
	// firstShare is a share's size at first: what a slow tool is to have at once, whoever is beside. That a tool is
	// quick shows after some hundred calls.
	firstShare = 128
	// leastAlone is what the share of a run that is alone doesn't go below: with fewer calls out, a quick tool would be
	// idle for want of work. leastBeside is the same for a run beside others.
	leastAlone  = 128
	leastBeside = 16
)

// bound sets what a share may be.
func (s *share) bound(least, most int) {
	s.least, s.most = least, most
	s.resize(s.size)
}

func (s *share) resize(to int) { s.size = max(min(to, s.most), s.least) }

// measured learns from one call of a run that is held back: how long it was under way, and how much of that was its
// execution.
func (s *share) measured(underWay, execution time.Duration) {
	wait, enough := underWay-execution, max(shortWait, execution/4)
	s.seen++
	if wait > 2*enough {
		s.late++
	} else if !s.steady && wait <= enough {
		s.resize(s.size + 1)
	}
	if s.seen < s.size {
		return
	}
	switch {
	case s.late > s.seen/2:
		s.steady = true
		s.resize(s.size - max(s.size/4, 1))
	case s.steady && s.late <= s.seen/8:
		s.resize(s.size + max(s.size/16, 1))
	}
	s.seen, s.late = 0, 0
}

// neighbours knows whether one run has the process to itself, whatever tools it calls: what runs of different tools
// share is the machine. All loops of a process have one, and none waits for it.
type neighbours struct {
	last  atomic.Pointer[run] // whose call was decided last, unless it is over
	calls atomic.Int64        // to be decided until one run is alone; none above 0: it is
}

// neighbourCalls is how many calls of one run in a row make it one that is alone.
const neighbourCalls = 1024

// decided notes whose call was decided.
func (n *neighbours) decided(r *run) {
	switch last := n.last.Load(); {
	case last == r:
		if n.calls.Load() > 0 {
			n.calls.Add(-1)
		}
		return
	case last != nil: // which goes on: it is not merely the one before
		n.calls.Store(neighbourCalls)
	}
	n.last.Store(r)
}

// over notes that a run has nothing out any more.
func (n *neighbours) over(r *run) { n.last.CompareAndSwap(r, nil) }

// alone reports whether a run that has much to do has the process to itself.
func (n *neighbours) alone() bool { return n.calls.Load() <= 0 }

// A window counts calls. What calls cost the server, its disk and the workers' memory is their bytes, so those that are
// out are counted too, over all tools: of each run, and of each tenant. Where a bound is reached, only a call of few
// bytes goes still; the others wait in their lanes until something of theirs is decided.

// bounds are for the arguments that are out, in bytes. A call goes while less than a bound is out, so that one which is
// larger than the bound itself goes too, and what is out together may be more by one call.
type bounds struct{ run, tenant, light int64 }

// shipped are the bounds of a real orchestrator. 16 MiB of a run keep a round trip of a server that writes 100 MB/s
// under a fifth of a second, and are 64 calls of the largest arguments that travel in a message. 64 MiB of a tenant are
// half of the memory that large values may take (largeRoom), so no tenant takes all of it. Calls of a KiB wait for no
// bytes: 10,000 of them are less than one run's bound.
var shipped = bounds{run: 16 << 20, tenant: 64 << 20, light: 1 << 10}

// burden is the bytes that a run, or a tenant, has out.
type burden struct {
	of      string // whose, for people
	bytes   int64
	most    int64
	waiting fifo[*lane] // refused for bytes; there are some only while the bound is reached
	lanes   int         // that refer to it
	stake   stake       // of a tenant, in what the loops of the process share
}

func (b *burden) full() bool { return b != nil && b.stake.full(b.bytes, b.most) }

// add counts bytes that went, or were decided.
func (b *burden) add(bytes int64) {
	b.bytes += bytes
	b.stake.count(bytes)
	b.claim()
}

func (b *burden) claim() { b.stake.claim(b.bytes > 0 || b.waiting.len() > 0, b.waiting.len() > 0) }

// overfull returns the burden whose bound is reached, that of the run before that of the tenant; nil: none is.
func (x *lane) overfull() *burden {
	switch {
	case x.ofRun.full():
		return x.ofRun
	case x.ofTenant.full():
		return x.ofTenant
	}
	return nil
}

// stopped reports whether the first call of a lane, which has some, may not go now. Where that is for bytes, the lane
// waits for them.
func (x *lane) stopped() bool {
	if x.full() {
		return true
	}
	b := x.overfull()
	if b == nil || x.weight(x.calls.front()) <= x.light {
		return false
	}
	if !x.awaitsBytes {
		x.awaitsBytes = true
		b.waiting.push(x)
		b.claim()
	}
	return true
}

func (b *burden) wake(send func(*window)) {
	for n := b.waiting.len(); n > 0 && !b.full(); n-- {
		x := b.waiting.pop()
		b.claim()
		x.awaitsBytes = false
		x.window.turn(x)
		send(x.window)
	}
}
