package kv

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// purgeRequest is JetStream's own: it removes messages on a subject, below a sequence or all but the last few.
type purgeRequest struct {
	Subject  string `json:"filter,omitempty"`
	Sequence uint64 `json:"seq,omitempty"`
	Keep     uint64 `json:"keep,omitempty"`
}

func (s *Store) purge(ctx context.Context, stream string, p purgeRequest) error {
	return s.tell(ctx, apiPrefix+"STREAM.PURGE."+stream, p)
}

// PurgeRun removes one generation of a run from the ledger: first its plan record, so that nothing fenced by it can be
// written any more, then all others. A plan of the same id that was submitted since stays. Purging twice is harmless.
// Errors as those of Read, without NotFound.
func (s *Store) PurgeRun(ctx context.Context, r subjects.Run, generation uint64) error {
	stream := subjects.LedgerStream(subjects.LedgerShard(r.Partition(), s.shards))
	plan := purgeRequest{Subject: subjects.PlanRecord(r, s.shards), Sequence: generation + 1}
	if err := s.purge(ctx, stream, plan); err != nil {
		return err
	}
	return s.purge(ctx, stream, purgeRequest{Subject: subjects.GenerationFilter(r, generation, s.shards)})
}

// PurgeUpTo removes all records of a ledger shard below a sequence; of those that filter matches, if it isn't empty.
// Errors as those of PurgeRun.
func (s *Store) PurgeUpTo(ctx context.Context, shard int, filter string, sequence uint64) error {
	return s.purge(ctx, subjects.LedgerStream(shard), purgeRequest{Subject: filter, Sequence: sequence})
}

// PurgeSubject removes what lies on a subject, or a filter, of a bucket or step stream. Errors as those of PurgeRun;
// Internal for a subject of no stream.
func (s *Store) PurgeSubject(ctx context.Context, subject string) error {
	stream := subjects.StreamOf(subject)
	if stream == "" {
		return fault.New(fault.Internal, "%s is no subject of a stream of Stepjet's", subject)
	}
	return s.purge(ctx, stream, purgeRequest{Subject: subject})
}

// PurgeSteps removes what one generation of a run has waiting for one tool, dispatched (also leased) or scheduled. Errors
// as those of PurgeRun.
//
// The slots of leased steps come free at once or when their workers, who hear of the end in another way, acknowledge
// them; at the latest when the leases run out. (Of several removed together the server, 2.15.2, forgets the leases only
// if nothing behind the stream's first message was acknowledged yet; over several tools at once it never does, so each
// tool has its own call.)
func (s *Store) PurgeSteps(ctx context.Context, r subjects.Run, generation uint64, tool string, shard int) error {
	for _, kind := range []string{"sched", "step"} { // in this order: a schedule may fire in between
		p := purgeRequest{Subject: subjects.RunToolFilter(kind, r, generation, tool, shard)}
		if err := s.purge(ctx, subjects.StepsStream(shard), p); err != nil {
			return err
		}
	}
	s.nudge(tool, shard)
	return nil
}

// nudge makes a tool's consumer look for something to deliver. A purge frees the slots of the leases it removes, but the
// server does not tell the consumer: without another event it would leave them unused for seconds. The request has run
// out before it can be met, and nobody listens for its answer, so it takes nothing.
func (s *Store) nudge(tool string, shard int) {
	next := apiPrefix + "CONSUMER.MSG.NEXT." + subjects.StepsStream(shard) + "." + subjects.Durable(tool)
	_ = s.nc.PublishRequest(next, nats.NewInbox(), []byte(`{"batch":1,"expires":1}`)) // lost, it costs some seconds
}

// PurgeAttempt removes one attempt, dispatched (also leased) or scheduled. Errors as those of PurgeRun.
func (s *Store) PurgeAttempt(ctx context.Context, a subjects.Attempt, shard int) error {
	for _, subject := range []string{subjects.Scheduled(a, shard), subjects.Step(a, shard)} {
		if err := s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: subject}); err != nil {
			return err
		}
	}
	s.nudge(a.Tool, shard)
	return nil
}

// Pending gives the message ids (Attempt.MessageID) of all attempts of a partition that a step stream holds: dispatched,
// leased or scheduled. Errors as those of PurgeRun.
func (s *Store) Pending(ctx context.Context, toolShard, partition int) (map[string]bool, error) {
	filter := subjects.PartitionPendingFilter(partition, toolShard)
	info, err := s.streamInfo(ctx, subjects.StepsStream(toolShard), filter)
	if err != nil {
		return nil, err
	}
	pending := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if a, _, ok := subjects.ParseStep(subject); ok {
			pending[a.MessageID()] = true
		}
	}
	return pending, nil
}
