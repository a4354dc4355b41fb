package bridge

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/session"
)

var errClosed = fault.New(fault.ToolFailed, "the connection to the MCP server is being closed")

// pool are the connections that some calls share: those of one tenant, of one credential, or all.
type pool struct {
	lanes []*lane
	room  chan struct{} // one for each call that may be under way

	mu   sync.Mutex
	used time.Time // last; guarded by upstream.mu
}

func (u *upstream) newPool(own http.Header) *pool {
	p := &pool{room: make(chan struct{}, u.entry.Calls*u.entry.Instances)}
	for range u.entry.Instances {
		p.lanes = append(p.lanes, &lane{up: u, own: own})
	}
	return p
}

// take waits for room and returns a connection with fewer calls than any other; release gives the room back.
func (p *pool) take(ctx context.Context) (s *session.Session, release func(), err error) {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	p.mu.Lock()
	l := slices.MinFunc(p.lanes, func(a, b *lane) int { return a.busy - b.busy })
	l.busy++
	p.mu.Unlock()
	release = func() {
		p.mu.Lock()
		l.busy--
		p.mu.Unlock()
		<-p.room
	}
	if s, err = l.get(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return s, release, nil
}

// idle reports whether no call is under way.
func (p *pool) idle() bool { return len(p.room) == 0 }

func (p *pool) close() {
	for _, l := range p.lanes {
		l.close()
	}
}

// poolKey says whose calls go by one pool.
type poolKey struct {
	tenant     string
	credential [sha256.Size]byte
}

// Bounds of the pools of one server that are of single tenants or credentials.
const (
	mostPools = 256
	idleAfter = 10 * time.Minute
)

// pool returns the pool for calls of a tenant with headers of their own.
func (u *upstream) pool(tenant string, own http.Header) *pool {
	key := poolKey{tenant: u.entry.TenantKey(tenant)}
	if u.entry.Lazy() && !u.modern.Load() {
		key = poolKey{tenant, credential(own)}
	} else {
		own = u.entry.Static() // or, of a lazy server, what each request brings
	}
	u.mu.Lock()
	p := u.pools[key]
	if p == nil {
		if p = u.unowned; p != nil {
			u.unowned = nil // what was begun with becomes the first tenant's
		} else {
			p = u.newPool(own)
		}
		u.pools[key] = p
	}
	p.used = time.Now()
	old := u.excess()
	u.mu.Unlock()
	for _, one := range old {
		u.spawn(one.close)
	}
	return p
}

// excess takes the pools out that are used least where there are too many, and those that have not been used for a
// while. A server that runs for everybody keeps its one. u.mu is held.
func (u *upstream) excess() (out []*pool) {
	for key, p := range u.pools {
		if key != (poolKey{}) && p.idle() && time.Since(p.used) > idleAfter {
			out = append(out, p)
			delete(u.pools, key)
		}
	}
	for len(u.pools) > mostPools {
		var oldest poolKey
		var found *pool
		for key, p := range u.pools {
			if p.idle() && (found == nil || p.used.Before(found.used)) {
				oldest, found = key, p
			}
		}
		if found == nil {
			break
		}
		out = append(out, found)
		delete(u.pools, oldest)
	}
	return out
}

// discard closes a pool whose server refused its credentials or knows its session no longer.
func (u *upstream) discard(p *pool) {
	u.mu.Lock()
	for key, one := range u.pools {
		if one == p {
			delete(u.pools, key)
		}
	}
	u.mu.Unlock()
	u.spawn(p.close)
}

// credential tells the headers of one caller from those of others.
func credential(own http.Header) (sum [sha256.Size]byte) {
	h := sha256.New()
	names := make([]string, 0, len(own))
	for name := range own {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h.Write([]byte(name + "\x00" + own.Get(name) + "\x00"))
	}
	h.Sum(sum[:0])
	return sum
}
