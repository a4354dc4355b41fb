package orchestrator

import (
	"slices"
	"sync"
	"sync/atomic"
)

// pool is room that the loops of a process share: that of one tool in calls, or of one tenant in bytes. Together they
// have out what one would have. A loop that wants some is never refused its portion, an equal part for each that wants
// any; so what is out together may be more for a moment after another began to, until the first have had as much
// decided. Beyond its portion a loop takes what is free.
//
// Nothing waits for a lock: a call that goes, and one that is decided, change a number each. Who holds calls back for
// want of room has its portion out, and looks again when some of that is decided; so that room which another loop
// leaves isn't idle until then, the one that leaves it tells.
type pool struct {
	out     atomic.Int64
	claims  atomic.Int64 // stakes of which something is out or waits
	waiting atomic.Int64 // stakes of which something waits

	mu     sync.Mutex // of what follows
	stakes []*stake
}

// stake is the part of one loop in a pool. That of the only loop of a process has none, and counts nothing.
type stake struct {
	pool   *pool
	wake   func()      // lets the loop look for room again; called from anywhere
	claims bool        // something is out or waits
	waits  atomic.Bool // something waits
	told   atomic.Bool // that there is room, and it has not looked yet
}

// pools are those of a process, by tool or by tenant; nil where there is one loop.
type pools struct {
	mu     sync.Mutex
	byName map[string]*pool
}

// join lets a stake take part. post runs what it is given on the loop of the stake, look is what looks for room there.
func (ps *pools) join(name string, s *stake, post func(func()), look func()) {
	if ps == nil {
		return
	}
	s.wake = func() {
		post(func() {
			s.told.Store(false)
			look()
		})
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if s.pool = ps.byName[name]; s.pool == nil {
		s.pool = &pool{}
		ps.byName[name] = s.pool
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.stakes = append(s.pool.stakes, s)
}

// quit takes out a stake of which nothing is out any more.
func (ps *pools) quit(name string, s *stake) {
	if ps == nil {
		return
	}
	s.claim(false, false)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stakes = slices.DeleteFunc(p.stakes, func(x *stake) bool { return x == s })
	if len(p.stakes) == 0 {
		delete(ps.byName, name)
	}
}

// full reports whether a loop that has so much out may have no more of what is bounded by most.
func (s *stake) full(own, most int64) bool {
	if s.pool == nil {
		return own >= most
	}
	return s.pool.out.Load() >= most && own >= max(most/max(s.pool.claims.Load(), 1), 1)
}

// count notes what went, or was decided.
func (s *stake) count(n int64) {
	if s.pool != nil {
		s.pool.out.Add(n)
	}
}

// together returns what the loops have out; own where there is one.
func (s *stake) together(own int64) int64 {
	if s.pool == nil {
		return own
	}
	return s.pool.out.Load()
}

// claim lets the pool know what the loop wants of it, if that has changed.
func (s *stake) claim(claims, waits bool) {
	if s.pool == nil {
		return
	}
	if claims != s.claims {
		s.claims = claims
		s.pool.claims.Add(sign(claims))
	}
	if waits != s.waits.Load() {
		s.waits.Store(waits)
		s.pool.waiting.Add(sign(waits))
	}
}

func sign(plus bool) int64 {
	if plus {
		return 1
	}
	return -1
}

// leave tells other loops of room that this one has left and doesn't need.
func (s *stake) leave() {
	if s.pool != nil && !s.waits.Load() && s.pool.waiting.Load() > 0 {
		s.pool.tell(s)
	}
}

func (p *pool) tell(from *stake) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stakes {
		if s != from && s.waits.Load() && s.told.CompareAndSwap(false, true) {
			s.wake()
		}
	}
}
