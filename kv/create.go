package kv

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"

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

// Create writes a record once: in the ledger (or by a plan's intake subject), or in any bucket of Stepjet's. It returns
// once the decision is known; until then it asks again as often as it must, while the connection is away, no leader
// answers or the store is full. It owns h and body from now on; h gets headers added and may be nil. The number is the
// record's sequence; of somebody else's record it may be 0, where it was removed meanwhile. Where the own record is
// found after an answer was lost, that is Written.
//
// Errors, only where the decision is not known when ctx ends or can't come: StoreFull, NoConnection, NotReady, Timeout
// or Cancelled after ctx, Permission naming the subject, MessageTooLarge. Unless it is one of the last two the record
// may have been written all the same.
func (s *Store) Create(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence) (Decision, uint64, error) {
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
func (s *Store) CreateAsync(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence, done func(Decision, uint64, error)) {
	s.create(ctx, subject, h, body, fence, done)
}

func (s *Store) create(ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence, done func(Decision, uint64, error)) *create {
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
	s        *Store
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

// recordSubject gives the subject that a record is stored under: that of the plan record for an intake subject.
func (s *Store) recordSubject(subject string) string {
	if strings.HasPrefix(subject, "plan.") {
		if r, ok := subjects.ParseSubmit(subject); ok {
			return subjects.PlanRecord(r, s.shards)
		}
	}
	return subject
}
