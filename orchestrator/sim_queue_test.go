package orchestrator

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// queue is a step stream with a durable consumer for each tool.
type queue struct {
	w         *world
	seq       uint64
	all       []*message // in order
	ids       map[string]time.Duration
	consumers map[string]*consumer
	full      time.Duration
}

// message is one attempt in the stream: dispatched, leased or scheduled.
type message struct {
	seq       uint64
	stored    time.Duration
	subject   string
	attempt   subjects.Attempt
	header    nats.Header
	body      []byte
	scheduled bool
	leased    bool
	until     time.Duration
	delivered int
}

// consumer hands a tool's steps out, as many at a time as its limit says.
type consumer struct {
	tool    string
	limit   int
	ackWait time.Duration
	leases  map[uint64]time.Duration // by sequence, until when; those of purged messages too
	given   uint64
	kicked  bool
}

// dedupeWindow is how long the stream knows a message id.
const dedupeWindow = 2 * time.Minute

func newQueue(w *world) *queue {
	return &queue{w: w, ids: map[string]time.Duration{}, consumers: map[string]*consumer{}}
}

// dispatch is what the server does with the publish of an attempt.
func (q *queue) dispatch(d *kv.Dispatch, by *process) (answer, uint64) {
	id := d.Attempt.MessageID()
	if d.Repair > 0 {
		id = d.Attempt.RepairID(d.Repair)
	}
	if at, known := q.ids[id]; known && q.w.now-at < dedupeWindow {
		q.w.stats["dispatch refused by its message id"]++
		return stored, 0
	}
	if d.Repair > 0 && q.find(d.Attempt) != nil {
		return wrongLast, 0
	}
	if q.w.now < q.full {
		q.w.stats["refused by a full store"]++
		return noRoom, 0
	}
	q.ids[id] = q.w.now
	q.seq++
	m := &message{seq: q.seq, stored: q.w.now, subject: subjects.Step(d.Attempt, d.Shard), attempt: d.Attempt, header: d.Header, body: d.Body}
	if !d.At.IsZero() {
		m.scheduled, m.subject = true, subjects.Scheduled(d.Attempt, d.Shard)
		q.w.at(max(d.At.Sub(q.w.time()), 0), func() { q.fire(m, d.Shard) })
	}
	q.all = append(q.all, m)
	q.w.log("STEPS %d: %s repair %d by %s", m.seq, m.subject, d.Repair, by.name)
	q.w.truths.dispatched(m, later(q.w.time(), d.At), d.Repair, by)
	q.kick(d.Attempt.Tool)
	return stored, q.seq
}

func (q *queue) find(a subjects.Attempt) *message {
	for _, m := range q.all {
		if m.attempt == a {
			return m
		}
	}
	return nil
}

// fire turns a scheduled message into one to be taken.
func (q *queue) fire(m *message, shard int) {
	if !slices.Contains(q.all, m) {
		return
	}
	q.remove(m)
	q.seq++
	now := &message{seq: q.seq, stored: m.stored, subject: subjects.Step(m.attempt, shard), attempt: m.attempt, header: m.header, body: m.body}
	q.all = append(q.all, now)
	q.w.log("STEPS %d: %s fires", now.seq, now.subject)
	q.kick(m.attempt.Tool)
}

func (q *queue) remove(m *message) {
	q.all = slices.DeleteFunc(q.all, func(x *message) bool { return x == m })
}

// purge removes what lies on a subject, or under a prefix. Slots of what is leased come free at once or when the lease
// ends.
func (q *queue) purge(filter string) {
	prefix, wild := strings.CutSuffix(filter, ">")
	q.all = slices.DeleteFunc(q.all, func(m *message) bool {
		if m.subject != filter && !(wild && strings.HasPrefix(m.subject, prefix)) {
			return false
		}
		q.w.log("STEPS: %s purged", m.subject)
		if c := q.consumers[m.attempt.Tool]; m.leased && q.w.chance(2) {
			delete(c.leases, m.seq)
		} else if m.leased {
			q.w.at(m.until-q.w.now, func() { q.expire(m) })
		}
		return true
	})
	for _, tool := range slices.Concat(simTools, q.w.agentTools) {
		q.kick(tool)
	}
}

// withdraw takes back, for an owner, what lies on a subject or under a prefix and was given to no worker.
func (q *queue) withdraw(filter string) {
	prefix, wild := strings.CutSuffix(filter, ">")
	var gone []*message
	for _, m := range q.all {
		switch {
		case m.subject != filter && !(wild && strings.HasPrefix(m.subject, prefix)):
		case m.delivered > 0:
			q.w.stats["a leased step was left to its worker"]++
		default:
			q.w.truths.withdrawn(m.attempt)
			gone = append(gone, m)
		}
	}
	for _, m := range gone {
		q.w.log("STEPS: %s withdrawn", m.subject)
		q.remove(m)
	}
}

func (q *queue) pending(partition int) map[string]bool {
	ids := map[string]bool{}
	for _, m := range q.all {
		if m.attempt.Partition() == partition {
			ids[m.attempt.MessageID()] = true
		}
	}
	return ids
}

// kick lets a tool's consumer look for something to hand out.
func (q *queue) kick(tool string) {
	c := q.consumers[tool]
	if c == nil || c.kicked {
		return
	}
	c.kicked = true
	q.w.at(q.w.upTo(200*time.Microsecond), func() {
		c.kicked = false
		q.hand(c)
	})
}

func (q *queue) hand(c *consumer) {
	for _, m := range q.all {
		if len(c.leases) >= c.limit && (q.w.bug != leaseMore || len(c.leases) > c.limit) {
			return
		}
		if m.attempt.Tool != c.tool || m.scheduled || m.leased {
			continue
		}
		h := q.w.freeHand()
		if h == nil {
			return
		}
		m.leased, m.until = true, q.w.now+c.ackWait
		m.delivered++
		if m.delivered > 1 {
			q.w.stats["redelivery"]++
		}
		c.leases[m.seq] = m.until
		c.given = max(c.given, m.seq)
		q.w.checkI4(c)
		q.w.at(c.ackWait, func() { q.expire(m) })
		q.w.log("STEPS %d: %s to %s, delivery %d", m.seq, m.subject, h.name, m.delivered)
		h.take(m, m.delivered)
	}
}

// expire ends a lease that was not renewed.
func (q *queue) expire(m *message) {
	c := q.consumers[m.attempt.Tool]
	if !m.leased {
		return
	}
	if q.w.now < m.until {
		q.w.at(m.until-q.w.now, func() { q.expire(m) })
		return
	}
	m.leased = false
	delete(c.leases, m.seq)
	q.w.log("STEPS %d: lease of %s ran out", m.seq, m.subject)
	q.kick(c.tool)
}

// renew is what the server does with a heartbeat.
func (q *queue) renew(m *message, delivered int) {
	if m.leased && m.delivered == delivered {
		m.until = q.w.now + q.consumers[m.attempt.Tool].ackWait
	}
}

// ack takes a message away.
func (q *queue) ack(m *message) {
	q.w.truths.acked(m)
	c := q.consumers[m.attempt.Tool]
	m.leased = false
	delete(c.leases, m.seq)
	q.remove(m)
	q.kick(c.tool)
}
