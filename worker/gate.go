package worker

import (
	"sync"

	"github.com/stepjet/stepjet/kv"
)

// Gate keeps a tool's steps in their queue while this worker can do nothing with them: what the tool needs is away, or
// nobody has agreed yet to what it became. Other workers of the tool may take them meanwhile; no attempt is spent and
// no lease held. The zero Gate is open. A gate may be of several tools of one worker, and be opened and closed at any time, before
// Run too; it is safe for use by several goroutines.
//
// What had been handed out when a gate closed is still executed.
type Gate struct {
	mu     sync.Mutex
	closed bool
	why    string
	pulls  map[string]pull // by tool
}

// pull is how a tool's steps are taken, and how many at a time.
type pull struct {
	*kv.Puller
	slots int
}

// Open has steps taken again.
func (g *Gate) Open() { g.set(false, "") }

// Close has no more steps taken.
func (g *Gate) Close() { g.set(true, "") }

// CloseFor has no more steps taken, and says why to whoever looks at a run that waits for them: a sentence without a
// capital or a full stop, such as "nobody has agreed to its new definition". It may be called again for another reason.
func (g *Gate) CloseFor(why string) { g.set(true, why) }

// Why returns the reason that a closed gate was given; empty where there is none, or it is open.
func (g *Gate) Why() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// Closed reports whether no steps are taken.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

func (g *Gate) set(closed bool, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.why = why
	if g.closed == closed {
		return
	}
	g.closed = closed
	for _, p := range g.pulls {
		p.apply(closed)
		if closed {
			p.Anew() // what was asked for and has not come is not sent any more
		}
	}
}

// attend takes a tool's new puller under the gate. A nil gate is none.
func (g *Gate) attend(tool string, p *kv.Puller, slots int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pulls == nil {
		g.pulls = map[string]pull{}
	}
	g.pulls[tool] = pull{p, slots}
	g.pulls[tool].apply(g.closed)
}

func (p pull) apply(closed bool) {
	if closed {
		p.Limit(0)
	} else {
		p.Limit(p.slots)
	}
}
