package orchestrator

import (
	"sync/atomic"
	"time"
)

// share is how many calls of one run may be out at a tool. The right number depends on how fast the workers are, which
// nobody declares, so it is found from what can be seen of each call of a run that is held back: the time from dispatch
// to record, less the execution itself, is what the call waited. While that is short the share grows, at first by one
// for each call, so that it doubles in a round trip; once calls do wait it shrinks by a quarter, and from then on it
// feels its way, a sixteenth at a time.
type share struct {
	size   int
	least  int
	most   int
	steady bool // it has been too large once
	seen   int  // calls measured since it was last judged
	late   int  // of them, those that waited too long
}

const (
	// shortWait is the wait that is never too long, however quick the tool.
	shortWait = time.Millisecond / 2
	// firstShare is a share's size at first: what a slow tool is to have at once, whoever is beside. That a tool is
	// quick shows after some hundred calls.
	firstShare = 128
	// leastAlone is what the share of a run that is alone doesn't go below: with fewer calls out, a quick tool would be
	// idle for want of work. leastBeside is the same for a run beside others.
	leastAlone  = 128
	leastBeside = 16
)

// bound sets what a share may be.
func (s *share) bound(least, most int) {
	s.least, s.most = least, most
	s.resize(s.size)
}

func (s *share) resize(to int) { s.size = max(min(to, s.most), s.least) }

// measured learns from one call of a run that is held back: how long it was under way, and how much of that was its
// execution.
func (s *share) measured(underWay, execution time.Duration) {
	wait, enough := underWay-execution, max(shortWait, execution/4)
	s.seen++
	if wait > 2*enough {
		s.late++
	} else if !s.steady && wait <= enough {
		s.resize(s.size + 1)
	}
	if s.seen < s.size {
		return
	}
	switch {
	case s.late > s.seen/2:
		s.steady = true
		s.resize(s.size - max(s.size/4, 1))
	case s.steady && s.late <= s.seen/8:
		s.resize(s.size + max(s.size/16, 1))
	}
	s.seen, s.late = 0, 0
}

// neighbours knows whether one run has the process to itself, whatever tools it calls: what runs of different tools
// share is the machine. All loops of a process have one, and none waits for it.
type neighbours struct {
	last  atomic.Pointer[run] // whose call was decided last, unless it is over
	calls atomic.Int64        // to be decided until one run is alone; none above 0: it is
}

// neighbourCalls is how many calls of one run in a row make it one that is alone.
const neighbourCalls = 1024

// decided notes whose call was decided.
func (n *neighbours) decided(r *run) {
	switch last := n.last.Load(); {
	case last == r:
		if n.calls.Load() > 0 {
			n.calls.Add(-1)
		}
		return
	case last != nil: // which goes on: it is not merely the one before
		n.calls.Store(neighbourCalls)
	}
	n.last.Store(r)
}

// over notes that a run has nothing out any more.
func (n *neighbours) over(r *run) { n.last.CompareAndSwap(r, nil) }

// alone reports whether a run that has much to do has the process to itself.
func (n *neighbours) alone() bool { return n.calls.Load() <= 0 }

// A window counts calls. What calls cost the server, its disk and the workers' memory is their bytes, so those that are
// out are counted too, over all tools: of each run, and of each tenant. Where a bound is reached, only a call of few
// bytes goes still; the others wait in their lanes until something of theirs is decided.

// bounds are for the arguments that are out, in bytes. A call goes while less than a bound is out, so that one which is
// larger than the bound itself goes too, and what is out together may be more by one call.
type bounds struct{ run, tenant, light int64 }

// shipped are the bounds of a real orchestrator. 16 MiB of a run keep a round trip of a server that writes 100 MB/s
// under a fifth of a second, and are 64 calls of the largest arguments that travel in a message. 64 MiB of a tenant are
// half of the memory that large values may take (largeRoom), so no tenant takes all of it. Calls of a KiB wait for no
// bytes: 10,000 of them are less than one run's bound.
var shipped = bounds{run: 16 << 20, tenant: 64 << 20, light: 1 << 10}

// burden is the bytes that a run, or a tenant, has out.
type burden struct {
	of      string // whose, for people
	bytes   int64
	most    int64
	waiting fifo[*lane] // refused for bytes; there are some only while the bound is reached
	lanes   int         // that refer to it
	stake   stake       // of a tenant, in what the loops of the process share
}

func (b *burden) full() bool { return b != nil && b.stake.full(b.bytes, b.most) }

// add counts bytes that went, or were decided.
func (b *burden) add(bytes int64) {
	b.bytes += bytes
	b.stake.count(bytes)
	b.claim()
}

func (b *burden) claim() { b.stake.claim(b.bytes > 0 || b.waiting.len() > 0, b.waiting.len() > 0) }

// overfull returns the burden whose bound is reached, that of the run before that of the tenant; nil: none is.
func (x *lane) overfull() *burden {
	switch {
	case x.ofRun.full():
		return x.ofRun
	case x.ofTenant.full():
		return x.ofTenant
	}
	return nil
}

// stopped reports whether the first call of a lane, which has some, may not go now. Where that is for bytes, the lane
// waits for them.
func (x *lane) stopped() bool {
	if x.full() {
		return true
	}
	b := x.overfull()
	if b == nil || x.weight(x.calls.front()) <= x.light {
		return false
	}
	if !x.awaitsBytes {
		x.awaitsBytes = true
		b.waiting.push(x)
		b.claim()
	}
	return true
}

func (b *burden) wake(send func(*window)) {
	for n := b.waiting.len(); n > 0 && !b.full(); n-- {
		x := b.waiting.pop()
		b.claim()
		x.awaitsBytes = false
		x.window.turn(x)
		send(x.window)
	}
}
