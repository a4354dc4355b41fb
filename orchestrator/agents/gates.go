package agents

import (
	"context"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
)

// Gates is what the gates of a round of an agent look at. It is gathered and read once, by the first that is asked, and added to
// as calls are over: a thousand gates look at each call once, and not each at all of them. One goroutine adds to it, many may
// ask.
type Gates struct {
	// Round, Anew and Amended are that of which it was gathered: the round, how often the state had been computed anew
	// (machine.Ended), and the amendments in force. Terminal are the calls of machine.Ended that were looked at.
	Round, Anew, Terminal int
	Amended               []*machine.Amendment
	// Last is the record with which the last call was over.
	Last uint64
	// Waiting are those who wait until it was read, which is when there is a loop.
	Waiting []func()

	added []*addedCall // what is there stays
	sized int          // of those, whose bytes somebody has made room for

	mu    sync.Mutex // of what follows; nobody holds it while something is read
	loop  *Loop
	taken int // of added
}

// addedCall is a call that came to be over after the others were gathered.
type addedCall struct {
	Call
	size int64
	read func(context.Context, *Call) *fault.Error
}

// Begin hands over the loop with all that was gathered, which is nobody else's from then on.
func (g *Gates) Begin(l *Loop) { g.loop = l }

// Begun reports whether that was done.
func (g *Gates) Begun() bool { return g.loop != nil }

// Add adds a call that came to be over, and what reads its arguments and its value, which have so many bytes. counts says that
// it calls something for the agent; false that of such calls it is not told by their records which came first: then all is to
// be gathered anew.
func (g *Gates) Add(c Call, counts bool, size int64, read func(context.Context, *Call) *fault.Error) bool {
	if c.Seq != 0 && counts {
		if c.Seq <= g.Last {
			return false
		}
		g.Last = c.Seq
	}
	g.added = append(g.added, &addedCall{c, size, read})
	return true
}

// Now returns the gates with what was added so far, and how many bytes who asks them has to read.
func (g *Gates) Now() (now GatesNow, size int64) {
	for ; g.sized < len(g.added); g.sized++ {
		size += g.added[g.sized].size
	}
	return GatesNow{g, g.added}, size
}

// GatesNow are gates with what was added up to a moment; the zero value is of none.
type GatesNow struct {
	*Gates
	added []*addedCall
}

// Ask asks the loop something. The error is one that may not pass, or that of the answer.
func (g GatesNow) Ask(ctx context.Context, something func(*Loop) *fault.Error) *fault.Error {
	from, more := g.untaken()
	for i := range more {
		if c := &more[i]; c.read != nil {
			if err := c.read(ctx, &c.Call); err != nil {
				return err
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.loop.Rounds[g.Round]
	for ; g.taken < len(g.added); g.taken++ { // others may have taken some of them meanwhile
		of.Calls = append(of.Calls, more[g.taken-from].Call)
		*g.added[g.taken] = addedCall{} // what it came to is kept where it matters
	}
	return something(g.loop)
}

// untaken returns what was added and nobody has taken, from a place on, without what reads that which does not matter.
func (g GatesNow) untaken() (from int, more []addedCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.added[min(g.taken, len(g.added)):] {
		x := *c
		if !Matters(g.loop, g.Round, &x.Call) {
			x.read = nil
		}
		more = append(more, x)
	}
	return g.taken, more
}
