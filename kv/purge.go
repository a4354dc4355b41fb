package kv

import (
	"context"

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

// PurgeRecord removes one record of the ledger by its subject and sequence; what was created there since stays. Errors as those
// of PurgeRun; Internal for a subject that stands for others too, or of no stream.
func (s *Store) PurgeRecord(ctx context.Context, subject string, seq uint64) error {
	stream := subjects.StreamOf(subject)
	if stream == "" || !subjects.Literal(subject) {
		return fault.New(fault.Internal, "%s is no subject of a record", subject)
	}
	return s.purge(ctx, stream, purgeRequest{Subject: subject, Sequence: seq + 1})
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
