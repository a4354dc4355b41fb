package kv

import (
	"context"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

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
func (s *Store) PurgeUpTo(ctx context.Context, shard int, filter string, sequence uint64, life string) error {
	stream := subjects.LedgerStream(shard)
	nc, err := s.mortal.conn(s.nc)
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
