package kv

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Answers of a publish that the server did not give. Either means: unknown, it may have been stored.
var (
	errNoAnswer     = errors.New("JetStream did not answer a publish in time")
	errDisconnected = errors.New("the connection was lost before JetStream answered a publish")
)

// ack is what a publish came to: stored at seq, or one of the others.
type ack struct {
	seq       uint64
	duplicate bool                // the server says it had this message id before; it stored nothing now
	code      jetstream.ErrorCode // JetStream refused it
	text      string              // its words
	err       error               // no answer came
}

// receiver takes the answer to one publish. acked is called once, and must not block: answers come one after another.
// Only an answer with an error may be given from within send.
type receiver interface{ acked(ack) }

// publisher sends messages to JetStream and hands each answer to who waits for it. It has one subscription and one map
// for all of them, no goroutine for any, and reads the common answers without a JSON decoder: nats.go's PublishMsgAsync
// costs several times the CPU.
//
// At most window messages are on their way at a time, because a stream's leader answers too_many_requests beyond
// 10,000; the others wait in line. An answer that does not come within some seconds, or whose connection was lost, is
// reported as unknown.
type publisher struct {
	nc     *nats.Conn
	denied *violations
	inbox  string // with the trailing dot
	sub    *nats.Subscription
	cancel func()

	mu      sync.Mutex
	waits   map[uint64]wait
	backlog queue
	next    uint64
	tick    uint32      // of the sweep
	quiet   uint32      // ticks since the last answer; for the sweep alone
	alive   atomic.Bool // an answer came since the last tick
	epoch   uint32      // counts lost connections
	closed  bool
}

// wait is one message on its way.
type wait struct {
	to      receiver
	subject string
	tick    uint32
	epoch   uint32
}

// window is how many messages of one store are on their way at most.
const window = 4096

// sweepInterval and sweepTicks bound the wait for an answer: 5 s, give or take one interval, or quietTicks (2 s)
// where no answer to anything has come for as long. What was sent to a leader that fell silent is lost, and waiting
// for it any longer may be waiting beyond the election of another. A server that is merely slow goes on answering.
const (
	sweepInterval = 500 * time.Millisecond
	sweepTicks    = 10
	quietTicks    = 4
)

func newPublisher(nc *nats.Conn, denied *violations) (*publisher, error) {
	p := &publisher{nc: nc, denied: denied, inbox: nc.NewInbox() + ".", waits: map[uint64]wait{}}
	sub, err := nc.Subscribe(p.inbox+"*", p.answered)
	if err != nil {
		return nil, err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // bounded by window
		return nil, err
	}
	p.sub = sub
	p.cancel = denied.onRefusal(p.refused)
	return p, nil
}

func (p *publisher) inflight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waits) + p.backlog.len()
}

// send publishes m and sees to it that to gets the answer.
func (p *publisher) send(m *nats.Msg, to receiver) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		to.acked(ack{err: errClosed()})
		return
	}
	if len(p.waits) >= window {
		p.backlog.push(queued{m, to})
		p.mu.Unlock()
		return
	}
	token := p.register(m, to)
	p.mu.Unlock()
	p.publish(m, token)
}

// register notes that m is on its way. p.mu is held.
func (p *publisher) register(m *nats.Msg, to receiver) uint64 {
	p.next++
	p.waits[p.next] = wait{to, m.Subject, p.tick, p.epoch}
	return p.next
}

func (p *publisher) publish(m *nats.Msg, token uint64) {
	var reply [64]byte
	m.Reply = string(strconv.AppendUint(append(reply[:0], p.inbox...), token, 36))
	if err := p.nc.PublishMsg(m); err != nil {
		if w, ok := p.take(token); ok {
			w.to.acked(ack{err: err})
		}
	}
}

