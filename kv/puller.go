package kv

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Delivery is one step handed to a worker.
type Delivery struct {
	Subject string
	Header  nats.Header
	Data    []byte
	// Delivered counts from 1; more means that a worker had it before and its lease ran out.
	Delivered int
	// StreamSeq is the sequence of the step's message.
	StreamSeq uint64
	// ID is the id of the step's message: that of a dispatch or of a repair.
	ID string
	// Stored is when the server stored that, by its own clock.
	Stored time.Time
	// Extra says that it came of Puller.More: it has no slot, so no Release follows it.
	Extra bool
	// Asked is a moment before the request was sent that it came of: it was handed out later than that.
	Asked time.Time
	// Held is when it was put aside for want of a free slot; zero where it was not. Nobody kept its lease meanwhile.
	Held time.Time

	nc    *nats.Conn
	reply string
}

var (
	ackBody      = []byte("+ACK")
	progressBody = []byte("+WPI")
)

// Ack says that the step is recorded: its message goes and its lease ends. It is a plain publish; if it is lost the
// step is delivered again. Errors: those of a closed connection.
func (d *Delivery) Ack() error { return d.nc.Publish(d.reply, ackBody) }

// InProgress renews the lease, as a plain publish.
func (d *Delivery) InProgress() error { return d.nc.Publish(d.reply, progressBody) }

// Puller takes a tool's steps. It never asks for more than its free slots, for a step that waits in a worker counts
// against the tool's fan-out limit while its lease runs out. Its requests are counted by what came of each: a step is
// one less to come, a status says how many of a request will not come any more. Where requests may be lost (a new
// connection, a server that has fallen silent) it turns to a new inbox, so that what was asked for on the old one
// can't come as well.
type Puller struct {
	s     *Queue
	next  string // subject of pull requests
	slots int
	each  func(*Delivery)
	end   context.CancelCauseFunc
	done  chan struct{}

	calling sync.Mutex // held while each runs

	mu       sync.Mutex
	inbox    *inbox
	extra    *inbox      // of More; nil until its first call
	until    time.Time   // when the last request of More ends
	free     int         // slots
	most     int         // that may be asked for at a time
	asked    int         // steps asked for on inbox and not here yet
	held     []*Delivery // came without a free slot: two requests crossed
	open     int         // subscriptions that may still bring steps
	draining bool
	came     time.Time     // last step
	heard    time.Time     // last sign of life of a request
	again    time.Time     // no request before this
	silence  time.Duration // after which the last request is taken for lost
	lost     func()        // is told that there is no consumer to ask
	sooner   chan struct{} // tells watch that something is due sooner than it knows
	settled  chan struct{} // closed when draining and no step can come any more
}

// drainQuiet is how long nothing may have come for a draining puller to close while it has requests out.
const (
	drainQuiet = 50 * time.Millisecond
	drainTick  = 5 * time.Millisecond
)

// flowing reports whether steps that were asked for are likely to be on their way.
func (p *Puller) flowing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.s.nc.IsConnected() {
		return false
	}
	left := time.Until(p.until)
	return p.asked > 0 && time.Since(p.came) < drainQuiet || left > 0 && left < drainQuiet
}

// inbox is where the answers to some requests come: steps, and what the server says of a request.
type inbox struct {
	prefix string
	opened time.Time // before anything was asked for on it
	sub    *nats.Subscription
}

// reopen opens a new inbox, closes the one before, and asks.
func (p *Puller) reopen() error {
	p.mu.Lock()
	old := p.inbox
	fresh, err := p.listen(p.message)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	p.inbox, p.asked = fresh, 0
	p.mu.Unlock()
	if old != nil {
		_ = old.sub.Drain() // what it has received already is still handed on
	}
	p.ask()
	return nil
}

// listen opens an inbox, whose messages go to take. p.mu is held.
func (p *Puller) listen(take func(*inbox, *nats.Msg)) (*inbox, error) {
	if p.draining {
		return nil, errClosed()
	}
	l := &inbox{prefix: p.s.nc.NewInbox() + ".", opened: time.Now()}
	sub, err := p.s.nc.Subscribe(l.prefix+"*", func(m *nats.Msg) { take(l, m) })
	if err != nil {
		return nil, err
	}
	l.sub = sub
	_ = sub.SetPendingLimits(-1, -1) // bounded by the slots; it fails only on a closed subscription
	p.open++
	sub.SetClosedHandler(func(string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
		p.settle()
	})
	return l, nil
}

// Release says that one slot is free again.
func (p *Puller) Release() {
	p.mu.Lock()
	if len(p.held) == 0 {
		p.free++
		p.mu.Unlock()
		p.ask()
		return
	}
	d := p.held[0]
	p.held = p.held[1:]
	p.settle()
	p.mu.Unlock()
	p.s.spawn(func() { p.call(d) }) // not here: the caller may be within each
}

// settle notes that Drain has nothing more to wait for. p.mu is held.
func (p *Puller) settle() {
	if p.draining && p.open == 0 && len(p.held) == 0 {
		select {
		case <-p.settled:
		default:
			close(p.settled)
		}
	}
}

