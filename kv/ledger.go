package kv

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Ledger is where all that decides is written: the records of runs, in one stream for each shard of the ledger
// (subjects.LedgerStream), each with the runs of its partitions. A subject takes a single message, and the server
// itself refuses the second: of all who write a record exactly one is told that it did. Records are never changed;
// they are removed when their run is over and its grace has passed, or with all that lies below a mark. Reads are the
// stream's leader's, but where the connection may only read directly.
type Ledger struct {
	*account
	purges singleServerConn // connection for PurgeUpTo
}

// Shards returns the number of ledger shards.
func (s *Ledger) Shards() int { return s.shards }

// Create writes a record once: in the ledger (or by a plan's intake subject), or in any bucket of Stepjet's. It returns
// once the decision is known; until then it asks again as often as it must, while the connection is away, no leader
// answers or the store is full. It owns h and body from now on; h gets headers added and may be nil. The number is the
// record's sequence; of somebody else's record it may be 0, where it was removed meanwhile. Where the own record is
// found after an answer was lost, that is Written.
//
// Errors, only where the decision is not known when ctx ends or can't come: StoreFull, NoConnection, NotReady, Timeout
// or Cancelled after ctx, Permission naming the subject, MessageTooLarge. Unless it is one of the last two the record
// may have been written all the same.
func (s *Ledger) Create(
	ctx context.Context, subject string, h nats.Header, body []byte, fence *Fence,
) (Decision, uint64, error) {
	return s.createOnce(ctx, subject, h, body, fence)
}

// Read returns the last message on a subject of a bucket or a step stream (a ledger record, a plan's intake subject, a
// history key), as the stream's leader has it: a write that was acknowledged before is seen. The subject may hold
// wildcards. Errors: NotFound, NotReady, NoConnection, Timeout.
func (s *Ledger) Read(ctx context.Context, subject string) (*Entry, error) {
	return s.read(ctx, subject)
}

// LastSequence returns the sequence of the last message that a ledger shard ever stored, from its leader.
func (s *Ledger) LastSequence(ctx context.Context, shard int) (uint64, error) {
	info, err := s.streamInfo(ctx, subjects.LedgerStream(shard), "")
	return info.State.LastSeq, err
}

// Follow reads partitions of a ledger shard with one cursor: first the records that are there, then those that come,
// each once and in the stream's order.
//
// caughtUp is called once, after the last record that existed when Follow was called, at once if there was none; last
// is the position then. each and caughtUp may block: the server then holds back what follows, and no more than 32 MiB
// wait in this process. lost is called once, if it can no longer be told whether what was read is what the ledger
// holds (a server restarted, another leader or server, a ledger that is shorter than what was read): then forget all
// that each was given and follow again. None of the callbacks runs beside another, and none runs after lost or,
// except for one under way, after stop. They must not call Close.
//
// What lies below since is left out, if the ledger is in that life still, as the server says it that the records are
// asked of; in another all is read.
//
// Following ends when ctx does. Errors: InvalidConfig for partitions that are not the shard's, NotReady, NoConnection,
// Timeout.
func (s *Ledger) Follow(
	ctx context.Context, shard int, partitions []int, since Since, each func(Entry), caughtUp func(last uint64), lost func(error),
) (Following, error) {
	c, err := s.openCursor(ctx, shard, partitions, since, each, caughtUp, lost)
	if err != nil {
		return nil, err
	}
	return following{c, s, shard}, nil
}

// Since is where somebody begins to read a ledger shard: a sequence, in one life of it (Mark.Life). The zero value is the
// beginning.
type Since struct {
	Life string
	Seq  uint64
}

// Following is a cursor over partitions of a ledger shard. No method waits for a callback.
type Following interface {
	// Stop ends it.
	Stop()
	// Keep makes it read only these of its partitions from now on. What it reads of the others until that is done
	// comes too.
	Keep(partitions []int)
	// Position returns the sequence up to which every record of its partitions was given to each.
	Position() uint64
	// Check makes it look soon whether what was read still stands, and what the ledger's life is.
	Check()
	// Life names the life of the ledger that was read (Mark.Life).
	Life() string
}

