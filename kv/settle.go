package kv

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

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
	unknown, full := backoff{unknownPause, maxUnknownPause}, backoff{fullPause, maxFullPause}
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
		if !c.s.pause(c.ctx, pause.next()) {
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
func (s *Store) again(ctx context.Context, m *nats.Msg) (ack, bool) {
	select {
	case s.slow <- struct{}{}:
		defer func() { <-s.slow }()
	case <-ctx.Done():
		return ack{}, false
	case <-s.ctx.Done():
		return ack{}, false
	}
	answer := make(answers, 1)
	s.pub.send(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, answer) // m itself may still be in line
	select {
	case a := <-answer:
		return a, true
	case <-ctx.Done():
		return ack{}, false
	}
}

// answers is a receiver that somebody waits on.
type answers chan ack

func (a answers) acked(x ack) { a <- x }

// lookup reads the record back from the leader. absent is whether the leader said that there is none.
func (c *create) lookup() (e *Entry, absent bool) {
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
func (s *Store) refusal(m *nats.Msg, a ack) *fault.Error {
	if a.err == nil {
		f := Fault(&jetstream.APIError{Code: 400, ErrorCode: a.code, Description: a.text})
		if f.Code == fault.StoreFull {
			f.Message = "no room left in the stream " + subjects.StreamOf(s.recordSubject(m.Subject)) + ": " + a.text
		}
		return f
	}
	f := Fault(a.err)
	if f.Code == fault.MessageTooLarge {
		f.Message = sizeMessage(m.Size(), s.MaxPayload())
	}
	return f
}

// gaveUp is the error of a publish that was not settled when its context, or the store, ended.
func (s *Store) gaveUp(ctx context.Context, m *nats.Msg, a ack) *fault.Error {
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

// backoff is a pause that doubles up to max; each is shortened by up to a half, at random, so that those that failed
// together do not come again together.
type backoff struct{ pause, max time.Duration }

func (b *backoff) next() time.Duration {
	d := b.pause
	b.pause = min(2*b.pause, b.max)
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}
