package orchestrator

import (
	"slices"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// cursor reads some partitions of one ledger shard: first what is there, then what comes.
type cursor struct {
	shard      int
	partitions []int
	reading    kv.Following // nil until it has begun
	caughtUp   bool
	last       uint64 // sequence of the last record read
	closed     []*run // found in the replay, still to be opened
	opening    int    // how many of them are being opened
	next       func() // opens more of them
}

// cursors are those of a loop, by the partitions that it owns.
type cursors struct {
	owned [subjects.Partitions]*cursor // nil: not ours
}

// stop ends the reading.
func (c *cursor) stop() {
	if c.reading != nil {
		c.reading.Stop()
	}
}

// keep leaves what the loop still owns of the cursor's partitions to be read, and nothing else: what is delivered to
// two owners costs the server and both of them.
func (cs *cursors) keep(c *cursor) {
	mine := slices.DeleteFunc(slices.Clone(c.partitions), func(p int) bool { return cs.owned[p] != c })
	switch {
	case c.reading == nil:
	case len(mine) == 0:
		c.stop()
	case len(mine) < len(c.partitions):
		c.reading.Keep(mine)
		c.partitions = mine
	}
}

func (cs *cursors) count() (n int) {
	for _, c := range cs.owned {
		if c != nil {
			n++
		}
	}
	return n
}

func (cs *cursors) all() []*cursor {
	var all []*cursor
	for _, c := range cs.owned {
		if c != nil && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}
