package kv

import (
	"context"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

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
// as those of PurgeRun. The slots of leased steps come free at once, though their workers go on until they hear of the end.
func (s *Store) PurgeSteps(ctx context.Context, r subjects.Run, generation uint64, tool string, shard int) error {
	// In this order: a schedule may fire in between. Nothing that is scheduled can be leased.
	p := purgeRequest{Subject: subjects.RunToolFilter("sched", r, generation, tool, shard)}
	if err := s.purge(ctx, subjects.StepsStream(shard), p); err != nil {
		return err
	}
	return s.takeOut(ctx, shard, tool, subjects.RunToolFilter("step", r, generation, tool, shard))
}

// removers are how many messages are removed at a time.
const removers = 16

// takeOut removes the messages of a tool that a filter matches from a step stream, one by one. A purge would be a single
// request. But where that removes leased messages, the server (2.15.2) moves its consumer's floor past earlier leases, and
// forgets these with the next acknowledgement: a step whose worker dies then is never handed out again, though it still
// lies in the stream, where the sweep sees it.
func (s *Store) takeOut(ctx context.Context, shard int, tool, filter string) error {
	stream := subjects.StepsStream(shard)
	info, err := s.streamInfo(ctx, stream, filter)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(removers)
	for subject, n := range info.State.Subjects {
		all.Go(func() error {
			for range n {
				if err := s.removeLast(ctx, stream, subject); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	s.nudge(tool, shard)
	return nil
}

// removeLast removes the last message on a subject, if there is one.
func (s *Store) removeLast(ctx context.Context, stream, subject string) error {
	e, err := s.Read(ctx, subject)
	if err == nil {
		err = s.tell(ctx, apiPrefix+"STREAM.MSG.DELETE."+stream, deleteRequest{e.Seq, true})
	}
	if apiCode(err) == codeSequenceNotFound || fault.CodeOf(err) == fault.NotFound {
		return nil // acknowledged meanwhile
	}
	return err
}

// deleteRequest is JetStream's own: it removes one message.
type deleteRequest struct {
	Seq     uint64 `json:"seq"`
	NoErase bool   `json:"no_erase"`
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
	if err := s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: subjects.Scheduled(a, shard)}); err != nil {
		return err
	}
	return s.takeOut(ctx, shard, a.Tool, subjects.Step(a, shard))
}

// Stored gives the subjects of a ledger shard that a filter matches and that hold a record, as the stream's leader has
// them. Errors as those of PurgeRun.
func (s *Store) Stored(ctx context.Context, shard int, filter string) (map[string]uint64, error) {
	info, err := s.streamInfo(ctx, subjects.LedgerStream(shard), filter)
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
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
