package orchestrator

import (
	"context"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// reaper removes finished runs from the ledger after their grace, and what lies there without a plan.
//
// Records lie in the order they were written, so where every run that began before some sequence is over, all records
// below it go in one request, as the marks of a shard's owners say. What a longer run keeps there for a while
// goes by its own name, run by run (orphans.go), so that one that waits for days holds nothing up but itself.
type reaper struct {
	*env
	cursors *cursors
	runs    *runTable
	forget  func(*run)
	// others is how many orchestrators there are besides this one. mark tells them how far this one's runs are over,
	// marks returns what they told.
	others   int
	siblings int // other loops of this process, which are owners like others
	mark     func([]kv.Mark)
	marks    func() []kv.Mark

	done    []*run // finished, by the time they were; in grace
	young   []*run // past their grace, but too young to go
	over    []*run // past their grace, still in the ledger
	orphans map[kv.Generation]*cursor
	strays  map[stray]bool
	unfree  map[kv.Generation]bool // orphans that are to go before their grace
	// postponed is how many records without a plan wait for the grace of what was skipped.
	postponed int
	busy      bool // orphans or strays are being purged
	seeking   *seeking
	worth     uint64 // of how many records a mark more has to spare the reading
	ticks     int
	refused   int // purges in a row that the ledger's life refused
}

const (
	purgeEvery   = time.Second
	purgeTurns   = 5  // at most so many intervals are between an owner's purges
	purgeRefused = 30 // after so many purges in a row that were refused they do so whatever the ledger's life
)

func newReaper(e *env, c *cursors, runs *runTable) *reaper {
	return &reaper{
		env: e, cursors: c, runs: runs,
		mark: func([]kv.Mark) {}, marks: func() []kv.Mark { return nil }, worth: worthACursor,
	}
}

// finished notes that a run is over, and begins its grace.
func (rp *reaper) finished(r *run) { rp.done = append(rp.done, r) }

// purge removes what is past its grace.
func (rp *reaper) purge(now time.Time) {
	rp.age(now)
	rp.advance()
	own := rp.ownMarks(now)
	others := rp.others + rp.siblings
	if others > 0 {
		rp.mark(own)
	}
	// Each of several owners makes the requests, at its own times, and forgets its own runs after them: so nobody needs
	// to know whether another did, and all make no more requests than one.
	if rp.ticks++; rp.ticks%min(1+others, purgeTurns) == 0 {
		rp.purgeTogether(own, now)
	}
	rp.release(now)
	rp.seek(now)
	rp.purgeOrphans()
}

// age takes note of the runs whose records may go from now on.
func (rp *reaper) age(now time.Time) {
	for len(rp.done) > 0 && now.Sub(rp.done[0].doneAt) >= rp.cfg.Grace {
		rp.young = append(rp.young, rp.done[0])
		rp.done[0] = nil
		rp.done = rp.done[1:]
	}
	rp.young = slices.DeleteFunc(rp.young, func(r *run) bool {
		if now.Sub(r.doneAt) < r.stays() {
			return false
		}
		if r.phase == finished {
			r.over = true
			rp.over = append(rp.over, r)
		}
		return true
	})
}

// purgeTogether removes all that lies below everybody's marks.
func (rp *reaper) purgeTogether(own []kv.Mark, now time.Time) {
	if len(rp.over) == 0 && !rp.skips(now) {
		return
	}
	all := slices.Concat(own, rp.marks())
	for shard := range rp.store.Shards() {
		if life, upTo, whole := rp.wholeShard(shard, all); whole {
			rp.purgeBelow(shard, upTo, life, now)
		}
	}
}

// purgeBelow removes all records of a shard below a sequence and forgets the runs that lay wholly there.
func (rp *reaper) purgeBelow(shard int, upTo uint64, life string, now time.Time) {
	var gone, kept []*run
	for _, r := range rp.over {
		switch {
		case r.phase != finished: // not ours any more
		case rp.shardOf(r.id) == shard && r.lastSeq < upTo:
			gone = append(gone, r)
		default:
			kept = append(kept, r)
		}
	}
	if skips := rp.goesBelow(shard, upTo, now); len(gone) == 0 && !skips {
		return
	}
	rp.over = kept
	rp.job(func(ctx context.Context) {
		err := rp.store.PurgeUpTo(ctx, shard, upTo, life)
		rp.post(func() {
			rp.answered(shard, err)
			for _, r := range gone {
				if err != nil {
					rp.over = append(rp.over, r)
					continue
				}
				if r.lastSeq >= upTo { // a record that came too late for this
					rp.orphan(r.id, r.generation)
				}
				rp.forget(r)
			}
		})
		if err != nil && ctx.Err() == nil {
			rp.log.Warn("finished runs could not be purged; they are tried again", "runs", len(gone), "error", err)
		}
	})
}

func (rp *reaper) shardOf(id subjects.Run) int {
	return subjects.LedgerShard(id.Partition(), rp.store.Shards())
}

// answered takes what a purge came to.
func (rp *reaper) answered(shard int, err error) {
	switch {
	case err == nil:
		rp.refused = 0
	case fault.CodeOf(err) == fault.NotReady: // perhaps a leader was elected unheard
		rp.refused++
		rp.check(shard)
	}
}

// release lets runs go by their own names that a longer one, or an owner that tells no marks, has kept for too long from
// going with the rest.
func (rp *reaper) release(now time.Time) {
	rp.over = slices.DeleteFunc(rp.over, func(r *run) bool {
		if r.phase == finished && now.Sub(r.doneAt) >= rp.cfg.Grace+purgeAtLast && rp.orphan(r.id, r.generation) {
			rp.forget(r)
		}
		return r.phase != finished
	})
}

// Where several orchestrators share a ledger shard, each tells the others with its member key how far the runs of its
// partitions are over (kv.Mark). Whoever has marks of all partitions of a shard may remove everything below the lowest.
//
// Beside that they tell below which sequence all is over, within its grace or past it. Who takes a partition over begins to
// read there (partitions.take). Of what it has skipped it knows nothing but that it was over when it came: so it tells no
// mark of what may go before a grace has passed since, and then removes what is left of it (skipped, seek).
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
// its cursor has not read yet; 0 where that isn't known, as of what was skipped when it was read (skipped). And the
// sequence of the plan of the first run that goes on, likewise.
func (rp *reaper) lowest(now time.Time) (low, going *[subjects.Partitions]uint64) {
	low, going = new([subjects.Partitions]uint64), new([subjects.Partitions]uint64)
	over := isOver(now)
	for i, c := range rp.cursors.owned {
		if c == nil || !c.caughtUp || c.reading == nil {
			continue
		}
		read := c.last + 1
		going[i] = read
		if seq, ok := rp.runs.going[i].first(over); ok {
			going[i] = min(read, seq)
		}
		if rp.cursors.skipped[i].recent(0, now) {
			continue
		}
		low[i] = read
		if seq, ok := rp.runs.oldest[i].first(mayGo); ok {
			low[i] = min(read, seq)
		}
	}
	for g := range rp.unfree {
		if p := g.Run.Partition(); going[p] > 0 {
			going[p] = min(going[p], g.Number)
		}
	}
	return low, going
}

// mostMarks is how many marks an owner tells of one shard, in one life.
const mostMarks = 4

// ownMarks returns the marks of what is ours: for each shard, and for each of its lives where cursors have read several,
// one mark, or some where partitions lie far apart.
func (rp *reaper) ownMarks(now time.Time) (all []kv.Mark) {
	type told struct {
		shard   int
		life    string
		unknown bool // what must stay
	}
	low, going := rp.lowest(now)
	var order []told
	of := map[told][]int{}
	for p, over := range going {
		if over == 0 {
			continue
		}
		x := told{subjects.LedgerShard(p, rp.store.Shards()), rp.cursors.owned[p].reading.Life(), low[p] == 0}
		if of[x] == nil {
			order = append(order, x)
		}
		of[x] = append(of[x], p)
	}
	for _, x := range order {
		for _, g := range divided(of[x], func(p int) uint64 { return going[p] }, mostMarks, rp.worth) {
			m := kv.Mark{Shard: x.shard, Life: x.life, Below: low[g.partitions[0]], Over: g.since}
			for _, p := range g.partitions {
				m.Partitions |= 1 << p
				m.Below = min(m.Below, low[p])
			}
			all = append(all, m)
		}
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
