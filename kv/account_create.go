package kv

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/subjects"
)

// Decision is what a create came to.
type Decision int

// The decisions.
const (
	// Written: this very call wrote the record.
	Written Decision = iota + 1
	// Decided: a record was there already, somebody else's; it stands.
	Decided
	// Gone: the plan record that the fence names no longer stands at its sequence; nothing was written.
	Gone
)

// String names the decision.
func (d Decision) String() string {
	return [...]string{"undecided", "written", "decided", "gone"}[max(0, min(int(d), 3))]
}

// Fence makes a create depend on a record still standing: the last message on Subject must have sequence Seq. The
// server checks both at once with the write.
type Fence struct {
	Subject string // of a plan record, in the ledger shard of the record to be created
	Seq     uint64 // the run's generation
}

const (
	headerExpect        = "Nats-Expected-Last-Subject-Sequence"
	headerExpectSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerMsgID         = "Nats-Msg-Id"
)

// createOnce is Ledger.Create, of which every facet makes use.
func (s *account) createOnce(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence) (Decision, uint64, error) {
	type result struct {
		d   Decision
		seq uint64
		err error
	}
	done := make(chan result, 1)
	c := s.create(ctx, subject, h, body, fence, func(d Decision, seq uint64, err error) { done <- result{d, seq, err} })
	select {
	case r := <-done:
		return r.d, r.seq, r.err
	case <-ctx.Done():
	}
	if c.settling.Load() { // it has an answer, if not a plain one: it ends with ctx and can say what was wrong
		r := <-done
		return r.d, r.seq, r.err
	}
	return 0, 0, s.explain(ctx, context.Cause(ctx))
}

// CreateAsync is Create without waiting. done is called exactly once, from another goroutine, and must not block: in
// the common case all of a store's callbacks come one after another, from one goroutine, in the order of the answers.
// After ctx ended it is called within some seconds.
func (s *Ledger) CreateAsync(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence, done func(Decision, uint64, error)) {
	s.create(ctx, subject, h, body, fence, done)
}

func (s *account) create(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence, done func(Decision, uint64, error)) *create {
	if h == nil {
		h = make(nats.Header, 2)
	}
	c := &create{s: s, ctx: ctx, done: done, msg: nats.Msg{Subject: subject, Header: h, Data: body}}
	if fence == nil {
		h[headerExpect] = expectNone
	} else {
		c.fenced = true
		h[headerExpect] = []string{strconv.FormatUint(fence.Seq, 10)}
		h[headerExpectSubject] = []string{fence.Subject}
	}
	s.pub.send(&c.msg, c)
	return c
}

// expectNone is shared by all creates; nobody writes to it.
var expectNone = []string{"0"}

// create is one create under way.
type create struct {
	s        *account
	ctx      context.Context
	msg      nats.Msg
	fenced   bool
	settling atomic.Bool // beyond the first answer
	done     func(Decision, uint64, error)
}

// acked takes the first answer. Anything but a plain decision goes on in a goroutine of the store.
func (c *create) acked(a ack) {
	switch verdictOf(a, c.fenced, false) {
	case isWritten:
		c.done(Written, a.seq, nil)
		return
	case isDecided:
		c.done(Decided, lastSequence(a.text), nil)
		return
	case isGone:
		c.done(Gone, 0, nil)
		return
	default: // it has to be looked up
	}
	c.settling.Store(true)
	if !c.s.spawn(func() { c.done(c.settle(a)) }) {
		go c.done(0, 0, errClosed()) // the store is closed, so it has no goroutine left to call back from
	}
}

// verdict is what one answer to a create means.
type verdict int

const (
	isWritten verdict = iota + 1
	isDecided
	isGone
	isUnknown // it may have been stored, or will be in a moment: publish again
	isThere   // decided if the record is there; unknown otherwise
	isFull    // decided if the record is there; otherwise there is no room
	isRefused // the answer will not change
)

// verdictOf is the one place where the meaning of a create's answer is decided. The server checks, in this order: the
// fence or the expectation that there is no record (10071), the limits of account and stream (10077 and others), and
// that a subject takes one message (10077 again). unsure: an earlier publish of the same create may have been stored.
func verdictOf(a ack, fenced, unsure bool) verdict {
	switch {
	case a.err != nil && transient(a.err):
		return isUnknown
	case a.err != nil:
		return isRefused
	case a.duplicate:
		return isThere // the server knows a message id, which is not to say that it has the record
	}
	switch a.code {
	case 0:
		return isWritten
	case codeWrongLastSequence:
		if fenced {
			return isGone
		}
		if unsure {
			return isThere
		}
		return isDecided
	case codeSequenceInFlight, codeSequenceNotReady, codeDuplicateInFlight, codeTooManyRequests, codeUnavailable, codeOffline:
		return isUnknown
	case codeStoreFailed, codeAccountResources, codeInsufficient, codeMemoryExceeded, codeStorageExceeded:
		return isFull
	}
	return isRefused
}

