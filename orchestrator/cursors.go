package orchestrator

import (
	"slices"
	"time"

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

// partitionSet is a set of partitions.
type partitionSet [subjects.Partitions]bool

// add takes in the partitions of another set.
func (owned *partitionSet) add(more partitionSet) {
	for p := range more {
		owned[p] = owned[p] || more[p]
	}
}

// count returns how many there are.
func (owned *partitionSet) count() (n int) {
	for _, mine := range owned {
		if mine {
			n++
		}
	}
	return n
}

// bits returns it with a bit for each.
func (owned *partitionSet) bits() (set uint64) {
	for p, mine := range owned {
		if mine {
			set |= 1 << p
		}
	}
	return set
}

// looksAfter reports whether the owner of the partitions is the one, of all orchestrators, that looks after a tool.
func (owned *partitionSet) looksAfter(tool string) bool {
	return owned[subjects.ToolPartition(tool)]
}

// cursors are those of a loop, by the partitions that it owns.
type cursors struct {
	owned [subjects.Partitions]*cursor // nil: not ours
	// shared are those in which another member may be at work as well: it is to have them, or has not let go of them.
	shared partitionSet
	// alone is when that ended, by the servers' time: the plans of before then another may have begun.
	alone [subjects.Partitions]time.Time
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
