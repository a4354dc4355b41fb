package kv

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Store is Stepjet's data in one JetStream account. Its methods are safe for concurrent use.
type Store struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	cfg    Config
	shards int
	pub    *publisher
	// limited: the connection may not read whole streams (limited.go).
	limited bool
	denied  *violations

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	mu      sync.Mutex // guards closed, and adding to running
	closed  bool
	running sync.WaitGroup
	fullAt  atomic.Int64 // when the log was last told that a stream is full, Unix seconds
	behind  sentinels
	mortal  mortal
	places  places
	tenants tenants
	by      func() nats.Header // who asks for registrations, see Introduce; nil: it isn't said
	pullers atomic.Int64       // that are at work
	slow    chan struct{}      // room for creates and dispatches that are not settled by their first answer
}

// maxSlow is how many publishes may be read back or repeated at a time; after a reconnect there may be thousands.
const maxSlow = 128

// newStore needs no server's answer: Setup and Open find out what is there.
func newStore(nc *nats.Conn, cfg Config) (*Store, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, Fault(err)
	}
	s := &Store{nc: nc, js: js, cfg: cfg, shards: 1, denied: violationsOf(nc), slow: make(chan struct{}, maxSlow)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.pub, err = newPublisher(nc, s.denied); err != nil {
		s.cancel()
		return nil, Fault(err)
	}
	s.spawn(func() { s.pub.sweep(s.ctx) })
	return s, nil
}

// Conn gives the connection that the store works on.
func (s *Store) Conn() *nats.Conn { return s.nc }

// Shards gives the number of ledger shards.
func (s *Store) Shards() int { return s.shards }

// MaxPayload gives the largest message that the server takes, in bytes, headers included.
func (s *Store) MaxPayload() int64 { return s.nc.MaxPayload() }

// Inflight gives how many creates and dispatches wait for their first answer. Beyond some thousands, a caller that can
// wait should: they are kept in memory.
func (s *Store) Inflight() int { return s.pub.inflight() }

// SubmitSubject gives the subject that a Go client publishes (or Creates) a plan to.
func (s *Store) SubmitSubject(r subjects.Run) string { return subjects.SubmitTo(r, s.shards) }

// Close ends what the store has running, and waits for it; creates and dispatches under way end with NoConnection. The
// connection stays open. It must not be called from within a callback of the store.
func (s *Store) Close() {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	if !already {
		s.pub.close()
	}
	s.running.Wait()
	s.mortal.close()
}

// spawn runs f in a goroutine that Close waits for; false, without running it, if the store is closed.
func (s *Store) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		f()
	}()
	return true
}

// bound gives a context that ends with ctx and with the store.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errClosed()) })
	return inner, func(cause error) {
		stop()
		cancel(cause)
	}
}

func errClosed() *fault.Error {
	return fault.New(fault.NoConnection, "this program's connection to Stepjet is closed")
}

// pause waits for d; false if ctx or the store ends before.
func (s *Store) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

// retryLimit is how long a request is repeated while JetStream answers that it can't just now.
const retryLimit = 15 * time.Second

// retry repeats a request that may be made twice while a leader is elected or the connection is away, until ctx ends or
// for 15 s. The error is a *fault.Error.
func (s *Store) retry(ctx context.Context, request func(context.Context) error) error {
	until := time.Now().Add(retryLimit)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := request(ctx)
		if err == nil {
			return nil
		}
		if !transient(err) || ctx.Err() != nil || time.Now().After(until) || !s.pause(ctx, wait) {
			return s.explain(ctx, err)
		}
	}
}

// explain makes a fault of a request's error. A request that ended because its caller's context did says so, unless the
// reason is known to be another.
func (s *Store) explain(ctx context.Context, err error) *fault.Error {
	if s.ctx.Err() != nil && ctx.Err() == nil {
		return errClosed()
	}
	f := Fault(err)
	if f.Code != fault.Timeout {
		return f
	}
	if !s.nc.IsConnected() {
		f = fault.New(fault.NoConnection, "the connection to NATS is down")
		f.Cause = err
		return f
	}
	if cause := context.Cause(ctx); cause != nil {
		return Fault(cause)
	}
	f.Message = "JetStream did not answer in time"
	return f
}

// warnFull tells the log that a stream is full, at most every ten seconds.
func (s *Store) warnFull(stream string, a ack) {
	now, last := time.Now().Unix(), s.fullAt.Load()
	if now-last >= 10 && s.fullAt.CompareAndSwap(last, now) {
		s.cfg.Logger.Warn("no room left: nothing is lost, writes wait", "stream", stream, "error", a.text)
	}
}
