package kv

import (
	"context"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// PurgeRun removes one generation of a run from the ledger: first its plan record, so that nothing fenced by it can be
// written any more, then all others. A plan of the same id that was submitted since stays. Purging twice is harmless.
// Errors as those of Read, without NotFound.
func (s *Ledger) PurgeRun(ctx context.Context, r subjects.Run, generation uint64) error {
	stream := subjects.LedgerStream(subjects.LedgerShard(r.Partition(), s.shards))
	plan := purgeRequest{Subject: subjects.PlanRecord(r, s.shards), Sequence: generation + 1}
	if err := s.purge(ctx, stream, plan); err != nil {
		return err
	}
	return s.purge(ctx, stream, purgeRequest{Subject: subjects.GenerationFilter(r, generation, s.shards)})
}

// PurgeRecord removes one record of the ledger by its subject and sequence; what was created there since stays. Errors as those
// of PurgeRun; Internal for a subject that stands for others too, or of no stream.
func (s *Ledger) PurgeRecord(ctx context.Context, subject string, seq uint64) error {
	stream := subjects.StreamOf(subject)
	if stream == "" || !subjects.Literal(subject) {
		return fault.New(fault.Internal, "%s is no subject of a record", subject)
	}
	return s.purge(ctx, stream, purgeRequest{Subject: subject, Sequence: seq + 1})
}

// PurgeSubject removes what lies on a subject, or a filter, of a bucket or step stream. Errors as those of PurgeRun;
// Internal for a subject of no stream.
func (s *Ledger) PurgeSubject(ctx context.Context, subject string) error {
	stream := subjects.StreamOf(subject)
	if stream == "" {
		return fault.New(fault.Internal, "%s is no subject of a stream of Stepjet's", subject)
	}
	return s.purge(ctx, stream, purgeRequest{Subject: subject})
}

// Stored gives the subjects of a ledger shard that a filter matches and that hold a record, as the stream's leader has
// them. Errors as those of PurgeRun.
func (s *Ledger) Stored(ctx context.Context, shard int, filter string) (map[string]uint64, error) {
	info, err := s.streamInfo(ctx, subjects.LedgerStream(shard), filter)
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// Mark says how far the runs of some partitions are over.
type Mark = wire.Mark

// lifeOf names the life of a stream, as the connection to a server and the stream's state tell it. A server's id is new each
// time it starts; in a cluster a stream goes on without a server, and what could cost it its end brings an election. A stream
// that somebody deleted and made again is another.
func lifeOf(server string, info streamState) string {
	if info.leader() == "" {
		return server + " " + info.Created
	}
	return info.leader() + " " + info.Cluster.Since + " " + info.Created
}

// live notes the life of the stream in which all that the cursor has handed on stands.
func (c *Cursor) live(server string, info streamState) {
	life := lifeOf(server, info)
	c.life.Store(&life)
}

// Life names the life of the stream that was read (Mark.Life).
func (c *Cursor) Life() string { return *c.life.Load() }

// PurgeUpTo removes all records of a ledger shard below a sequence, or those of them that filter matches if it isn't empty,
// in one life of the ledger: in another nothing is removed. The request goes out once, over a connection that ends with the
// server it leads to, so that however long this process sleeps before it sends it, it can't reach the next server.
// (In a cluster it can reach another leader, if that is elected between the look at who leads and the request; one that has
// all that was acknowledged, unless most of its servers lost power.)
// Errors: NotReady in another life; Timeout and NoConnection, after which it may have been carried out; Permission.
func (s *Ledger) PurgeUpTo(ctx context.Context, shard int, filter string, sequence uint64, life string) error {
	stream := subjects.LedgerStream(shard)
	nc, err := s.purges.conn(s.nc)
	if err != nil {
		return err
	}
	info, err := s.streamInfo(ctx, stream, "")
	if err != nil {
		return err
	}
	if now := lifeOf(nc.ConnectedServerId(), info); now != life {
		return fault.New(fault.NotReady, "the ledger's server was started, or its leader elected, since it was read: then %q, now %q", life, now)
	}
	body, err := json.Marshal(purgeRequest{Subject: filter, Sequence: sequence})
	if err != nil {
		return Fault(err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, apiPrefix+"STREAM.PURGE."+stream, body)
	if err != nil {
		return s.explain(ctx, err)
	}
	if err := apiAnswer(answer.Data, &struct{}{}); err != nil {
		return Fault(err)
	}
	return nil
}