// lastSequence reads the number at the end of "wrong last sequence: 12"; 0 if there is none.
func lastSequence(text string) uint64 {
	i := strings.LastIndexByte(text, ' ')
	n, err := strconv.ParseUint(text[i+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// recordSubject returns the subject that a record is stored under: that of the plan record for an intake subject.
func (s *account) recordSubject(subject string) string {
	if strings.HasPrefix(subject, "plan.") {
		if r, ok := subjects.ParseSubmit(subject); ok {
			return subjects.PlanRecord(r, s.shards)
		}
	}
	return subject
}

// Pauses between publishes of the same create: while its decision is unknown, and while there is no room.
const (
	unknownPause    = 2 * time.Millisecond
	maxUnknownPause = time.Second
	fullPause       = 50 * time.Millisecond
	maxFullPause    = 2 * time.Second
)

// settle goes on until the decision is known, the answer can't change, or the context ends.
func (c *create) settle(a ack) (Decision, uint64, error) {
	unsure := false
	unknown, full := backoff.Between(unknownPause, maxUnknownPause), backoff.Between(fullPause, maxFullPause)
	for {
		v, absent := verdictOf(a, c.fenced, unsure), false
		if v == isThere || v == isFull {
			var e *Entry
			if e, absent = c.lookup(); e != nil {
				return c.whose(e), e.Seq, nil
			}
		}
		pause := &unknown
		switch v {
		case isWritten:
			return Written, a.seq, nil
		case isDecided:
			return Decided, lastSequence(a.text), nil
		case isGone:
			return Gone, 0, nil
		case isRefused:
			return 0, 0, c.s.refusal(&c.msg, a)
		case isThere:
			if a.code == codeWrongLastSequence && absent { // it was there, and has been removed since
				return Decided, 0, nil
			}
		case isFull:
			pause = &full
			c.s.warnFull(subjects.StreamOf(c.s.recordSubject(c.msg.Subject)), a)
		case isUnknown:
			unsure = true
		}
		if !c.s.pause(c.ctx, pause.Next()) {
			return 0, 0, c.s.gaveUp(c.ctx, &c.msg, a)
		}
		next, answered := c.s.again(c.ctx, &c.msg)
		if !answered {
			return 0, 0, c.s.gaveUp(c.ctx, &c.msg, a)
		}
		a = next
	}
}

// again publishes a message once more and waits for the answer; false if ctx or the store ends before.
func (s *account) again(ctx context.Context, m *nats.Msg) (ack, bool) {
	if !s.enter(ctx) {
		return ack{}, false
	}
	defer s.leave()
	answer := make(answers, 1)
	s.pub.send(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, answer) // m itself may still be in line
	select {
	case a := <-answer:
		return a, true
	case <-ctx.Done():
		return ack{}, false
	}
}

// enter waits for room beside others who are not settled by their first answer; false if ctx or the store ends before.
func (s *account) enter(ctx context.Context) bool {
	select {
	case s.slow <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return false
}

func (s *account) leave() { <-s.slow }

// answers is a receiver that somebody waits on.
type answers chan ack

func (a answers) acked(x ack) { a <- x }

// lookup reads the record back from the leader. absent is whether the leader said that there is none.
func (c *create) lookup() (e *Entry, absent bool) {
	if !c.s.enter(c.ctx) {
		return nil, false
	}
	defer c.s.leave()
	e, err := c.s.settledAbsence(c.ctx, c.msg.Subject)
	return e, fault.CodeOf(err) == fault.NotFound
}

// whose tells whether the record that is there is the one this create wrote.
func (c *create) whose(e *Entry) Decision {
	if !bytes.Equal(e.Data, c.msg.Data) {
		return Decided
	}
	for key, values := range c.msg.Header {
		if !strings.HasPrefix(key, headerExpect) && !slices.Equal(values, e.Header[key]) {
			return Decided
		}
	}
	return Written
}

// refusal is the error of an answer that will not change.
func (s *account) refusal(m *nats.Msg, a ack) *fault.Error {
	if a.err == nil {
		f := Fault(&jetstream.APIError{Code: 400, ErrorCode: a.code, Description: a.text})
		if f.Code == fault.StoreFull {
			f.Message = "no room left in the stream " + subjects.StreamOf(s.recordSubject(m.Subject)) + ": " + a.text
		}
		return f
	}
	f := Fault(a.err)
	if f.Code == fault.MessageTooLarge {
		f.Message = sizeMessage(m.Size(), s.nc.MaxPayload())
	}
	return f
}

// gaveUp is the error of a publish that was not settled when its context, or the store, ended.
func (s *account) gaveUp(ctx context.Context, m *nats.Msg, a ack) *fault.Error {
	if ctx.Err() == nil {
		return errClosed()
	}
	f := s.refusal(m, a)
	if !s.nc.IsConnected() || f.Code == fault.Timeout || f.Code == fault.Internal {
		return s.explain(ctx, context.Cause(ctx))
	}
	f.Cause = context.Cause(ctx)
	return f
}