// take removes a message that is on its way, and lets the next in line go.
func (p *publisher) take(token uint64) (wait, bool) {
	p.mu.Lock()
	w, ok := p.waits[token]
	if !ok {
		p.mu.Unlock()
		return w, false
	}
	delete(p.waits, token)
	var next queued
	if !p.closed {
		next, _ = p.backlog.pop()
	}
	if next.msg == nil {
		p.mu.Unlock()
		return w, true
	}
	following := p.register(next.msg, next.to)
	p.mu.Unlock()
	p.publish(next.msg, following)
	return w, true
}

// answered takes an answer of the server.
func (p *publisher) answered(m *nats.Msg) {
	p.alive.Store(true)
	token, err := strconv.ParseUint(m.Subject[min(len(p.inbox), len(m.Subject)):], 36, 64)
	if err != nil {
		return
	}
	if w, ok := p.take(token); ok {
		w.to.acked(parseAck(m))
	}
}

// refused ends the wait of those whose subject this connection may not publish to.
func (p *publisher) refused(subject string) {
	f, refused := p.denied.of(subject), p.denied.inboxRefusal() != nil
	if f == nil {
		return
	}
	p.fail(func(w wait) bool { return refused || w.subject == subject }, f)
}

// fail ends the wait of all that which chooses.
func (p *publisher) fail(which func(wait) bool, err error) {
	p.mu.Lock()
	var tokens []uint64
	for token, w := range p.waits {
		if which(w) {
			tokens = append(tokens, token)
		}
	}
	p.mu.Unlock()
	for _, token := range tokens {
		if w, ok := p.take(token); ok {
			w.to.acked(ack{err: err})
		}
	}
}

// sweep looks for answers that do not come, until ctx ends.
func (p *publisher) sweep(ctx context.Context) {
	status := p.nc.StatusChanged(nats.CONNECTED, nats.DISCONNECTED, nats.RECONNECTING)
	defer p.nc.RemoveStatusListener(status)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.expire()
		case st, ok := <-status:
			if !ok {
				status = nil // the connection is closed for good: publishing says so
				continue
			}
			p.connection(st)
		}
	}
}

func (p *publisher) expire() {
	p.mu.Lock()
	p.tick++
	now := p.tick
	busy := len(p.waits) > 0
	p.mu.Unlock()
	patience := uint32(sweepTicks)
	if p.quiet++; p.alive.Swap(false) {
		p.quiet = 0
	} else if p.quiet >= quietTicks {
		patience = quietTicks
	}
	if busy && p.nc.IsConnected() {
		p.fail(func(w wait) bool { return now-w.tick > patience }, errNoAnswer)
	}
}

// connection notes that the connection was lost, and once it is back ends the wait of what was sent before.
func (p *publisher) connection(st nats.Status) {
	p.mu.Lock()
	if st != nats.CONNECTED {
		p.epoch++
		p.mu.Unlock()
		return
	}
	now := p.epoch
	p.mu.Unlock()
	p.fail(func(w wait) bool { return w.epoch != now }, errDisconnected)
}

// close ends the wait of all.
func (p *publisher) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	line := p.backlog
	p.backlog = queue{}
	p.mu.Unlock()
	_ = p.sub.Unsubscribe() // fails only if the connection is closed
	p.fail(func(wait) bool { return true }, errClosed())
	for q, ok := line.pop(); ok; q, ok = line.pop() {
		q.to.acked(ack{err: errClosed()})
	}
}

// queued is a message that waits for room.
type queued struct {
	msg *nats.Msg
	to  receiver
}

// queue is first in, first out.
type queue struct {
	items []queued
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(x queued) { q.items = append(q.items, x) }

func (q *queue) pop() (queued, bool) {
	if q.head == len(q.items) {
		return queued{}, false
	}
	x := q.items[q.head]
	q.items[q.head] = queued{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = nil, 0
	} else if q.head >= 1024 && q.head*2 >= len(q.items) {
		q.items, q.head = append([]queued(nil), q.items[q.head:]...), 0
	}
	return x, true
}
