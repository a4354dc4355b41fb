package kv

import (
	"errors"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/subjects"
)

// A server that flushes before it acknowledges flushes one message after the other. An atomic batch is flushed once, but
// it costs as much as a good number of messages, because the server stores it twice. So few creates of a stream go by
// themselves, as they come. Where more come than the stream can flush, they wait for those and go as one batch; what comes
// while that is on its way is the next. Nobody waits for a time, or for others to come.
//
// A batch is written as a whole or not at all. One that was refused, or not answered, says nothing about its members: each
// is taken for unknown, and goes on by itself (settle).

// Bounds of a group.
const (
	// few creates of a stream are on their way by themselves at most, and a batch has at least as many. A batch takes as
	// long as 10 single messages on a slow disk, 25 on a quick one.
	few = 24
	// most is how many messages a batch has at most. The server takes 1,000, unless it is configured to take fewer.
	most = 250
	// large is the body, in bytes, from which on a message goes by itself: writing it is what takes the time.
	large = 32 << 10
)

const (
	headerBatch       = "Nats-Batch-Id"
	headerBatchNumber = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

// errApart is what each member hears of a batch that was not written as a whole.
var errApart = errors.New("JetStream did not store the batch that the message was in")

// group is the creates of one stream that takes atomic batches.
type group struct {
	pub  *publisher
	name string // begins the ids of its batches, which no other batch of the stream may have

	mu      sync.Mutex
	line    queue // what has not been sent
	alone   int   // on their way by themselves
	batched int   // on their way in a batch; there is one at most
	batches uint64
	never   bool // the stream has stopped taking batches
	sending bool
}

func newGroup(p *publisher) *group { return &group{pub: p, name: nuid.Next() + "-"} }

// groupUp lets creates of a bucket go together if its stream says so: whoever made it for a server that flushes before it
// acknowledges allowed batches. With copies, the log that they are made by is flushed for many messages at once as it is.
func (s *Store) groupUp(bucket string, cfg jetstream.StreamConfig) {
	if !cfg.AllowAtomicPublish || cfg.Replicas > 1 || s.groups[bucket] != nil {
		return
	}
	if s.groups == nil {
		s.groups = map[string]*group{}
	}
	s.groups[bucket] = newGroup(s.pub)
}

// send publishes a create now or in its turn.
func (g *group) send(m *nats.Msg, to receiver) {
	if len(m.Data) > large {
		g.pub.send(m, to)
		return
	}
	g.mu.Lock()
	if g.line.len() == 0 && g.room() {
		g.alone++
		g.mu.Unlock()
		g.pub.send(m, &single{g, to})
		return
	}
	g.line.push(queued{m, to})
	g.mu.Unlock()
	g.forward()
}

// room tells whether one more may go by itself. g.mu is held.
func (g *group) room() bool { return g.never || g.batched == 0 && g.alone < few }

// forward sends what may go. One goroutine does so at a time; whoever finds another at it leaves it to that one, which
// looks again before it ends.
func (g *group) forward() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sending {
		return
	}
	g.sending = true
	for next := g.take(); len(next) > 0; next = g.take() {
		g.mu.Unlock()
		if len(next) == 1 {
			g.pub.send(next[0].msg, &single{g, next[0].to})
		} else {
			(&batch{g: g, members: next}).send()
		}
		g.mu.Lock()
	}
	g.sending = false
}

// take gives what is to be sent next: nothing, one create, or those of a batch. g.mu is held.
func (g *group) take() []queued {
	n := g.line.len()
	switch {
	case n == 0 || g.batched > 0:
		return nil
	case n >= few && !g.never:
		if g.alone > 0 { // they are being flushed: meanwhile the batch grows
			return nil
		}
		g.batched = min(n, most)
		return g.line.first(g.batched)
	case g.room():
		g.alone++
		return g.line.first(1)
	}
	return nil
}

// waiting gives how many creates are not on their way, or on their way as members of a batch.
func (g *group) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.len() + max(g.batched-1, 0)
}

// single is a create that goes by itself.
type single struct {
	g  *group
	to receiver
}

func (x *single) acked(a ack) {
	x.g.mu.Lock()
	x.g.alone--
	more := x.g.line.len() > 0
	x.g.mu.Unlock()
	if more {
		x.g.forward()
	}
	x.to.acked(a)
}

// batch is creates that are written together.
type batch struct {
	g       *group
	members []queued
}

// send publishes the members. The server answers the last one, or where that doesn't arrive nobody.
func (b *batch) send() {
	b.g.mu.Lock()
	b.g.batches++
	id := []string{b.g.name + strconv.FormatUint(b.g.batches, 36)}
	b.g.mu.Unlock()
	last := len(b.members) - 1
	for i, x := range b.members {
		h := x.msg.Header
		h[headerBatch] = id
		h[headerBatchNumber] = []string{strconv.Itoa(i + 1)}
		if i == last {
			h[headerBatchCommit] = []string{"1"}
			b.g.pub.send(x.msg, b)
		} else if err := b.g.pub.nc.PublishMsg(x.msg); err != nil { // the server forgets what has come so far
			b.acked(ack{err: err})
			return
		}
	}
}

// acked tells each member what became of it.
func (b *batch) acked(a ack) {
	b.g.mu.Lock()
	b.g.batched = 0
	b.g.never = b.g.never || a.code == codeNoBatches
	b.g.mu.Unlock()
	b.g.forward()
	// A server that knows nothing of batches stores the members one by one and answers the last.
	whole := a.err == nil && a.code == 0 && !a.duplicate && a.count == len(b.members)
	for i, x := range b.members {
		if whole {
			x.to.acked(ack{seq: a.seq - uint64(len(b.members)-1-i)})
			continue
		}
		delete(x.msg.Header, headerBatch)
		delete(x.msg.Header, headerBatchNumber)
		delete(x.msg.Header, headerBatchCommit)
		x.to.acked(ack{err: errApart})
	}
}

// groupOf gives the group that a create goes in; nil where it goes by itself.
func (s *Store) groupOf(subject string) *group {
	if len(s.groups) == 0 {
		return nil
	}
	return s.groups[subjects.StoredIn(subject, s.shards)]
}
