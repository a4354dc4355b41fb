package kv

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// Dispatch is one attempt to be sent to the workers.
type Dispatch struct {
	Attempt subjects.Attempt
	// Shard is the tool's step stream, from the registry or the run's start record.
	Shard int
	// Header and Body are those of package wire. The store owns both from now on and adds headers.
	Header nats.Header
	Body   []byte
	// At is when the attempt may start: it waits in the stream until then and holds no slot of its tool. Zero: now. The
	// server's timer is not finer than 250 ms.
	At time.Time
	// Repair is 0 for the regular dispatch of an attempt, and counts from 1 those of the sweep, which are refused while
	// the attempt is pending, leased or scheduled.
	Repair int
	// Seq, if not nil, is set to the message's sequence in the step stream before done is called; not where a message of
	// the same attempt was there already.
	Seq *atomic.Uint64
}

const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// DispatchAsync stores an attempt in its step stream. It is tried again, at once and then with growing pauses, until it
// is stored or ctx ends. A dispatch that is there already counts as stored: one of the same kind within two minutes by
// its message id, for a repair also any that is still pending. done is called exactly once, from another goroutine, and
// must not block (see CreateAsync). Errors: MessageTooLarge, Permission; NoConnection, NotReady, StoreFull, Timeout or
// Cancelled after ctx.
func (s *Store) DispatchAsync(ctx context.Context, d Dispatch, done func(error)) {
	h := d.Header
	if h == nil {
		h = make(nats.Header, 4)
	}
	id := d.Attempt.MessageID()
	if d.Repair > 0 {
		id += "/" + strconv.Itoa(d.Repair)
		h[headerExpect] = expectNone
		h[headerExpectSubject] = []string{subjects.PendingFilter(d.Attempt, d.Shard)}
	}
	h[headerMsgID] = []string{id}
	subject := subjects.Step(d.Attempt, d.Shard)
	if !d.At.IsZero() {
		h[headerSchedule] = []string{"@at " + d.At.UTC().Format(time.RFC3339Nano)}
		h[headerScheduleTarget] = []string{subject}
		subject = subjects.Scheduled(d.Attempt, d.Shard)
	}
	x := &dispatch{s: s, ctx: ctx, shard: d.Shard, repair: d.Repair > 0, seq: d.Seq, done: done}
	x.msg = nats.Msg{Subject: subject, Header: h, Data: d.Body}
	s.pub.send(&x.msg, x)
	s.passed(d.Shard, len(d.Body))
}

// dispatch is one dispatch under way.
type dispatch struct {
	s      *Store
	ctx    context.Context
	msg    nats.Msg
	shard  int
	repair bool
	seq    *atomic.Uint64
	done   func(error)
}

// acked takes the first answer. Anything but a plain one goes on in a goroutine of the store.
func (d *dispatch) acked(a ack) {
	if d.stored(a) {
		d.done(nil)
		return
	}
	if !d.s.spawn(func() { d.done(d.settle(a)) }) {
		go d.done(errClosed())
	}
}

// stored reports whether the attempt is known to lie in the stream, or to have lain there a moment ago.
func (d *dispatch) stored(a ack) bool {
	if a.err != nil {
		return false
	}
	if a.code == 0 && d.seq != nil && !a.duplicate {
		d.seq.Store(a.seq)
	}
	return a.code == 0 || a.code == codeWrongLastSequence && d.repair
}

func (d *dispatch) settle(a ack) error {
	pause := backoff{unknownPause, maxUnknownPause}
	for !d.stored(a) {
		switch verdictOf(a, false, true) {
		case isRefused:
			return d.s.refusal(&d.msg, a)
		case isFull:
			d.s.warnFull(subjects.StepsStream(d.shard), a)
		}
		if errors.Is(a.err, nats.ErrNoResponders) { // no stream: somebody removed it
			_ = d.s.ensureSteps(d.ctx, d.shard) // if that fails, so does the next attempt
		}
		if !d.s.pause(d.ctx, pause.next()) {
			return d.s.gaveUp(d.ctx, &d.msg, a)
		}
		next, answered := d.s.again(d.ctx, &d.msg)
		if !answered {
			return d.s.gaveUp(d.ctx, &d.msg, a)
		}
		a = next
	}
	return nil
}
