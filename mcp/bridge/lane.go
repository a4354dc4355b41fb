package bridge

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/mcp/session"
)

// Pauses between attempts to start a server again.
const (
	firstRestart = 250 * time.Millisecond
	lastRestart  = 30 * time.Second
)

// lane is a place for one connection to a server: it is made when it is first needed, and made again when it breaks.
type lane struct {
	up  *upstream
	own http.Header // of the one caller; nil where connections are shared

	busy int // calls under way; guarded by the pool

	mu         sync.Mutex
	session    *session.Session // nil: there is none
	connecting chan struct{}    // closed when an attempt to connect is over; nil: none is under way
	err        error            // of the last attempt
	closed     bool
}

// get returns the connection, and makes it where there is none. Errors are those of open, and the end of ctx.
func (l *lane) get(ctx context.Context) (*session.Session, error) {
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			return nil, errClosed
		case l.session != nil && l.session.Alive():
			s := l.session
			l.mu.Unlock()
			return s, nil
		case l.connecting == nil:
			l.connecting = make(chan struct{})
			over, own := l.connecting, l.own
			if own == nil {
				own = session.HeadersOf(ctx) // of whoever needs it first
			}
			l.up.spawn(func() { l.connect(over, own) })
		}
		wait := l.connecting
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		l.mu.Lock()
		err := l.err
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// connect makes one attempt, for all who wait for it.
func (l *lane) connect(over chan struct{}, own http.Header) {
	defer close(over)
	s, err := l.up.dial(own)
	l.mu.Lock()
	if l.closed && s != nil {
		defer s.Close()
		s, err = nil, errClosed
	}
	l.session, l.err, l.connecting = s, err, nil
	l.mu.Unlock()
	if s != nil {
		l.up.came()
		l.up.spawn(func() { l.attend(s) })
	}
}

// attend waits for the end of a connection, and where the server runs for everybody makes another.
func (l *lane) attend(s *session.Session) {
	<-s.Over()
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	l.up.went(s, closed)
	if !closed && !l.up.entry.Lazy() {
		l.restart()
	}
}

// restart connects again, as often as it takes.
func (l *lane) restart() {
	l.up.restarting(1)
	defer l.up.restarting(-1)
	for waits := backoff.Between(firstRestart, lastRestart); ; {
		if !backoff.Pause(l.up.ctx, waits.Next()) {
			return
		}
		_, err := l.get(l.up.ctx)
		if err == nil || l.up.ctx.Err() != nil || l.gone() {
			return
		}
		l.up.log.Warn("the MCP server can't be started again yet", "server", l.up.entry.Name, "error", err)
	}
}

func (l *lane) gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// close ends the lane with its connection.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	s := l.session
	l.mu.Unlock()
	if s != nil {
		s.Close()
	}
}
