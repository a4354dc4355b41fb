package kv

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
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

	nc    *nats.Conn
	reply string
}

var (
	ackBody      = []byte("+ACK")
	progressBody = []byte("+WPI")
)

// Ack says that the step is recorded: its message goes and its lease ends. It is a plain publish; if it is lost the step
// is delivered again. Errors: those of a closed connection.
func (d *Delivery) Ack() error { return d.nc.Publish(d.reply, ackBody) }

// InProgress renews the lease, as a plain publish.
func (d *Delivery) InProgress() error { return d.nc.Publish(d.reply, progressBody) }

// Pull requests live this long at the server, which says so often that it is there; two silent intervals mean that the
// request is gone.
const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 5 * time.Second
	pullTick      = time.Second
	pullPause     = 250 * time.Millisecond // after the server refused a request
)

// Puller takes a tool's steps. It never asks for more than its free slots: what a worker holds in line counts against
// the fan-out limit and its lease runs.
type Puller struct {
	s     *Store
	next  string // subject of pull requests
	slots int
	each  func(*Delivery)
	sub   *nats.Subscription
	inbox string
	end   context.CancelFunc
	done  chan struct{}

	mu       sync.Mutex
	free     int // slots
	asked    int // steps asked for and not here yet
	draining bool
	heard    time.Time // last sign of life of a request
	again    time.Time // no request before this
}

// Pull takes steps of t, at most slots at a time, and calls each with one after the other; each must not block, and each
// step it got has to be followed by one Release. It goes on through lost connections and a deleted consumer until ctx
// ends or Drain. Errors: those of a closed connection.
func (s *Store) Pull(ctx context.Context, t Tool, slots int, each func(*Delivery)) (*Puller, error) {
	p := &Puller{
		s: s, slots: max(slots, 1), free: max(slots, 1), each: each, done: make(chan struct{}), inbox: s.nc.NewInbox(), heard: time.Now(),
		next: apiPrefix + "CONSUMER.MSG.NEXT." + subjects.StepsStream(t.Shard) + "." + subjects.Durable(t.Name),
	}
	sub, err := s.nc.Subscribe(p.inbox, p.message)
	if err != nil {
		return nil, Fault(err)
	}
	p.sub = sub
	ctx, p.end = context.WithCancel(ctx)
	if !s.spawn(func() { defer close(p.done); p.watch(ctx) }) {
		_ = sub.Unsubscribe()
		return nil, errClosed()
	}
	p.ask()
	return p, nil
}

// Release says that one slot is free again.
func (p *Puller) Release() {
	p.mu.Lock()
	p.free++
	p.mu.Unlock()
	p.ask()
}

// ask sends a request for the free slots, where enough of them are not asked for: one at once when nothing is asked for,
// else half of all, so that a busy worker doesn't send a request for every step.
func (p *Puller) ask() {
	p.mu.Lock()
	n := p.free - p.asked
	if p.draining || n <= 0 || p.asked > 0 && n < (p.slots+1)/2 || time.Now().Before(p.again) {
		p.mu.Unlock()
		return
	}
	p.asked += n
	p.mu.Unlock()
	body := fmt.Appendf(nil, `{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, n, pullExpires, pullHeartbeat)
	if err := p.s.nc.PublishRequest(p.next, p.inbox, body); err != nil {
		p.mu.Lock()
		p.asked -= n
		p.mu.Unlock()
	}
}

// message takes a step, or what the server says of a request.
func (p *Puller) message(m *nats.Msg) {
	if code := status(m); code != "" {
		p.control(m, code)
		return
	}
	meta, ok := parseMeta(m.Reply)
	if !ok {
		return // not from a consumer
	}
	p.mu.Lock()
	p.heard = time.Now()
	p.asked = max(p.asked-1, 0)
	p.free--
	p.mu.Unlock()
	p.each(&Delivery{
		Subject: m.Subject, Header: m.Header, Data: m.Data, Delivered: int(meta.delivered), StreamSeq: meta.streamSeq, nc: p.s.nc, reply: m.Reply,
	})
	p.ask()
}

// control takes a status: 100 is a heartbeat, all others end a request. Nats-Pending-Messages says how much of it was
// not fulfilled.
func (p *Puller) control(m *nats.Msg, code string) {
	p.mu.Lock()
	p.heard = time.Now()
	if code == "100" {
		p.mu.Unlock()
		return
	}
	if n, ok := number(first(m.Header, "Nats-Pending-Messages")); ok {
		p.asked = max(p.asked-int(n), 0)
	} else {
		p.asked = 0
	}
	if code != "408" { // not just that its time was over
		p.again = time.Now().Add(pullPause)
	}
	p.mu.Unlock()
	p.ask()
}

// watch asks again where requests were lost: with a connection, a server or a consumer.
func (p *Puller) watch(ctx context.Context) {
	statuses := p.s.nc.StatusChanged(nats.CONNECTED)
	defer p.s.nc.RemoveStatusListener(statuses)
	tick := time.NewTicker(pullTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-statuses:
			if !ok {
				statuses = nil
				continue
			}
			p.forget()
		case <-tick.C:
			p.mu.Lock()
			silent := p.asked > 0 && time.Since(p.heard) > 2*pullHeartbeat+pullTick
			p.mu.Unlock()
			if silent {
				p.forget()
			}
			p.ask()
		}
	}
}

// forget takes all requests for lost. Should one still stand, its inbox may bring more than there are slots for a
// moment; they wait in the worker then.
func (p *Puller) forget() {
	p.mu.Lock()
	p.asked, p.heard = 0, time.Now()
	p.mu.Unlock()
	p.ask()
}

// Drain stops asking. Whatever the server sent before it knew is still handed to each; Drain returns when no more can
// come, or ctx ends.
func (p *Puller) Drain(ctx context.Context) {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	closed := make(chan struct{})
	p.sub.SetClosedHandler(func(string) { close(closed) })
	if err := p.sub.Drain(); err == nil {
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}
	p.end()
	<-p.done
}
