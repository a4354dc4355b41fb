package kv

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Cursor reads a stream of at most one message a subject: first what is there, then what comes, each message once and
// in the stream's order.
//
// It is an ordered push consumer without durable state. Order: a gap in the consumer's numbers, which a lost message
// leaves, makes it start again behind the last message it handed on. Bounds: the server sends no more than 32 MiB
// ahead of what was handed on (flow control). Safety: it goes on only while it is certain that nothing below its
// position can have changed; a server that restarted may have lost the end of its file in a power cut and written on
// from there. So when the consumer, which lives in the server's memory, is gone, or the stream has another leader, or
// the connection is to another server, or the stream is shorter than what was read, the cursor is lost: forget what
// it said, start another.
type Cursor struct {
	s        *account
	stream   string
	filters  atomic.Pointer[[]string]
	bare     bool // headers alone are read, and no bodies
	since    Since
	each     func(Entry)
	caughtUp func(last uint64)
	lost     func(error)

	ctx     context.Context
	cancel  context.CancelCauseFunc
	home    home
	life    atomic.Pointer[string] // of the stream, see Life
	broken  chan struct{}          // a gap was noticed, or the filters are others
	elected chan struct{}          // the stream has another leader, or may have
	alive   atomic.Bool            // something arrived since the last look
	pos     position

	mu       sync.Mutex // held while a callback runs
	sub      *nats.Subscription
	name     string // of the consumer
	epoch    int    // counts consumers; what belongs to an earlier one is ignored
	received uint64 // consumer sequence of the last message
	target   uint64 // end of the snapshot
	caught   bool
	// awaited are the subjects of the snapshot on which nothing was handed on yet, where messages replace others: one
	// that is replaced while the snapshot is read comes behind its end.
	awaited map[string]uint64
	// remote: the consumer may read another replica than the leader's, so that its count of pending messages proves
	// nothing.
	remote bool
}

// home is where a cursor began.
type home struct{ server, leader string }

// heartbeat is how often an idle consumer says so; after deadTicks without a word it is looked after.
const (
	heartbeat = 500 * time.Millisecond
	deadTicks = 5
)

// consumerIdle is how long the server keeps a cursor's consumer while the connection is away.
const consumerIdle = 30 * time.Second

// createPatience is how long the creation of a consumer waits for its answer before it is tried again: a cluster does
// not answer while the stream has no leader.
const createPatience = 2 * time.Second

// newCursor starts a cursor; of a bucket with one filter. The callbacks are called one after another, never two at a
// time, and may block: then the server holds its messages back. caughtUp and lost are called at most once.
func (s *account) newCursor(ctx context.Context, stream string, filters []string, each func(Entry), caughtUp func(uint64), lost func(error)) (*Cursor, error) {
	return s.startCursor(ctx, &Cursor{stream: stream, each: each, caughtUp: caughtUp, lost: lost}, filters)
}

// newHeads is newCursor for headers alone: what is handed on has no body. It awaits no subject, of which there may be as
// many as runs: what is replaced while the snapshot is read comes behind its end.
func (s *account) newHeads(ctx context.Context, stream string, filters []string, each func(Entry), caughtUp func(uint64), lost func(error)) (*Cursor, error) {
	return s.startCursor(ctx, &Cursor{stream: stream, bare: true, each: each, caughtUp: caughtUp, lost: lost}, filters)
}

func (s *account) startCursor(ctx context.Context, c *Cursor, filters []string) (*Cursor, error) {
	c.s, c.broken, c.elected = s, make(chan struct{}, 1), make(chan struct{}, 1)
	stream := c.stream
	var keys string
	if subjects.IsBucketStream(stream) && !c.bare {
		keys = filters[0]
	}
	info, err := s.streamInfo(ctx, stream, keys)
	if err != nil {
		return nil, err
	}
	c.target, c.awaited = info.State.LastSeq, info.State.Subjects
	c.home = home{s.nc.ConnectedServerId(), info.leader()}
	c.filters.Store(&filters)
	c.live(c.home.server, info)
	if c.since.Life != c.Life() {
		c.since = Since{}
	}
	if c.since.Seq > 0 {
		c.awaited = nil // of what lies before that nothing comes, and nothing of a ledger replaces another
	}
	c.pos.advance(max(c.since.Seq, 1) - 1)
	c.remote = info.leader() != "" && len(info.Cluster.Replicas) > 0
	c.ctx, c.cancel = s.bound(ctx)
	if err := s.retry(ctx, c.subscribe); err != nil {
		c.cancel(nil)
		return nil, err
	}
	if !s.spawn(c.watch) {
		c.end()
		return nil, errClosed()
	}
	return c, nil
}

// Stop ends the cursor. Except for one under way, no callback is called any more.
func (c *Cursor) Stop() { c.cancel(errStopped()) }

func errStopped() *fault.Error { return fault.New(fault.Cancelled, "the cursor was stopped") }

// Passed waits until every message up to seq that the cursor reads was handed on. Messages that it does not read count
// too: where none of its own comes, the consumer's heartbeat says how far it has looked, within a second. Errors:
// Timeout or Cancelled after ctx, Cancelled or NotReady when the cursor was stopped or lost.
func (c *Cursor) Passed(ctx context.Context, seq uint64) error {
	passed := c.pos.wait(seq)
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		c.pos.forget(passed)
		return Fault(context.Cause(ctx))
	case <-c.ctx.Done():
		c.pos.forget(passed)
		return Fault(context.Cause(c.ctx))
	}
}

