package orchestrator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// stream is a shard of the ledger or a bucket: at most one message a subject, each written once.
type stream struct {
	w       *world
	name    string
	seq     uint64
	all     []*kv.Entry // in order
	bySubj  map[string]*kv.Entry
	ofRun   map[string][]*kv.Entry // of the ledger: the records of a generation of a run, by their prefix
	cursors []*simCursor
	full    time.Duration // no room until then
}

// answer is what the server says to a write.
type answer int

const (
	stored    answer = iota
	wrongLast        // 10071: a record is there, or the fence's isn't
	noRoom           // 10077: a record is there, or the stream is full
	unknown          // nobody said anything
)

func newStream(w *world, name string) *stream {
	return &stream{w: w, name: name, bySubj: map[string]*kv.Entry{}, ofRun: map[string][]*kv.Entry{}}
}

// create is what the server does with a create; the checks are made in its order.
func (s *stream) create(subject string, h nats.Header, body []byte, fence *kv.Fence) (answer, uint64) {
	there := s.bySubj[subject]
	switch {
	case fence == nil && there != nil && s.w.bug != overwrite:
		return wrongLast, there.Seq
	case fence != nil && (s.bySubj[fence.Subject] == nil || s.bySubj[fence.Subject].Seq != fence.Seq):
		return wrongLast, 0
	case s.w.now < s.full:
		s.w.stats["refused by a full store"]++
		return noRoom, 0
	case there != nil && s.w.bug != overwrite:
		return noRoom, 0
	}
	s.seq++
	e := &kv.Entry{Subject: subject, Seq: s.seq, Time: s.w.time(), Header: h, Data: body}
	s.all = append(s.all, e)
	s.bySubj[subject] = e
	s.ofRun[generationOf(subject)] = append(s.ofRun[generationOf(subject)], e)
	s.w.log("%s %d: %s %s", s.name, e.Seq, subject, clip(body))
	s.w.truths.written(s, e)
	for _, c := range s.cursors {
		c.kick()
	}
	return stored, s.seq
}

func clip(body []byte) string {
	if len(body) > 100 {
		return string(body[:100]) + "…"
	}
	return string(body)
}

// purge removes what lies below a sequence (0: everything) and matches.
func (s *stream) purge(below uint64, matches func(subject string) bool) {
	var gone []*kv.Entry
	s.all = slices.DeleteFunc(s.all, func(e *kv.Entry) bool {
		if below > 0 && e.Seq >= below || !matches(e.Subject) {
			return false
		}
		gone = append(gone, e)
		return true
	})
	s.purged(gone)
}

// purgeOne is purge for one subject, and looks at nothing else.
func (s *stream) purgeOne(below uint64, subject string) {
	e := s.bySubj[subject]
	if e == nil || below > 0 && e.Seq >= below {
		return
	}
	at, _ := s.from(e.Seq)
	s.all = slices.Delete(s.all, at, at+1)
	s.purged([]*kv.Entry{e})
}

// purged takes note of what is gone.
func (s *stream) purged(gone []*kv.Entry) {
	for _, e := range gone {
		if s.bySubj[e.Subject] == e {
			delete(s.bySubj, e.Subject)
		}
		of := generationOf(e.Subject)
		if s.ofRun[of] = slices.DeleteFunc(s.ofRun[of], func(x *kv.Entry) bool { return x == e }); len(s.ofRun[of]) == 0 {
			delete(s.ofRun, of)
		}
	}
	for _, e := range gone {
		s.w.truths.purged(s, e)
	}
}

// from returns where in all the entry of a sequence lies, or the next one does.
func (s *stream) from(seq uint64) (at int, there bool) {
	return slices.BinarySearchFunc(s.all, seq, func(e *kv.Entry, seq uint64) int { return cmp.Compare(e.Seq, seq) })
}

// generationOf returns what a record's subject begins with, of which all records of the generation of a run are but its plan.
func generationOf(subject string) string {
	end := 0
	for range generationTokens {
		n := strings.IndexByte(subject[end:], '.')
		if n < 0 {
			return ""
		}
		end += n + 1
	}
	return subject[:end]
}

