package orchestrator

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// owner returns the member that owns a partition: the one with the highest hash of both (rendezvous hashing), so that a
// member that comes or goes moves only its own share.
func owner(partition int, members []string) string {
	best, bestHash := "", uint64(0)
	for _, m := range members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m))
		_, _ = h.Write([]byte{byte(partition), 0xff})
		if x := mix(h.Sum64()); best == "" || x > bestHash || x == bestHash && m > best {
			best, bestHash = m, x
		}
	}
	return best
}

// mix spreads the bits of an FNV hash, whose high bits differ little for inputs that differ in their last byte.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// partitions takes those that rendezvous hashing assigns to this orchestrator, reads them, and keeps them until another
// has their runs at hand.
type partitions struct {
	*env
	member    string // the own id
	cursors   *cursors
	runs      *runTable
	lifecycle *lifecycle
	reaper    *reaper
	outgoing  *outgoing

	mine   func(partition int) bool // whether it is this loop's, where it is the process's
	gained func()                   // called after the first ownership
	// served has a bit for each partition whose runs are at hand, or of which something is on its way still; serves is told
	// when that changes. released is called when this orchestrator is leaving and has nothing that somebody else doesn't
	// serve.
	served   uint64
	leaving  bool
	serves   func(uint64)
	released func()
	alone    func(partitionSet) // is told where nobody else is at work any more
	worth    uint64             // of how many records another cursor has to spare the reading
	others   uint64             // the partitions in which another member may be at work, with a bit for each
	lacks    string             // what runs of the ledger need and this orchestrator does not know
}

// own takes the partitions that the live members leave to this one. One that is another's now is let go of when that
// other has its runs at hand and says so; until then this one goes on with them, so that no run stands still while its
// records are read elsewhere. Both may be at work on a run for a moment, which does no harm.
func (ps *partitions) own(members []kv.Member) {
	var among []string
	serves := map[string]uint64{}
	for _, m := range sharers(members) {
		among = append(among, m.ID)
		serves[m.ID] = m.Serves
	}
	gained := map[int][]int{} // by ledger shard
	var lost partitionSet
	for p := range ps.cursors.owned {
		if !ps.mine(p) {
			continue
		}
		next := owner(p, among)
		switch {
		case next == ps.member && ps.cursors.owned[p] == nil:
			shard := subjects.LedgerShard(p, ps.store.Shards())
			gained[shard] = append(gained[shard], p)
		case next != ps.member && ps.cursors.owned[p] != nil && serves[next]>>p&1 == 1:
			lost[p] = true
		}
	}
	ps.reaper.others = max(len(members)-1, 0)
	ps.drop(lost)
	for _, shard := range slices.Sorted(maps.Keys(gained)) {
		ps.take(shard, gained[shard])
	}
	if lost != (partitionSet{}) || len(gained) > 0 {
		ps.log.Info("ownership changed", "members", len(members), "partitions", ps.cursors.count())
	}
	ps.shareWith(members, among)
	self := slices.IndexFunc(members, func(m kv.Member) bool { return m.ID == ps.member && !m.Leaving })
	if ps.leaving = self < 0; !ps.leaving {
		ps.lacking(members[self].Lacks)
		ps.gained()
	}
	if ps.tellServed(); ps.leaving && len(among) == 0 {
		ps.released()
	}
}

// shareWith notes in which partitions another member may be at work as well.
func (ps *partitions) shareWith(members []kv.Member, among []string) {
	ps.others = 0
	for _, m := range members {
		if m.ID != ps.member {
			ps.others |= m.Serves
		}
	}
	for p := range ps.cursors.owned {
		if owner(p, among) != ps.member {
			ps.others |= 1 << p
		}
	}
	ps.share()
}

// share notes of which partitions it is not known here what others sent of the runs there, or this one itself before it
// read them anew. Where nobody is at work any more, it is looked for among what this one holds back.
func (ps *partitions) share() {
	others := ps.others | ps.outgoing.before()
	var alone partitionSet
	for p, c := range ps.cursors.owned {
		shared := c != nil && others>>p&1 == 1
		alone[p] = c != nil && ps.cursors.shared[p] && !shared
		ps.cursors.shared[p] = shared
	}
	if alone != (partitionSet{}) {
		ps.alone(alone)
	}
}