// subscribe makes a consumer: of the whole snapshot the first time, or of what comes since a place in it; from behind the
// position later.
func (c *Cursor) subscribe(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sub != nil {
		_ = c.sub.Unsubscribe() // fails only when the connection is closed
	}
	c.epoch++
	epoch, inbox := c.epoch, c.s.nc.NewInbox()
	sub, err := c.s.nc.Subscribe(inbox, func(m *nats.Msg) { c.handle(epoch, m) })
	if err != nil {
		return err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil { // bounded by flow control
		return err
	}
	cfg := jetstream.ConsumerConfig{
		DeliverSubject: inbox, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubjects: *c.filters.Load(),
		AckPolicy: jetstream.AckNonePolicy, FlowControl: true, IdleHeartbeat: heartbeat, HeadersOnly: c.bare,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerIdle,
	}
	if epoch > 1 && c.name != "" || c.since.Seq > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, c.pos.get()+1
	}
	// A consumer whose creation is not answered in time goes when nobody listens to it.
	creating, cancel := context.WithTimeout(ctx, createPatience)
	defer cancel()
	consumer, err := c.s.js.CreatePushConsumer(creating, c.stream, cfg)
	if err != nil {
		_ = sub.Unsubscribe()
		return err
	}
	info := consumer.CachedInfo()
	c.sub, c.name, c.received = sub, info.Name, 0
	if info.NumPending == 0 && !c.remote {
		c.pos.advance(c.target)
	}
	c.alive.Store(true)
	return nil
}

// handle takes one message of the consumer that epoch counts.
func (c *Cursor) handle(epoch int, m *nats.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive.Store(true)
	if epoch != c.epoch || c.ctx.Err() != nil {
		return
	}
	at, ok := parseMeta(m.Reply)
	if !ok {
		c.control(m)
		return
	}
	if at.consumerSeq != c.received+1 {
		c.gap()
		return
	}
	c.received++
	if at.streamSeq > c.target && len(c.awaited) == 0 {
		c.catchUp(c.target)
	}
	c.each(Entry{m.Subject, at.streamSeq, time.Unix(0, at.time).UTC(), m.Header, m.Data})
	c.pos.advance(at.streamSeq)
	delete(c.awaited, m.Subject)
	if len(c.awaited) == 0 && (at.streamSeq >= c.target || at.pending == 0 && !c.remote) {
		c.catchUp(max(c.target, at.streamSeq))
	}
}

// narrow reads less from now on: another consumer takes over behind what was handed on. Until it does, messages come
// that the new filters don't match.
func (c *Cursor) narrow(filters []string) {
	if slices.Equal(*c.filters.Swap(&filters), filters) {
		return
	}
	c.renew()
}

// Position returns the sequence up to which everything that the cursor reads was handed on. Where nothing of its own
// comes it follows the stream's end about a second late.
func (c *Cursor) Position() uint64 { return c.pos.get() }

// Check makes the cursor look soon whether what was read still stands.
func (c *Cursor) Check() {
	select {
	case c.elected <- struct{}{}:
	default:
	}
}

// gap ignores the consumer from now on and asks for another.
func (c *Cursor) gap() {
	c.epoch++
	c.renew()
}

func (c *Cursor) renew() {
	select {
	case c.broken <- struct{}{}:
	default:
	}
}

// control answers flow control and reads heartbeats.
func (c *Cursor) control(m *nats.Msg) {
	if status(m) != "100" {
		if status(m) != "" { // 409: the consumer was deleted
			c.gap()
		}
		return
	}
	if m.Reply != "" {
		_ = c.s.nc.Publish(m.Reply, nil) // whatever keeps this from arriving shows as silence
		return
	}
	stalled := first(m.Header, "Nats-Consumer-Stalled")
	if stalled != "" {
		_ = c.s.nc.Publish(stalled, nil)
	}
	sent, ok := number(first(m.Header, "Nats-Last-Consumer"))
	if !ok {
		return
	}
	if sent != c.received {
		c.gap()
		return
	}
	if looked, ok := number(first(m.Header, "Nats-Last-Stream")); ok {
		c.pos.advance(looked)
		if stalled == "" && (looked >= c.target || !c.remote) { // there is nothing more, also of what is awaited
			c.catchUp(max(c.target, looked))
		}
	}
}

// catchUp tells, once, that the snapshot is complete.
func (c *Cursor) catchUp(last uint64) {
	if c.caught {
		return
	}
	c.caught = true
	c.pos.advance(last)
	if c.caughtUp != nil {
		c.caughtUp(last)
	}
}

// position is how far a cursor has come, and who waits for that.
type position struct {
	mu      sync.Mutex
	at      uint64
	waiting []waiter
}

type waiter struct {
	seq  uint64
	done chan struct{}
}

func (p *position) get() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *position) advance(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq <= p.at {
		return
	}
	p.at = seq
	if len(p.waiting) == 0 {
		return
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool {
		if w.seq > seq {
			return false
		}
		close(w.done)
		return true
	})
}

// wait returns a channel that is closed once the position is at seq or beyond.
func (p *position) wait(seq uint64) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := make(chan struct{})
	if seq <= p.at {
		close(done)
	} else {
		p.waiting = append(p.waiting, waiter{seq, done})
	}
	return done
}

func (p *position) forget(done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return w.done == done })
}
