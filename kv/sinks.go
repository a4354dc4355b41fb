package kv

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Send publishes what goes to a sink: a stream or the bucket subjects.SinksBucket, which others have made. kept reports that
// it lies there, from now or from before: in a stream by its message id, within the stream's own window; in the bucket by its key,
// where what lies there stays. Where no stream takes the subject, it goes to who listens, once, and is not kept.
//
// It asks again while JetStream can't answer, until ctx ends or for 15 s. Errors: NotFound where there is no such bucket, Permission
// naming the subject, StoreFull, MessageTooLarge, and NotReady, NoConnection, Timeout or Cancelled, of which the sink may have it
// all the same.
func (s *Archive) Send(ctx context.Context, subject string, h nats.Header, body []byte) (kept bool, err error) {
	put := subjects.IsKey(subject)
	if put { // whoever removes a key has dealt with it: it does not come back
		h[headerExpect] = expectNone
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		stream, err := s.js.StreamNameBySubject(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound) && put:
			return fault.New(fault.NotFound, "there is no bucket %s", subjects.SinksBucket).WithHint("make it: nats kv add %s", subjects.SinksBucket)
		case errors.Is(err, jetstream.ErrStreamNotFound):
			kept = false
			if err := s.nc.PublishMsg(&nats.Msg{Subject: subject, Header: h, Data: body}); err != nil {
				return err
			}
			return s.nc.FlushWithContext(ctx)
		case err != nil:
			return err
		}
		kept = true
		return sent(ctx, s.pub, stream, &nats.Msg{Subject: subject, Header: h, Data: body})
	})
	return kept && err == nil, err
}

// sent publishes a message to a stream and waits for its answer.
func sent(ctx context.Context, to *publisher, stream string, m *nats.Msg) error {
	answer := make(answered, 1)
	to.send(m, answer)
	select {
	case a := <-answer:
		switch {
		case a.err != nil:
			return a.err
		case a.code == codeWrongLastSequence || a.code == 0: // it lies there
			return nil
		}
		return &jetstream.APIError{ErrorCode: a.code, Description: stream + ": " + a.text}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answered is who waits for one answer.
type answered chan ack

func (c answered) acked(a ack) { c <- a }
