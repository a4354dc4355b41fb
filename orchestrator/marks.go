package orchestrator

import (
	"slices"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// Where several orchestrators share a ledger shard, each tells the others with its member key how far the runs of its
// partitions are over (kv.Mark). Whoever has marks of all partitions of a shard may remove everything below the lowest.
//
// That needs no agreement, since a mark once true stays true: what is over stays over, what was read is read, and
// whoever owns a partition later finds nothing of it below the mark that goes on. So it does not matter how old a mark
// is, whether whoever told it sleeps, is dead or owns the partition no more, nor how late the request comes that rests
// on it. Only a ledger that lost its end gives sequences twice; a mark names the life of the ledger that it is about,
// and PurgeUpTo removes nothing in another.

// advance lets cursors note how far they have looked where none of their own records came. What they handed on before
// has gone through the mailbox by the time that the note has.
func (rp *reaper) advance() {
	for _, c := range rp.cursors.all() {
		if c.caughtUp && c.reading != nil {
			at := c.reading.Position()
			rp.post(func() { c.last = max(c.last, at) })
		}
	}
}

// check lets the cursors of a shard look whether what they read still stands.
func (rp *reaper) check(shard int) {
	for _, c := range rp.cursors.all() {
		if c.shard == shard && c.reading != nil {
			c.reading.Check()
		}
	}
}

// lowest gives, by partition, the lowest sequence that must stay: the plan of its first run that isn't over, or what
// its cursor has not read yet; 0 where that isn't known.
func (rp *reaper) lowest() *[subjects.Partitions]uint64 {
	var low [subjects.Partitions]uint64
	for i, c := range rp.cursors.owned {
		if c == nil || !c.caughtUp || c.reading == nil {
			continue
		}
		low[i] = c.last + 1
		if seq, ok := rp.runs.oldest[i].first(); ok {
			low[i] = min(low[i], seq)
		}
	}
	return &low
}

// ownMarks returns a mark for each shard with partitions of ours, and for each of its lives where cursors have read
// several.
func (rp *reaper) ownMarks() (all []kv.Mark) {
	for p, below := range rp.lowest() {
		if below == 0 {
			continue
		}
		shard, life := subjects.LedgerShard(p, rp.store.Shards()), rp.cursors.owned[p].reading.Life()
		i := slices.IndexFunc(all, func(m kv.Mark) bool { return m.Shard == shard && m.Life == life })
		if i < 0 {
			i = len(all)
			all = append(all, kv.Mark{Shard: shard, Life: life, Below: below})
		}
		all[i].Partitions |= 1 << p
		all[i].Below = min(all[i].Below, below)
	}
	return all
}

// wholeShard returns the lowest sequence of a shard that must stay, in one life of the ledger, if there are marks of
// all its partitions. Of a partition that changes hands there may be two: either is true.
func (rp *reaper) wholeShard(shard int, marks []kv.Mark) (life string, upTo uint64, whole bool) {
	i := slices.IndexFunc(rp.cursors.owned[:], func(c *cursor) bool { return c != nil && c.shard == shard && c.reading != nil })
	if i < 0 {
		return "", 0, false
	}
	life = rp.cursors.owned[i].reading.Life()
	for p := shard; p < subjects.Partitions; p += rp.store.Shards() {
		var below uint64
		for _, m := range marks {
			if m.Shard == shard && m.Life == life && m.Partitions>>p&1 == 1 {
				below = max(below, m.Below)
			}
		}
		if below == 0 {
			return "", 0, false
		}
		if upTo == 0 || below < upTo {
			upTo = below
		}
	}
	return life, upTo, true
}
