package kv

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

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

// PurgeRecord removes one record of the ledger by its subject and sequence; what was created there since stays.
// Errors as those of PurgeRun; Internal for a subject that stands for others too, or of no stream.
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

// Mark says how far the runs of some partitions are over.
type Mark = wire.Mark

// heardMarks is what was told of how far runs are over. A mark that was true stays true, so what who is gone has told is
// kept: whoever takes its partitions over begins to read there.
type heardMarks struct {
	lives []heardLife // that heard of last comes last
}

// heardLife is what was told in one life of a ledger shard, by partition.
type heardLife struct {
	shard       int
	life        string
	below, over [subjects.Partitions]uint64
}

// livesKept is of how many lives of each shard is kept what was told: of one whose members are not all heard of at once,
// and of what one that slept may tell of an earlier one.
const livesKept = 3

// hear takes marks. Those of no shard that there can be are left out.
func (h *heardMarks) hear(marks []Mark) {
	for _, m := range marks {
		if m.Shard < 0 || m.Shard >= subjects.Partitions {
			continue
		}
		x := h.of(m.Shard, m.Life)
		for p := range subjects.Partitions {
			if m.Partitions>>p&1 == 1 {
				x.below[p], x.over[p] = max(x.below[p], m.Below), max(x.over[p], m.Over)
			}
		}
	}
}

// of returns what was told in a life, which is the one heard of last now.
func (h *heardMarks) of(shard int, life string) *heardLife {
	x := heardLife{shard: shard, life: life}
	if i := slices.IndexFunc(h.lives, func(x heardLife) bool { return x.shard == shard && x.life == life }); i >= 0 {
		x = h.lives[i]
		h.lives = slices.Delete(h.lives, i, i+1)
	}
	kept, first := 0, 0
	for i := range h.lives {
		if h.lives[i].shard != shard {
			continue
		}
		if kept++; kept == 1 {
			first = i
		}
	}
	if kept >= livesKept {
		h.lives = slices.Delete(h.lives, first, first+1)
	}
	h.lives = append(h.lives, x)
	return &h.lives[len(h.lives)-1]
}

// all returns the marks, those of partitions of which the same was told together.
func (h *heardMarks) all() (all []Mark) {
	for i := range h.lives {
		x, from := &h.lives[i], len(all)
		for p := range subjects.Partitions {
			m := Mark{Shard: x.shard, Life: x.life, Below: x.below[p], Over: x.over[p]}
			if m.Below == 0 && m.Over == 0 {
				continue
			}
			at := slices.IndexFunc(all[from:], func(y Mark) bool { return y.Below == m.Below && y.Over == m.Over })
			if at < 0 {
				at = len(all) - from
				all = append(all, m)
			}
			all[from+at].Partitions |= 1 << p
		}
	}
	return all
}

// lifeOf names the life of a stream, as the connection to a server and the stream's state tell it. A server's id is
// new each time it starts; in a cluster a stream goes on without a server, and what could cost it its end brings an
// election. A stream that somebody deleted and made again is another.
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

// PurgeUpTo removes all records of a ledger shard below a sequence, in one life of the ledger: in another nothing is
// removed. The request goes out once, over a connection that ends with the server it leads to, so that however long this
// process sleeps before it sends it, it can't reach the next server. (In a cluster it can reach another leader, if that
// is elected between the look at who leads and the request; one that has all that was acknowledged, unless most of its
// servers lost power.) Errors: NotReady in another life; Timeout and NoConnection, after which it may have been carried
// out.
func (s *Ledger) PurgeUpTo(ctx context.Context, shard int, sequence uint64, life string) error {
	p, err := s.purger(shard, life)
	if err != nil {
		return err
	}
	if _, err := p.look(ctx, ""); err != nil {
		return err
	}
	return p.purge(ctx, purgeRequest{Sequence: sequence})
}

// Generation names one generation of a run.
type Generation struct {
	Run    subjects.Run
	Number uint64 // the sequence of its plan record
}