type following struct {
	*Cursor
	ledger *Ledger
	shard  int
}

func (f following) Keep(partitions []int) {
	if filters, err := f.ledger.partitionFilters(f.shard, partitions); err == nil { // else none is left: it is about to be stopped
		f.narrow(filters)
	}
}

// OpenCursor is Follow of all, for those who want to know how far the cursor is (Cursor.Passed).
func (s *Ledger) OpenCursor(ctx context.Context, shard int, partitions []int, each func(Entry), caughtUp func(last uint64), lost func(error)) (*Cursor, error) {
	return s.openCursor(ctx, shard, partitions, Since{}, each, caughtUp, lost)
}

func (s *Ledger) openCursor(
	ctx context.Context, shard int, partitions []int, since Since, each func(Entry), caughtUp func(last uint64), lost func(error),
) (*Cursor, error) {
	filters, err := s.partitionFilters(shard, partitions)
	if err != nil {
		return nil, err
	}
	c := &Cursor{stream: subjects.LedgerStream(shard), since: since, each: each, caughtUp: caughtUp, lost: lost}
	return s.startCursor(ctx, c, filters)
}

func (s *Ledger) partitionFilters(shard int, partitions []int) ([]string, error) {
	own := slices.Compact(slices.Sorted(slices.Values(partitions)))
	if len(own) == 0 {
		return nil, fault.New(fault.InvalidConfig, "no partitions to follow")
	}
	var filters []string
	for _, p := range own {
		if p < 0 || p >= subjects.Partitions || subjects.LedgerShard(p, s.shards) != shard {
			return nil, fault.New(fault.InvalidConfig, "partition %d is not one of ledger shard %d", p, shard)
		}
		filters = append(filters, subjects.PartitionFilter(p, s.shards))
	}
	if len(own) == subjects.Partitions/s.shards {
		return []string{subjects.LedgerPrefix(shard) + ">"}, nil
	}
	return filters, nil
}

// FollowPlans reads the headers of the plan records of a ledger shard, without the plans: first of those that are
// there, then of those that come. That one is purged is not told. The callbacks are those of Follow. Errors: NotReady,
// NoConnection, Timeout, Permission for who may not read whole streams.
func (s *Ledger) FollowPlans(
	ctx context.Context, shard int, each func(r subjects.Run, e Entry), caughtUp func(last uint64), lost func(error),
) (*Cursor, error) {
	filters := []string{subjects.ActiveFilter(shard, "*")}
	return s.newHeads(ctx, subjects.LedgerStream(shard), filters, func(e Entry) {
		if rec, ok := subjects.ParseRecord(e.Subject); ok && rec.Kind == subjects.PlanKind && rec.Run.Valid() {
			each(rec.Run, e)
		}
	}, caughtUp, lost)
}

// SubmitSubject returns the subject that a Go client publishes (or Creates) a plan to.
func (s *Ledger) SubmitSubject(r subjects.Run) string { return subjects.SubmitTo(r, s.shards) }

// ActiveRuns lists the runs of a tenant that have a plan record: those that are not over, and those that ended a moment
// ago. Errors as those of Read.
func (s *Ledger) ActiveRuns(ctx context.Context, tenant string) ([]subjects.Run, error) {
	var runs []subjects.Run
	for shard := range s.shards {
		info, err := s.streamInfo(ctx, subjects.LedgerStream(shard), subjects.ActiveFilter(shard, tenant))
		if err != nil {
			return nil, err
		}
		for subject := range info.State.Subjects {
			if rec, ok := subjects.ParseRecord(subject); ok {
				runs = append(runs, rec.Run)
			}
		}
	}
	return runs, nil
}

// Stored returns the subjects of a ledger shard that a filter matches and that hold a record, as the stream's leader
// has them. Errors as those of PurgeRun.
func (s *Ledger) Stored(ctx context.Context, shard int, filter string) (map[string]uint64, error) {
	info, err := s.streamInfo(ctx, subjects.LedgerStream(shard), filter)
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}
