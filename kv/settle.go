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
		v := verdictOf(a, c.fenced, unsure)
		if v == isThere || v == isFull {
			if e, found := c.lookup(); found {
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
			return 0, 0, c.refusal(a)
		case isThere:
			if a.code == codeWrongLastSequence { // it was there, and has been removed since
				return Decided, 0, nil
			}
		case isFull:
			pause = &full
			c.s.warnFull(c.stream(), a)
		case isUnknown:
			unsure = true
		}
		if !c.s.pause(c.ctx, pause.next()) {
			return 0, 0, c.gaveUp(a)
		}
		a = c.again()
	}
}

// again publishes once more and waits for the answer.
func (c *create) again() ack {
	select {
	case c.s.slow <- struct{}{}:
		defer func() { <-c.s.slow }()
	case <-c.ctx.Done():
		return ack{err: errNoAnswer}
	case <-c.s.ctx.Done():
		return ack{err: errNoAnswer}
	}
	answer := make(answers, 1)
	m := nats.Msg{Subject: c.msg.Subject, Header: c.msg.Header, Data: c.msg.Data} // the first may still be in line
	c.s.pub.send(&m, answer)
	select {
	case a := <-answer:
		return a
	case <-c.ctx.Done():
		return ack{err: errNoAnswer}
	}
}

// answers is a receiver that somebody waits on.
type answers chan ack

func (a answers) acked(x ack) { a <- x }

// lookup reads the record back from the leader.
func (c *create) lookup() (*Entry, bool) {
	e, err := c.s.Read(c.ctx, c.msg.Subject)
	return e, err == nil
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

func (c *create) stream() string {
	return subjects.StreamOf(c.s.recordSubject(c.msg.Subject))
}

// refusal is the error of an answer that will not change.
func (c *create) refusal(a ack) *fault.Error {
	if a.err != nil {
		f := Fault(a.err)
		if f.Code == fault.MessageTooLarge {
			f.Message = sizeMessage(c.msg.Size(), c.s.MaxPayload())
		}
		return f
	}
	return Fault(&jetstream.APIError{Code: 400, ErrorCode: a.code, Description: a.text})
}

// gaveUp is the error of a create whose decision was unknown when its context, or the store, ended.
func (c *create) gaveUp(a ack) *fault.Error {
	if c.ctx.Err() == nil {
		return errClosed()
	}
	f := c.refusal(a)
	switch {
	case f.Code == fault.StoreFull:
		f.Message = "no room left in the stream " + c.stream() + ": " + a.text
	case !c.s.nc.IsConnected() || f.Code == fault.Timeout || f.Code == fault.Internal:
		return c.s.explain(c.ctx, context.Cause(c.ctx))
	}
	f.Cause = context.Cause(c.ctx)
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