const (
	// purgesAtOnce is how many requests are on their way at a time. Runs end as fast as their submitters and workers
	// together can make them; with few requests on their way a busy server would be asked for less than that.
	purgesAtOnce  = 128
	recordsAtOnce = 16 // of one generation
	// byNameAtMost is how many records a generation may have for each to be removed by its name.
	byNameAtMost = 1000
)

// PurgeRuns removes generations of runs from a ledger shard, in one life of the ledger as PurgeUpTo does; with an empty
// life, in any. Of each the plan record goes first, so that nothing fenced by it can be written any more, and a plan of
// the same id that was submitted since stays. What is written of a generation while it is removed may stay; then it has
// no plan. Where it fails, some are removed, and perhaps the half of one; doing it again is harmless. Errors as those of
// PurgeUpTo.
//
// A purge by a filter makes the server look at all that the stream holds, to count anew what every cursor has still to
// read. One of a single record doesn't. So each record goes by its own name, and what that costs follows from how many
// are removed, not from how many stay.
func (s *Ledger) PurgeRuns(ctx context.Context, shard int, runs []Generation, life string) error {
	p, err := s.purger(shard, life)
	if err != nil {
		return err
	}
	return allOf(ctx, runs, purgesAtOnce, p.generation)
}

// allOf does something with each, so many at a time, until one fails.
func allOf[T any](ctx context.Context, list []T, most int, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(most)
	for _, x := range list {
		group.Go(func() error { return do(ctx, x) })
	}
	return group.Wait()
}

// purger removes records of a ledger shard in one life of it.
type purger struct {
	*Ledger
	nc    *nats.Conn // ends with its server
	shard int
	life  string        // empty: any
	room  chan struct{} // for requests on their way
}

func (s *Ledger) purger(shard int, life string) (*purger, error) {
	nc, err := s.purges.conn(s.nc)
	return &purger{s, nc, shard, life, make(chan struct{}, purgesAtOnce)}, err
}

// look returns the stream's state, with the subjects that match a filter unless it is empty, if this is the life.
func (p *purger) look(ctx context.Context, filter string) (info streamState, err error) {
	if err := p.api(ctx, "INFO", infoRequest{Filter: filter}, &info); err != nil {
		return info, err
	}
	if now := lifeOf(p.nc.ConnectedServerId(), info); p.life != "" && now != p.life {
		return info, fault.New(fault.NotReady, "the ledger's server was started, or its leader elected, since it was read: then %q, now %q", p.life, now)
	}
	return info, nil
}

// generation removes one generation.
func (p *purger) generation(ctx context.Context, g Generation) error {
	filter := subjects.GenerationFilter(g.Run, g.Number, p.shards)
	info, err := p.look(ctx, filter)
	if err != nil {
		return err
	}
	if err := p.purge(ctx, purgeRequest{Subject: subjects.PlanRecord(g.Run, p.shards), Sequence: g.Number + 1}); err != nil {
		return err
	}
	nameless := func(subject string) bool { return !subjects.Literal(subject) }
	records := slices.Sorted(maps.Keys(info.State.Subjects))
	if info.Total > byNameAtMost || slices.ContainsFunc(records, nameless) {
		return p.purge(ctx, purgeRequest{Subject: filter})
	}
	return allOf(ctx, records, recordsAtOnce, func(ctx context.Context, record string) error {
		return p.purge(ctx, purgeRequest{Subject: record})
	})
}

func (p *purger) purge(ctx context.Context, r purgeRequest) error {
	return p.api(ctx, "PURGE", r, nil)
}

// api asks JetStream for something about the shard, once, as soon as there is room for the request.
func (p *purger) api(ctx context.Context, verb string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return Fault(err)
	}
	p.room <- struct{}{}
	defer func() { <-p.room }()
	one, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := p.nc.RequestWithContext(one, subjects.StreamRequest(verb, subjects.LedgerStream(p.shard)), body)
	if err != nil {
		return p.explain(ctx, err)
	}
	if err := apiAnswer(answer.Data, out); err != nil {
		return Fault(err)
	}
	return nil
}
