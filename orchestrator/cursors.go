package orchestrator

import (
	"cmp"
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
	since      uint64 // where the reading was to begin
	lay        int    // how many records lay there, of those that were read
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
	// skipped is what was left out when a partition was read.
	skipped [subjects.Partitions]skipped
}

// skipped is what the owner of a partition did not read of it, since an earlier one had said that all of it is over
// (kv.Mark): the runs whose plans lie below a sequence. It knows nothing of them, so as long as some of it may be within its
// grace nothing of it is removed by this owner's word.
type skipped struct {
	below  uint64    // 0: nothing
	until  time.Time // by the own clock: when all of it has been over for a grace, whenever that began
	purged bool      // a purge of all that lies below was asked for since
}

// recent reports whether a generation was skipped that may be within its grace still.
func (s *skipped) recent(generation uint64, now time.Time) bool {
	return generation < s.below && s.stays(now)
}

// stays reports whether something was skipped that may be within its grace still.
func (s *skipped) stays(now time.Time) bool { return s.below > 0 && now.Before(s.until) }

// due reports whether something was skipped that may go now, and of which nobody has asked yet that it does.
func (s *skipped) due(now time.Time) bool { return s.below > 0 && !s.purged && !now.Before(s.until) }

// startsAt is where some partitions of a shard begin to be read.
type startsAt struct {
	partitions []int
	since      uint64 // 0: the beginning
}

// divided puts partitions into groups, at most so many, by how much of their records need not be read: each group goes by the
// lowest of its own, so that one in which a run has waited for a day costs none of the others a day's records. worth is of how
// many records a group more has to spare the reading.
func divided(partitions []int, over func(partition int) uint64, most int, worth uint64) (groups []startsAt) {
	rest := slices.Clone(partitions)
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(over(a), over(b)) })
	for len(rest) > 0 {
		at, best := len(rest), max(worth, 1)*subjects.Partitions
		for k := 1; k < len(rest) && len(groups) < most-1; k++ {
			if spared := (over(rest[k]) - over(rest[0])) * uint64(len(rest)-k); spared >= best {
				at, best = k, spared+1
			}
		}
		groups = append(groups, startsAt{rest[:at:at], over(rest[0])})
		rest = rest[at:]
	}
	return groups
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
