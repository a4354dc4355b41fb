package kv

import (
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// outbox is a connection that is written to by a goroutine of its own. nats.go writes while it holds the lock that whoever
// publishes needs, so that they wait for the system, or in one process for the server to read; and it writes so soon that
// most writes carry one or two messages. Here a write leaves its bytes and returns, and before the goroutine takes them all
// that can run gets its turn, to add what it has: under load a seventh of the writes, with nothing to do no delay.
//
// Order: bytes leave in the order they came. Bounds: a write waits while outboxRoom is taken. Failure: what was left and
// could not be written is lost, as it would be in the system's own buffers; the connection is closed then, which its
// reader notices, and later writes say why.
type outbox struct {
	net.Conn
	wake  chan struct{} // something waits, or it is closed
	done  chan struct{} // the goroutine has ended
	haste int           // writes for which it yields to nobody; of the goroutine

	mu      sync.Mutex
	room    sync.Cond
	waiting []byte
	bounded time.Time // when writes of the system were last given a deadline
	closed  bool
	err     error
}

const (
	// outboxRoom is how many bytes may wait before a write does.
	outboxRoom = 1 << 20
	// outboxKept is the largest buffer, in bytes, that is kept for what comes next.
	outboxKept = 256 << 10
	// writeWithin bounds one write of the system, as nats.go would; at least half of it.
	writeWithin = time.Minute
	// closeWithin bounds the last one.
	closeWithin = 250 * time.Millisecond
	// yieldWithin is how long the turns of all others may take; where they take longer, because tools keep the processors
	// busy, the next hasty writes don't wait for them.
	yieldWithin = 5 * time.Millisecond
	hasty       = 100
)

func newOutbox(c net.Conn) *outbox {
	b := &outbox{Conn: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	b.room.L = &b.mu
	go b.run()
	return b
}

// SetWriteDeadline does nothing: the goroutine bounds its writes itself.
func (b *outbox) SetWriteDeadline(time.Time) error { return nil }

// Write leaves p to be written.
func (b *outbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) >= outboxRoom && b.err == nil && !b.closed {
		b.room.Wait()
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case b.closed:
		return 0, net.ErrClosed
	}
	b.waiting = append(b.waiting, p...)
	b.signal()
	return len(p), nil
}

func (b *outbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *outbox) run() {
	defer close(b.done)
	var written []byte
	for range b.wake {
		b.yield()
		next, last := b.take(written)
		if len(next) > 0 {
			if _, err := b.Conn.Write(next); err != nil {
				b.fail(err)
				return
			}
		}
		if last {
			return
		}
		if written = next; cap(written) > outboxKept {
			written = nil
		}
	}
}

// yield lets whatever can run add to what waits.
func (b *outbox) yield() {
	if b.haste > 0 {
		b.haste--
		return
	}
	began := time.Now()
	runtime.Gosched()
	if time.Since(began) > yieldWithin {
		b.haste = hasty
	}
}

// take swaps what waits for an empty buffer, and bounds its writing; last: nothing will come after it.
func (b *outbox) take(empty []byte) (next []byte, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, b.waiting = b.waiting, empty[:0]
	b.room.Broadcast()
	if now := time.Now(); !b.closed && now.Sub(b.bounded) > writeWithin/2 {
		b.bounded = now
		_ = b.Conn.SetWriteDeadline(now.Add(writeWithin)) // a closed connection says so when it is written to
	}
	return next, b.closed
}

func (b *outbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.waiting = err, nil
	b.room.Broadcast()
	_ = b.Conn.Close() // it is of no more use
}

// Close sees what waits off, within closeWithin, and closes the connection.
func (b *outbox) Close() error {
	b.mu.Lock()
	b.closed = true
	_ = b.Conn.SetWriteDeadline(time.Now().Add(closeWithin)) // of a write under way too
	b.room.Broadcast()
	b.signal()
	b.mu.Unlock()
	<-b.done
	return b.Conn.Close()
}

// inside gives connections to an embedded server, each with an outbox.
type inside struct{ server nats.InProcessConnProvider }

// InProcessConn is called by nats.go for each connection.
func (i inside) InProcessConn() (net.Conn, error) {
	c, err := i.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return newOutbox(c), nil
}
