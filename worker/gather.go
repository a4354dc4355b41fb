package worker

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// gatherer puts the steps of one tool together into batches. A batch begins when it is full, when its oldest step has
// waited for as long as the contract allows, or when no more steps can come; in any case only when there is a slot for
// it. While all slots are taken, the batches that wait for one go on growing.
//
// A batch takes one slot. The first step of a batch brings it; what others bring goes back to the feed at once, so that
// it asks for more, and Puller.More asks for as many as the batch has room for, for no longer than it waits.
type gatherer struct {
	e           *engine
	f           *feed
	batch       tool.Batch
	propagation tool.Propagation

	turn  *turn
	gate  sync.Mutex   // held while it is decided how many steps may be asked for
	calls atomic.Int32 // under way

	mu      sync.Mutex
	open    map[string]*batch // take more steps, by what those must have in common
	waiting []*batch          // have not begun, the oldest first
	spare   int               // slots that no batch has taken
	coming  int               // steps that are being prepared
	out     int               // steps without a decision
	limit   int               // the tool's fan-out limit
	apart   bool              // an operator wants every step in a call of its own
	drained bool              // no more steps are asked for
}

// newGatherer makes one for a feed; c is the tool's contract as it stands in the registry.
func newGatherer(e *engine, f *feed, c tool.Contract) *gatherer {
	g := &gatherer{e: e, f: f, batch: *f.tool.batch, propagation: f.tool.propagation, open: map[string]*batch{}}
	g.turn = newTurn(g)
	g.follow(c)
	return g
}

// follow takes over what the registry says, where an operator may have changed it. Which argument takes the items is
// the handler's own matter.
func (g *gatherer) follow(c tool.Contract) {
	g.change(func() {
		g.limit, g.apart = c.Limit, c.Batch == nil
		if c.ErrorPropagation != "" {
			g.propagation = c.ErrorPropagation
		}
		if c.Batch != nil {
			g.batch.MaxItems, g.batch.MaxWaitMS = c.Batch.MaxItems, c.Batch.MaxWaitMS
		}
	})
}

// settings returns what follow may change.
func (g *gatherer) settings() (tool.Batch, tool.Propagation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.batch, g.propagation
}

// accept takes a step from the feed's goroutine and doesn't wait.
func (g *gatherer) accept(x *execution) {
	simple := x.simple()
	g.mu.Lock()
	g.out++
	if !simple {
		g.coming++
	}
	g.mu.Unlock()
	if simple {
		g.offer(x, 0)
		return
	}
	g.e.pool.run(x)
}

// prepare does what needs a goroutine before a step can be offered.
func (g *gatherer) prepare(x *execution) {
	if !x.prepare() {
		g.reject(x, 1)
		return
	}
	g.offer(x, 1)
}

// offer puts a step into a batch. prepared is 1 for a step that counts as coming, else 0.
func (g *gatherer) offer(x *execution, prepared int) {
	c, f := g.read(x)
	switch {
	case f != nil:
		x.fail(f)
	case len(c.items) == 0:
		x.succeed(Output{Body: writeEnvelope(nil)})
	default:
		g.join(x, c, prepared)
		return
	}
	g.reject(x, prepared)
}

// read checks a step's arguments and finds its items.
func (g *gatherer) read(x *execution) (call, *fault.Error) {
	if f := x.unfitArguments(); f != nil {
		return call{}, f
	}
	b, _ := g.settings()
	c, f := split(x.args, b)
	if f == nil && g.f.tool.readable != nil {
		f = readable(c.items, g.f.tool.readable)
	}
	return c, f
}

func readable(items []json.RawMessage, check func(json.RawMessage) error) *fault.Error {
	for i, item := range items {
		if err := check(item); err != nil {
			return fault.New(fault.InvalidArguments, "item %d: %s", i, fault.As(err).Message)
		}
	}
	return nil
}

// reject ends a step that gets into no batch.
func (g *gatherer) reject(x *execution, prepared int) {
	slot := x.slot
	x.slot = false
	x.leave()
	g.change(func() {
		g.coming -= prepared
		if slot {
			g.spare++
		}
	})
}

// join adds a step to the batch that is open for its like, or opens one. A redelivered step has a batch of its own: it
// may be what killed its worker, and must not take others with it.
func (g *gatherer) join(x *execution, c call, prepared int) {
	key := c.rest
	if together := g.f.tool.together; together != nil {
		key += "\x00" + together(x.info)
	}
	var opened *batch
	alone := g.turn.closed() // whoever else has the turn gathers; what comes here nevertheless doesn't wait
	g.change(func() {
		g.coming -= prepared
		if x.slot {
			g.spare++
			x.slot = false
		}
		b := g.open[key]
		switch {
		case x.delivered > 1 || g.apart:
			b = &batch{g: g, due: true}
			g.waiting = append(g.waiting, b)
		case b != nil && b.items+len(c.items) > g.batch.MaxItems:
			b.due = true
			fallthrough
		case b == nil:
			b = g.begin(key)
			opened = b
		}
		b.steps, b.calls, b.items = append(b.steps, x), append(b.calls, c), b.items+len(c.items)
		if alone || b.items >= g.batch.MaxItems {
			b.due = true
		}
	})
	if opened != nil {
		g.more(opened)
	}
}

