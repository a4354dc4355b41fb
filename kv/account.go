package kv

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
)

// account is the connection to one JetStream account, which all facets of a store share: publishes whose answers are
// waited for, requests to JetStream's API, single reads and creates. It knows how each can fail and what may be
// repeated.
type account struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	cfg    Config
	shards int // of the ledger
	pub    *publisher
	// limited: the connection may not read whole streams (account_read.go).
	limited bool
	denied  *violations

	ctx     context.Context // ends with Store.Close
	cancel  context.CancelFunc
	mu      sync.Mutex // guards closed, and adding to running
	closed  bool
	running sync.WaitGroup
	fullAt  atomic.Int64  // when the log was last told that a stream is full, Unix seconds
	slow    chan struct{} // room for creates and dispatches that are not settled by their first answer

	regrowth regrowth
}

// maxSlow is how many publishes may be read back or repeated at a time; after a reconnect, or where a machine is too slow
// to answer in time, there may be thousands. Were all of them asked for at once, the answers would come too late for most,
// who ask again: a connection that is busy so never gets better by itself.
const maxSlow = 128

func newAccount(nc *nats.Conn, cfg Config) (*account, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, Fault(err)
	}
	s := &account{nc: nc, js: js, cfg: cfg, shards: 1, denied: watchViolations(nc), slow: make(chan struct{}, maxSlow)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.pub, err = newPublisher(nc, s.denied); err != nil {
		s.cancel()
		s.denied.stop()
		return nil, Fault(err)
	}
	s.spawn(func() { s.pub.sweep(s.ctx) })
	return s, nil
}

// close ends what runs, and waits for it.
func (s *account) close() {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	if !already {
		s.pub.close()
	}
	s.running.Wait()
	s.denied.stop()
}

// spawn runs f in a goroutine that Close waits for; false, without running it, if the store is closed.
func (s *account) spawn(f func()) bool {
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

// bound returns a context that ends with ctx and with the store.
func (s *account) bound(ctx context.Context) (context.Context, context.CancelCauseFunc) {
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
func (s *account) pause(ctx context.Context, d time.Duration) bool {
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
func (s *account) retry(ctx context.Context, request func(context.Context) error) error {
	until := time.Now().Add(retryLimit)
	for wait := backoff.Between(10*time.Millisecond, time.Second); ; {
		err := request(ctx)
		if err == nil {
			return nil
		}
		if !transient(err) || ctx.Err() != nil || time.Now().After(until) || !s.pause(ctx, wait.Next()) {
			return s.explain(ctx, err)
		}
	}
}

// explain makes a fault of a request's error. A request that ended because its caller's context did says so, unless the
// reason is known to be another.
func (s *account) explain(ctx context.Context, err error) *fault.Error {
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
func (s *account) warnFull(stream string, a ack) {
	now, last := time.Now().Unix(), s.fullAt.Load()
	if now-last >= 10 && s.fullAt.CompareAndSwap(last, now) {
		s.cfg.Logger.Warn("no room left: nothing is lost, writes wait", "stream", stream, "error", a.text)
	}
}