// ask sends a request for the free slots that are not asked for: at once where nothing is asked for, otherwise only for
// half of all slots or more, so that a busy worker does not send a request for every step.
func (p *Puller) ask() {
	p.mu.Lock()
	n := min(p.free, p.most) - p.asked
	if p.draining || n <= 0 || p.asked > 0 && n < (p.slots+1)/2 {
		p.mu.Unlock()
		return
	}
	now := time.Now() // which costs more than all else here
	if now.Before(p.again) {
		p.mu.Unlock()
		return
	}
	if p.asked == 0 {
		p.heard = now
	}
	p.asked += n
	expires, heartbeat, before := pullExpires, pullHeartbeat, p.silence
	p.silence = pullSilence
	if p.s.pullers.Load() > manyPullers && now.Sub(p.came) > idleAfter {
		expires, heartbeat, p.silence = p.s.idleTimes()
	}
	if p.silence < before {
		p.wake()
	}
	to := p.inbox
	p.mu.Unlock()
	// The size stands in the reply subject too, so that a status that does not tell what is left tells what was asked
	// for.
	size := strconv.Itoa(n)
	if err := p.s.nc.PublishRequest(p.next, to.prefix+size, pullRequest(size, expires, heartbeat)); err != nil {
		p.unasked(to, n, true)
	}
}

// unasked notes that n steps asked for on an inbox will not come, and whether to wait before asking again.
func (p *Puller) unasked(on *inbox, n int, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on != p.inbox {
		return
	}
	p.asked = max(p.asked-n, 0)
	if wait {
		p.again = time.Now().Add(pullPause)
		p.wake()
	}
}

// message takes a step, or what the server says of a request.
func (p *Puller) message(on *inbox, m *nats.Msg) {
	if code := status(m); code != "" {
		p.control(on, m, code)
		return
	}
	d := p.delivery(on, m)
	if d == nil {
		return
	}
	p.mu.Lock()
	if on == p.inbox {
		p.came = time.Now()
		p.heard = p.came
		p.asked = max(p.asked-1, 0)
	}
	if p.free <= 0 {
		d.Held = time.Now()
		p.held = append(p.held, d)
		p.mu.Unlock()
		return
	}
	p.free--
	p.mu.Unlock()
	p.call(d)
	p.ask()
}

// delivery reads a step; nil for what is not from a consumer.
func (p *Puller) delivery(on *inbox, m *nats.Msg) *Delivery {
	at, ok := parseMeta(m.Reply)
	if !ok {
		return nil
	}
	id := ""
	if list := m.Header[headerMsgID]; len(list) > 0 {
		id = list[0]
	}
	return &Delivery{
		ID: id, Subject: m.Subject, Header: m.Header, Data: m.Data, Delivered: int(at.delivered), StreamSeq: at.streamSeq,
		Stored: time.Unix(0, at.time), Asked: on.opened, nc: p.s.nc, reply: m.Reply,
	}
}

// call hands a step on.
func (p *Puller) call(d *Delivery) {
	p.calling.Lock()
	defer p.calling.Unlock()
	p.each(d)
}

// watch asks again where requests were lost or refused.
func (p *Puller) watch(ctx context.Context) {
	statuses := p.s.nc.StatusChanged(nats.CONNECTED)
	defer p.s.nc.RemoveStatusListener(statuses)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(p.due())
		lost := false
		select {
		case <-ctx.Done():
			p.abandon()
			return
		case _, open := <-statuses:
			if !open {
				statuses = nil // closed for good
				continue
			}
			lost = true
		case <-p.sooner:
			continue
		case <-timer.C:
			lost = p.silent()
		}
		if lost && p.reopen() == nil {
			continue
		}
		p.ask()
	}
}

// silent reports whether requests are out and nothing was heard of them.
func (p *Puller) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == 0 || time.Since(p.heard) < p.silence || !p.s.nc.IsConnected() {
		return false
	}
	p.heard = time.Now()
	return true
}

// abandon stops asking and listening. Steps that were not handed on go to other workers when their leases end.
func (p *Puller) abandon() {
	p.mu.Lock()
	p.draining = true
	subs := p.subscriptions()
	p.mu.Unlock()
	for _, sub := range subs {
		_ = sub.Unsubscribe() // fails only if it is closed already
	}
}

// subscriptions returns those that bring steps. p.mu is held.
func (p *Puller) subscriptions() []*nats.Subscription {
	if p.extra == nil {
		return []*nats.Subscription{p.inbox.sub}
	}
	return []*nats.Subscription{p.inbox.sub, p.extra.sub}
}

// Drain stops asking. Whatever the server sent before it knew is still handed to each, as slots become free; Drain
// returns when no more can come, or ctx ends. More calls do the same.
//
// A request can't be taken back. A step that the server sends in the very moment in which the inbox closes is lost to
// everybody until its lease ends; so while steps are flowing, the inbox closes only after what was asked for has come.
func (p *Puller) Drain(ctx context.Context) {
	p.mu.Lock()
	p.draining = true
	subs := p.subscriptions()
	p.mu.Unlock()
	for p.flowing() && p.s.pause(ctx, drainTick) {
	}
	for _, sub := range subs {
		_ = sub.Drain() // fails only if it is closed already
	}
	select {
	case <-p.settled:
	case <-ctx.Done():
	case <-p.s.ctx.Done():
	}
	for _, sub := range subs {
		_ = sub.Unsubscribe() // it may be waiting for a server that is away
	}
	p.end(nil)
	<-p.done
}
