package kv

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
)

// rateTimeout bounds a request about a rate: whoever gets no answer goes on without it.
const rateTimeout = 2 * time.Second

// Rate returns what the workers of a model tool have written of a model's rate, when a server stored it, and its
// sequence; all are zero where nothing is there. Errors: NotReady where there is no such bucket, Permission, Timeout.
func (s *Queue) Rate(ctx context.Context, tool, model string) (rate []byte, at time.Time, seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, rateTimeout)
	defer cancel()
	subject := subjects.DirectGet(subjects.BucketStream(subjects.RatesBucket), subjects.Rate(tool, model))
	answer, err := s.exchange(ctx, &nats.Msg{Subject: subject})
	if err != nil {
		return nil, time.Time{}, 0, Fault(err)
	}
	e, err := parseDirect(answer)
	if apiCode(err) == codeMessageNotFound {
		return nil, time.Time{}, 0, nil
	}
	if err != nil {
		return nil, time.Time{}, 0, Fault(err)
	}
	return e.Data, e.Time, e.Seq, nil
}

// SetRate writes a model's rate where the last that was written of it has the sequence expected, 0 for none. ok is false
// where another was faster. Errors as those of Rate.
func (s *Queue) SetRate(ctx context.Context, tool, model string, rate []byte, expected uint64) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, rateTimeout)
	defer cancel()
	_, err = s.put(ctx, &nats.Msg{Subject: subjects.Rate(tool, model), Data: rate},
		jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0))
	if apiCode(err) == codeWrongLastSequence {
		return false, nil
	}
	if err != nil {
		return false, Fault(err)
	}
	return true, nil
}
