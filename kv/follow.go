package kv

import (
	"context"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Follow reads partitions of a ledger shard with one cursor: first the records that are there, then those that come,
// each once and in the stream's order.
//
// caughtUp is called once, after the last record that existed when Follow was called, at once if there was none; last is
// the position then. each and caughtUp may block: the server then holds back what follows, and no more than 32 MiB wait
// in this process. lost is called once, if it can no longer be told whether what was read is what the ledger holds (a
// server restarted, another leader or server, a ledger that is shorter than what was read): then forget all that each
// was given and follow again. None of the callbacks runs beside another, and none runs after lost or, except for one
// under way, after stop. They must not call Close.
//
// Following ends when ctx does. Errors: InvalidConfig for partitions that are not the shard's, NotReady, NoConnection,
// Timeout.
func (s *Store) Follow(ctx context.Context, shard int, partitions []int, each func(Entry), caughtUp func(last uint64), lost func(error)) (Following, error) {
	c, err := s.OpenCursor(ctx, shard, partitions, each, caughtUp, lost)
	if err != nil {
		return nil, err
	}
	return following{c, shard}, nil
}

// Following is a cursor over partitions of a ledger shard. No method waits for a callback.
type Following interface {
	// Stop ends it.
	Stop()
	// Keep makes it read only these of its partitions from now on. What it reads of the others until that is done comes too.
	Keep(partitions []int)
	// Position gives the sequence up to which every record of its partitions was given to each.
	Position() uint64
	// Check makes it look soon whether what was read still stands, and what the ledger's life is.
	Check()
	// Life names the life of the ledger that was read (Mark.Life).
	Life() string
}

type following struct {
	*Cursor
	shard int
}

func (f following) Keep(partitions []int) {
	if filters, err := f.s.partitionFilters(f.shard, partitions); err == nil { // else none is left: it is about to be stopped
		f.narrow(filters)
	}
}

// OpenCursor is Follow for those who want to know how far the cursor is (Cursor.Passed).
func (s *Store) OpenCursor(ctx context.Context, shard int, partitions []int, each func(Entry), caughtUp func(last uint64), lost func(error)) (*Cursor, error) {
	filters, err := s.partitionFilters(shard, partitions)
	if err != nil {
		return nil, err
	}
	return s.newCursor(ctx, subjects.LedgerStream(shard), filters, each, caughtUp, lost)
}

func (s *Store) partitionFilters(shard int, partitions []int) ([]string, error) {
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