// sent looks again at what is shared and served, now that something of before is no longer on its way.
func (ps *partitions) sent() {
	ps.share()
	ps.tellServed()
}

// sharers returns the members among which partitions are divided: of those that stay, all that know what the runs of
// the ledger need. In the partitions of another such runs would stand still, and it judges plans by less than was
// agreed upon. Where nobody knows everything, all that stay share: so the other runs go on.
func sharers(members []kv.Member) []kv.Member {
	staying := slices.DeleteFunc(slices.Clone(members), func(m kv.Member) bool { return m.Leaving })
	knowing := slices.DeleteFunc(slices.Clone(staying), func(m kv.Member) bool { return m.Lacks != "" })
	if len(knowing) == 0 {
		return staying
	}
	return knowing
}

// lacking says, once for each change, that this orchestrator does not know what runs of the ledger need.
func (ps *partitions) lacking(needs string) {
	if needs != ps.lacks && needs != "" {
		ps.log.Warn("runs of the ledger need what this orchestrator does not know: it leaves the partitions to those that do; upgrade it", "needs", needs)
	}
	ps.lacks = needs
}

// worthACursor is of how many records a cursor more has to spare the reading: the server makes ready and sends that many in
// about the time that a cursor takes to be made.
const worthACursor = 500

// mostCursors is into how many cursors the partitions of a shard that are gained together are divided.
const mostCursors = 3

// take begins to read partitions of a shard that are ours from now on, each from where earlier owners have said that all
// before is over; of those of which nothing was heard, all. So what is read is what goes on, and not what ended within
// the grace, which may be a hundred times as much.
func (ps *partitions) take(shard int, gained []int) {
	life, over := ps.heard(shard)
	for _, b := range divided(gained, func(p int) uint64 { return over[p] }, mostCursors, ps.worth) {
		ps.follow(shard, b.partitions, kv.Since{Life: life, Seq: b.since})
	}
}

// heard returns how far the runs of a shard's partitions are over, as others have told, in the life of the ledger that
// this loop reads, or the one that was heard of last. Whether the ledger is in that life still is seen when it is read.
func (ps *partitions) heard(shard int) (life string, over [subjects.Partitions]uint64) {
	marks := slices.DeleteFunc(ps.reaper.marks(), func(m kv.Mark) bool { return m.Shard != shard })
	if len(marks) > 0 {
		life = marks[len(marks)-1].Life
	}
	for _, c := range ps.cursors.all() {
		if c.shard == shard && c.reading != nil {
			life = c.reading.Life()
		}
	}
	for _, m := range marks {
		for p := range over {
			if m.Life == life && m.Partitions>>p&1 == 1 {
				over[p] = max(over[p], m.Over)
			}
		}
	}
	return life, over
}

// follow opens a cursor over partitions that are ours from now on, which leaves out what lies below since.
func (ps *partitions) follow(shard int, list []int, since kv.Since) {
	c := &cursor{shard: shard, partitions: list, since: since.Seq}
	c.next = func() { ps.openNext(c) }
	for _, p := range list {
		ps.cursors.owned[p] = c
		ps.cursors.skipped[p] = skipped{below: since.Seq, until: ps.clock.Now().Add(max(ps.cfg.Grace, 3*freshFor))}
	}
	ps.job(func(ctx context.Context) {
		reading, err := ps.store.Follow(ctx, shard, list, since,
			func(e kv.Entry) { ps.mail.record(e, c) },
			func(last uint64) { ps.post(func() { ps.caughtUp(c, last) }) },
			func(err error) {
				ps.log.Warn("the ledger's cursor was lost: reading again", "shard", shard, "error", err)
				ps.post(func() { ps.restart(c) })
			})
		if err != nil {
			ps.log.Error("can't read the ledger: trying again", "shard", shard, "error", err)
			ps.later(followPause, func() { ps.restart(c) })
			return
		}
		ps.post(func() {
			c.reading = reading
			ps.cursors.keep(c)
		})
	})
}

