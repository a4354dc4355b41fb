package kv

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
)

// Lag is where a tool's workers stand, as the server sees it.
type Lag struct {
	// Limit is the tool's fan-out limit, Leased how many of its steps are leased.
	Limit, Leased int
	// Asking is how many requests of workers for more wait unanswered: 0 where every worker is busy, or none is there.
	Asking int
	// Behind is how many steps no worker has been given yet.
	Behind uint64
	// Given is the sequence in the step stream up to which steps have been given to workers.
	Given uint64
	// Floor is the sequence up to which the server takes all steps for acknowledged: it gives none of them to anybody.
	Floor uint64
}

// Lag asks for the state of a tool's durable consumer. It is for people who look and for a step that waits too long, not
// for loops: the server takes a lock for it. Errors: NotFound where the consumer or its stream is gone, and those of Read.
func (s *Store) Lag(ctx context.Context, tool string, shard int) (Lag, error) {
	info, err := s.consumer(ctx, tool, shard)
	if err != nil {
		return Lag{}, err
	}
	return Lag{
		Limit: info.Config.MaxAckPending, Leased: info.NumAckPending, Asking: info.NumWaiting, Behind: info.NumPending,
		Given: info.Delivered.Stream, Floor: info.AckFloor.Stream,
	}, nil
}

// noConsumer explains an error of looking for a tool's consumer.
func (s *Store) noConsumer(ctx context.Context, tool string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return fault.New(fault.NotFound, "the tool %s has no consumer", tool).
			WithHint("register it again: start a worker of it, or apply its definition")
	}
	return s.explain(ctx, err)
}
