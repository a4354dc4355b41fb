package kv

import (
	"net"
	"runtime"
	"sync"
	"time"
)

// outbox is a connection that is written to by a goroutine of its own. nats.go writes while it holds the lock that
// whoever publishes needs, so that they wait for the system, or in one process for the server to read; and it writes
// so soon that most writes carry one or two messages. Here a write leaves its bytes and returns, and before the
// goroutine takes them all that can run gets its turn, to add what it has: under load a seventh of the writes, with
// nothing to do no delay.
//
// Order: bytes leave in the order they came. Bounds: a write waits while outboxRoom is taken. Failure: what was left
// and could not be written is lost, as it would be in the system's own buffers; the connection is closed then, which
// its reader notices, and later writes say why.
type outbox struct {
	net.Conn
	wake       chan struct{} // something waits, or it is closed
	done       chan struct{} // the goroutine has ended
	unyielding int           // writes for which it yields to nobody; of the goroutine

	mu      sync.Mutex
	room    sync.Cond
	waiting []byte
	busy    bool      // a write of the system is under way
	bounded time.Time // when these were last given a deadline
	closed  bool
	err     error
}

const (
	// outboxRoom is how many bytes may wait before a write does.
	outboxRoom = 1 << 20
	// outboxLarge is the size, in bytes, from which on a write is not copied.
	outboxLarge = 32 << 10
	// outboxKept is the largest buffer, in bytes, that is kept for what comes next.
	outboxKept = 256 << 10
	// writeWithin bounds one write of the system, as nats.go would; at least half of it.
	writeWithin = time.Minute
	// closeWithin bounds the last one.
	closeWithin = time.Second
	// yieldWithin is how long the turns of all others may take; where they take longer, because tools keep the
	// processors busy, the next writes don't wait for them.
	yieldWithin      = 5 * time.Millisecond
	unyieldingWrites = 100
)

func newOutbox(c net.Conn) *outbox {
	b := &outbox{Conn: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	b.room.L = &b.mu
	go b.run()
	return b
}

// SetWriteDeadline does nothing: the goroutine bounds its writes itself.
func (b *outbox) SetWriteDeadline(time.Time) error { return nil }

// Write leaves p to be written. What is large is written before it returns, behind all that waits: to copy it would
// cost more than the waiting.
func (b *outbox) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	large := len(p) >= outboxLarge
	for (len(b.waiting) >= outboxRoom || large && (b.busy || len(b.waiting) > 0)) && b.err == nil && !b.closed {
		b.room.Wait()
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case b.closed:
		return 0, net.ErrClosed
	case large:
		return b.write(p)
	}
	b.waiting = append(b.waiting, p...)
	b.signal()
	return len(p), nil
}

// write is one write of the system, during which b.mu, which is held, is not.
func (b *outbox) write(p []byte) (n int, err error) {
	if now := time.Now(); !b.closed && now.Sub(b.bounded) > writeWithin/2 {
		b.bounded = now
		_ = b.Conn.SetWriteDeadline(now.Add(writeWithin)) // a closed connection says so when it is written to
	}
	b.busy = true
	b.mu.Unlock()
	n, err = b.Conn.Write(p)
	b.mu.Lock()
	b.busy = false
	if err != nil {
		b.err, b.waiting = err, nil
		_ = b.Conn.Close() // it is of no more use
	}
	b.room.Broadcast()
	return n, err
}

func (b *outbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *outbox) run() {
	defer close(b.done)
	var empty []byte
	for range b.wake {
		b.yield()
		next, more := b.send(empty)
		if !more {
			return
		}
		if empty = next[:0]; cap(next) > outboxKept {
			empty = nil
		}
	}
}

// send writes what waits, and gives its buffer back; empty takes its place meanwhile. more: something may come after
// it.
func (b *outbox) send(empty []byte) (sent []byte, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy { // a large write is under way; what came after it stays behind it
		b.room.Wait()
	}
	sent, b.waiting = b.waiting, empty
	b.room.Broadcast()
	if len(sent) > 0 {
		if _, err := b.write(sent); err != nil {
			return sent, false
		}
	}
	return sent, !b.closed || len(b.waiting) > 0
}

// yield lets whatever can run add to what waits.
func (b *outbox) yield() {
	if b.unyielding > 0 {
		b.unyielding--
		return
	}
	began := time.Now()
	runtime.Gosched()
	if time.Since(began) > yieldWithin {
		b.unyielding = unyieldingWrites
	}
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

// abandon closes the connection at once; what waits is lost.
func (b *outbox) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.waiting = true, nil
	_ = b.Conn.Close() // of no more use, whatever it says
	b.room.Broadcast()
	b.signal()
}