// drop forgets partitions and their runs. What is on its way lands all the same and does no harm.
func (ps *partitions) drop(lost partitionSet) {
	if lost == (partitionSet{}) {
		return
	}
	before := ps.cursors.all()
	for p := range lost {
		if lost[p] {
			ps.cursors.owned[p], ps.cursors.skipped[p] = nil, skipped{}
			ps.runs.leave(p)
			ps.outgoing.leave(p)
		}
	}
	for _, r := range ps.runs.oldestFirst(func(r *run) bool { return lost[r.id.Partition()] }) {
		ps.lifecycle.forget(r)
	}
	for _, c := range before {
		ps.cursors.keep(c)
	}
}

// restart reads all partitions of a cursor again from the start: what was heard of them may be of a ledger that is another.
func (ps *partitions) restart(c *cursor) {
	var again partitionSet
	var list []int
	for p := range ps.cursors.owned {
		if ps.cursors.owned[p] == c {
			again[p] = true
			list = append(list, p)
		}
	}
	if len(list) > 0 && ps.ctx.Err() == nil {
		ps.drop(again)
		ps.follow(c.shard, list, kv.Since{})
		ps.share()
	}
}

// reread forgets everything and reads the ledger again: after a reconnect, what memory holds may never have been
// stored.
func (ps *partitions) reread() {
	for _, c := range ps.cursors.all() {
		ps.restart(c)
	}
}

// Taking over is reading the records of partitions and opening the runs that are found there. Among them are all that
// finished within the grace, which may be thousands times those that go on. So the runs come in the order of their last
// records, the latest first: what goes on has one of a moment ago. And only some are opened at a time, so that what the
// first of them need done next isn't left waiting behind the last.

// openWide is how many runs of a cursor are opened at a time.
const openWide = 32

// caughtUp ends the replay of what was there: the runs found so far are opened, and what should be out is compared with
// what is.
func (ps *partitions) caughtUp(c *cursor, last uint64) {
	c.caughtUp, c.last = true, max(c.last, last)
	ps.log.Info("partitions were read", "shard", c.shard, "partitions", len(c.partitions), "since", c.since, "records", c.lay)
	for _, r := range ps.runs.byID {
		if ps.cursors.owned[r.id.Partition()] == c && r.phase == replaying {
			c.closed = append(c.closed, r)
		}
	}
	slices.SortFunc(c.closed, func(a, b *run) int { return cmp.Or(cmp.Compare(b.lastSeq, a.lastSeq), older(a, b)) })
	ps.openNext(c)
}

// openNext opens as many runs as may be opened at a time. When none is left, the cursor's partitions are served.
func (ps *partitions) openNext(c *cursor) {
	for len(c.closed) > 0 && c.opening < openWide {
		r := c.closed[0]
		c.closed = c.closed[1:]
		if r.phase == replaying {
			c.opening++
			r.opener = c
			ps.lifecycle.open(r)
		}
	}
	if c.opening == 0 {
		c.closed = nil
		ps.tellServed()
	}
}

// tellServed tells which partitions this one is at work in, if that has changed.
func (ps *partitions) tellServed() {
	owned := ps.cursors.set()
	left := ps.outgoing.before() &^ owned.bits()
	if set := ps.cursors.atHand() | left; set != ps.served {
		ps.served = set
		ps.serves(set)
	}
	if ps.leaving && ps.cursors.count() == 0 && left == 0 {
		ps.released()
	}
}

// atHand returns the partitions whose runs are known, with a bit for each.
func (cs *cursors) atHand() (set uint64) {
	for p, c := range cs.owned {
		if c != nil && c.caughtUp && c.opening == 0 && len(c.closed) == 0 {
			set |= 1 << p
		}
	}
	return set
}

// set returns the partitions that are owned.
func (cs *cursors) set() (owned partitionSet) {
	for p, c := range cs.owned {
		owned[p] = c != nil
	}
	return owned
}
