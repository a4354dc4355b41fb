package bridge

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
)

// upstream is a server while the bridge runs: its connections, and the tools that go by them.
type upstream struct {
	entry  *servers.Entry
	log    *slog.Logger
	ctx    context.Context // ends with the bridge
	spawn  func(func())    // starts a goroutine that the bridge's end waits for
	modern atomic.Bool     // a lazy server keeps no state for its callers
	tools  []*bridged
	nudge  chan struct{} // its list may have changed

	// compare is asked of each new connection's tools; it holds those that are not what was agreed to.
	compare func(context.Context, *session.Session) error

	mu       sync.Mutex
	pools    map[poolKey]*pool
	unowned  *pool // made to begin with, and no tenant's yet
	alive    int   // connections
	restarts int   // that are to be made again
}

func newUpstream(ctx context.Context, e *servers.Entry, log *slog.Logger, spawn func(func())) *upstream {
	return &upstream{
		entry: e, log: log, ctx: ctx, spawn: spawn, pools: map[poolKey]*pool{}, nudge: make(chan struct{}, 1),
	}
}

// dial makes a connection, whose tools are compared with what was agreed to before anything is called by it.
func (u *upstream) dial(own http.Header) (*session.Session, error) {
	changed := u.changed
	if u.entry.Lazy() {
		changed = nil // whose credentials would its stream of changes have?
	}
	s, err := session.Open(u.ctx, u.entry, own, changed)
	if err != nil {
		return nil, err
	}
	if u.entry.Lazy() {
		u.modern.CompareAndSwap(false, s.Modern)
		return s, nil
	}
	if u.compare != nil {
		if err := u.compare(u.ctx, s); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// changed notes that the server's list may have changed.
func (u *upstream) changed() {
	select {
	case u.nudge <- struct{}{}:
	default:
	}
}

// follow looks at the server's list again whenever it changes, until the bridge ends.
func (u *upstream) follow() {
	gather(u.ctx, u.nudge, func() bool {
		s := u.any()
		if s == nil {
			return true // the next connection is compared before it is used
		}
		err := u.compare(u.ctx, s)
		if err != nil && u.ctx.Err() == nil {
			u.log.Warn("the changed tools of an MCP server can't be listed; that is tried again", "server", u.entry.Name, "error", err)
		}
		return err == nil
	})
}

// any returns a connection that is there, or nil.
func (u *upstream) any() *session.Session {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.all() {
		for _, l := range p.lanes {
			l.mu.Lock()
			s := l.session
			l.mu.Unlock()
			if s != nil && s.Alive() {
				return s
			}
		}
	}
	return nil
}

// all returns every pool. u.mu is held.
func (u *upstream) all() []*pool {
	list := make([]*pool, 0, len(u.pools)+1)
	for _, p := range u.pools {
		list = append(list, p)
	}
	if u.unowned != nil {
		list = append(list, u.unowned)
	}
	return list
}

// begin connects for the first time. Whoever calls first goes on with the connection.
func (u *upstream) begin() (*session.Session, error) {
	u.mu.Lock()
	if u.unowned == nil {
		u.unowned = u.newPool(u.entry.Static())
	}
	p := u.unowned
	u.mu.Unlock()
	return p.lanes[0].get(u.ctx)
}

// retryLater goes on with what begin could not do.
func (u *upstream) retryLater() {
	u.mu.Lock()
	p := u.unowned
	u.mu.Unlock()
	u.restarting(1) // before anybody pulls
	u.spawn(func() {
		defer u.restarting(-1)
		p.lanes[0].restart()
	})
}

func (u *upstream) came() {
	u.mu.Lock()
	u.alive++
	u.mu.Unlock()
	u.settle()
}

// went notes the end of a connection, and says so where it was not the bridge that ended it.
func (u *upstream) went(s *session.Session, planned bool) {
	u.mu.Lock()
	u.alive--
	u.mu.Unlock()
	if planned || u.ctx.Err() != nil {
		return
	}
	u.log.Warn("an MCP server is gone; it is started again", "server", u.entry.Name, "reason", s.Why(u.ctx, nil))
}

func (u *upstream) restarting(n int) {
	u.mu.Lock()
	u.restarts += n
	u.mu.Unlock()
	u.settle()
}

// settle takes steps of the server's tools, or leaves them in their queues while it is away.
func (u *upstream) settle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	away := u.restarts > 0 && u.alive == 0
	for _, t := range u.tools {
		switch why := t.held(); {
		case why != "":
			t.gate.CloseFor(why)
		case away:
			t.gate.CloseFor("its MCP server " + u.entry.Name + " is away, and is tried again and again")
		default:
			t.gate.Open()
		}
	}
}

// tidy closes what has not been used for a while, until the bridge ends.
func (u *upstream) tidy() {
	for backoff.Pause(u.ctx, idleAfter/10) {
		u.mu.Lock()
		old := u.excess()
		u.mu.Unlock()
		for _, p := range old {
			u.spawn(p.close)
		}
	}
}

// close ends all connections.
func (u *upstream) close() {
	u.mu.Lock()
	all := u.all()
	u.mu.Unlock()
	for _, p := range all {
		p.close()
	}
}