var generationTokens = strings.Count(subjects.GenerationFilter(subjects.NewRun("t", "r"), 1, 1), ".")

func (w *world) ledger(shard int) *stream { return w.shards[shard] }

// streamOf returns the stream of a record's subject.
func (w *world) streamOf(subject string) *stream {
	name := subjects.StreamOf(subject)
	if s := w.buckets[name]; s != nil {
		return s
	}
	for i := range w.shards {
		if name == subjects.LedgerStream(i) {
			return w.shards[i]
		}
	}
	panic("no stream of " + subject)
}

// simCursor reads partitions of a ledger shard for one owner. What it has sent arrives in its order, also after it was
// purged; what was purged before it came there is never seen.
type simCursor struct {
	p         *process
	s         *stream
	filters   []string // none: all
	next      uint64
	target    uint64
	each      func(kv.Entry)
	late      bool // it lags behind with what comes next
	caughtUp  func(uint64)
	lost      func(error)
	caught    bool
	stopped   bool
	underWay  bool
	inbox     []func() // on the way to the process
	handed    uint64   // what the process got all of
	lastThere time.Duration
}

func (c *simCursor) kick() {
	if c.underWay || c.stopped {
		return
	}
	c.underWay = true
	w := c.p.w
	lag := w.upTo(300 * time.Microsecond)
	if c.late || !w.healed && w.chance(w.knobs.slow*3) {
		c.late = false
		lag += w.upTo(w.knobs.lag)
		w.stats["a cursor lagged"]++
	}
	w.at(lag, c.send)
}

func (c *simCursor) send() {
	c.underWay = false
	if c.stopped || c.p.dead {
		return
	}
	at, _ := c.s.from(c.next)
	for _, e := range c.s.all[at:] {
		if len(c.filters) == 0 || slices.ContainsFunc(c.filters, func(f string) bool { return strings.HasPrefix(e.Subject, f) }) {
			if entry := c.p.w.spoil(*e); entry != nil {
				c.deliver(func() { c.each(*entry) })
			}
		}
	}
	c.next = c.s.seq + 1
	end := c.s.seq
	c.deliver(func() { c.handed = end })
	if !c.caught {
		c.caught = true
		target := c.target
		c.deliver(func() { c.caughtUp(target) })
	}
}

func (c *simCursor) deliver(do func()) {
	w := c.p.w
	c.inbox = append(c.inbox, do)
	c.lastThere = max(c.lastThere, w.now+w.latency())
	w.at(c.lastThere-w.now, func() {
		c.p.enter(func() {
			first := c.inbox[0]
			c.inbox = c.inbox[1:]
			if !c.stopped {
				first()
			}
		})
	})
}

// simFollowing is a cursor as its owner sees it.
type simFollowing struct{ c *simCursor }

func (f simFollowing) Stop() { f.c.stop() }

// Keep takes effect some time later: another consumer has to be made.
func (f simFollowing) Keep(partitions []int) {
	f.c.p.after(f.c.p.w.latency(), func() { f.c.filter(partitions) })
}

func (f simFollowing) Position() uint64 {
	if f.c.p.w.bug == markUnread {
		return f.c.s.seq
	}
	return f.c.handed
}

func (f simFollowing) Check() {}

func (f simFollowing) Life() string { return f.c.s.life() }

// filter lets the cursor read these partitions alone.
func (c *simCursor) filter(partitions []int) {
	c.filters = nil
	for _, p := range partitions {
		c.filters = append(c.filters, strings.TrimSuffix(subjects.PartitionFilter(p, len(c.p.w.shards)), ">"))
	}
}

func (c *simCursor) stop() {
	c.stopped = true
	c.s.cursors = slices.DeleteFunc(c.s.cursors, func(x *simCursor) bool { return x == c })
}

// breaks is what the owner hears when it can't be told any more whether what it has read is what the ledger holds.
func (c *simCursor) breaks(err error) {
	c.p.after(c.p.w.latency(), func() {
		if !c.stopped {
			c.stop()
			c.lost(err)
		}
	})
}