// begin opens a batch. g.mu is held.
func (g *gatherer) begin(key string) *batch {
	b := &batch{g: g, key: key}
	g.open[key] = b
	g.waiting = append(g.waiting, b)
	b.timer = time.AfterFunc(g.batch.Wait(), func() { g.change(func() { b.due = true }) })
	return b
}

// more asks for as many steps as a batch still has room for.
func (g *gatherer) more(b *batch) {
	g.mu.Lock()
	room, wait := 0, g.batch.Wait()
	if slices.Contains(g.waiting, b) && !b.due {
		room = g.batch.MaxItems - b.items
	}
	g.mu.Unlock()
	if room > 0 {
		<-g.f.pulling
		g.f.puller.More(room, wait)
	}
}

// change does something to the gatherer, and then begins the batches that can begin and gives back the slots that
// nobody needs.
func (g *gatherer) change(do func()) {
	g.mu.Lock()
	do()
	begun, free := g.deal()
	full := len(g.open) == 0 && slices.ContainsFunc(begun, func(b *batch) bool { return b.items >= g.batch.MaxItems })
	g.mu.Unlock()
	g.calls.Add(int32(len(begun)))
	if len(begun) > 0 {
		g.turn.began(full, free+g.free())
	}
	for _, b := range begun {
		g.e.pool.run(b)
	}
	for range free {
		g.f.release()
	}
	g.regulate()
}

// regulate says how many steps may be asked for: the first of a batch, where no other is open and it is this worker's
// turn. What comes after the first is asked for by more.
func (g *gatherer) regulate() {
	select {
	case <-g.f.pulling:
	default:
		return
	}
	g.gate.Lock()
	defer g.gate.Unlock()
	n, closed := 1, g.turn.closed()
	g.mu.Lock()
	switch {
	case g.apart:
		n = g.f.tool.slots
	case closed || len(g.open) > 0:
		n = 0
	}
	g.mu.Unlock()
	g.f.puller.Limit(n)
}

// free returns the number of slots that nothing has taken.
func (g *gatherer) free() int {
	select {
	case <-g.f.pulling:
		return g.f.puller.Free()
	default:
		return 0
	}
}

// hasten lets open batches wait for no more: what would join them goes to another worker.
func (g *gatherer) hasten() {
	g.change(func() {
		for _, b := range g.open {
			b.due = true
		}
	})
}

// take takes a slot for a batch whose steps brought none.
func (g *gatherer) take() bool {
	select {
	case <-g.f.pulling:
		return g.f.puller.Take()
	default:
		return false
	}
}

// deal takes the batches that can begin out of the list, and counts the slots that are not needed for the others. g.mu
// is held.
func (g *gatherer) deal() (begun []*batch, free int) {
	complete := g.drained || g.coming == 0 && g.out >= g.limit
	g.waiting = slices.DeleteFunc(g.waiting, func(b *batch) bool {
		switch {
		case !b.due && !complete:
			return false
		case g.spare > 0:
			g.spare--
		case !g.take():
			return false
		}
		g.close(b)
		begun = append(begun, b)
		return true
	})
	if free = g.spare - len(g.waiting); free <= 0 {
		return begun, 0
	}
	g.spare -= free
	return begun, free
}

// close lets nothing more into a batch. g.mu is held.
func (g *gatherer) close(b *batch) {
	if b.timer != nil {
		b.timer.Stop()
	}
	if g.open[b.key] == b {
		delete(g.open, b.key)
	}
}

// decided hears that a step has got its decision: its lease ends soon, and another may come.
func (g *gatherer) decided() {
	g.mu.Lock()
	g.out--
	g.mu.Unlock()
}

// give takes back the slot of a batch.
func (g *gatherer) give() {
	g.calls.Add(-1)
	g.change(func() { g.spare++ })
	g.turn.wake()
}

// drain lets all batches begin that wait for more steps.
func (g *gatherer) drain() {
	g.change(func() { g.drained = true })
	g.turn.end()
}

// leaveToOthers gives up the steps that wait for a slot, without a decision: their leases run out.
func (g *gatherer) leaveToOthers() {
	g.mu.Lock()
	left := g.waiting
	g.waiting = nil
	for _, b := range left {
		g.close(b)
	}
	g.mu.Unlock()
	for _, b := range left {
		for _, x := range b.steps {
			x.leave()
		}
	}
}
