package orchestrator

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// reaper removes finished runs from the ledger after their grace, and what lies there without a plan.
//
// Removing runs one by one costs two requests each. Records lie in the order they were written, so where every run that
// began before some sequence is over, all records below it go in one request: of the whole shard where the marks of its
// owners (marks.go) say so, else of a partition.
type reaper struct {
	*env
	cursors *cursors
	runs    *runTable
	forget  func(*run)
	// others is how many orchestrators there are besides this one. mark tells them how far this one's runs are over, marks
	// returns what they told.
	others int
	mark   func([]kv.Mark)
	marks  func() []kv.Mark

	done    []*run // finished, by the time they were; in grace
	young   []*run // past their grace, but too young to go
	over    []*run // past their grace, still in the ledger
	orphans map[orphan]bool
	strays  map[stray]bool
	busy    bool // orphans or strays are being purged
	ticks   int
	refused int // purges in a row that the ledger's life refused
}

const (
	purgeEvery   = time.Second
	purgeTurns   = 5                // at most so many intervals are between an owner's purges
	purgeAtOnce  = 32               // so many runs of a partition make one request for all worth it
	purgeAtLast  = 15 * time.Second // runs that a longer one holds up this long past their grace go one by one
	purgeRefused = 30               // and so do all after so many purges of many in a row that were refused
)

func newReaper(e *env, c *cursors, runs *runTable) *reaper {
	return &reaper{
		env: e, cursors: c, runs: runs,
		mark: func([]kv.Mark) {}, marks: func() []kv.Mark { return nil },
	}
}

// finished notes that a run is over, and begins its grace.
func (rp *reaper) finished(r *run) { rp.done = append(rp.done, r) }

// purge removes what is past its grace.
func (rp *reaper) purge(now time.Time) {
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
	rp.purgeOrphans()
	// Each of several owners makes the requests, at its own times, and forgets its own runs after them: so nobody needs to know
	// whether another did, and all make no more requests than one.
	if rp.ticks++; rp.ticks%min(1+rp.others, purgeTurns) != 0 || rp.others+len(rp.over) == 0 {
		return
	}
	rp.advance()
	own := rp.ownMarks()
	rp.mark(own)
	if len(rp.over) == 0 {
		return
	}
	all := slices.Concat(own, rp.marks())
	for shard := range rp.store.Shards() {
		if life, upTo, whole := rp.wholeShard(shard, all); whole {
			rp.purgeRange(shard, "", upTo, life, func(r *run) bool { return subjects.LedgerShard(r.id.Partition(), rp.store.Shards()) == shard })
		}
	}
	rp.purgeHeldUp(now)
}

// purgeRange removes all records below a sequence and forgets the runs that lay wholly there.
func (rp *reaper) purgeRange(shard int, filter string, upTo uint64, life string, in func(*run) bool) {
	var gone, kept []*run
	for _, r := range rp.over {
		switch {
		case r.phase != finished: // not ours any more
		case in(r) && r.lastSeq < upTo:
			gone = append(gone, r)
		default:
			kept = append(kept, r)
		}
	}
	if len(gone) == 0 {
		return
	}
	rp.over = kept
	rp.job(func(ctx context.Context) {
		err := rp.store.PurgeUpTo(ctx, shard, filter, upTo, life)
		rp.post(func() {
			if fault.CodeOf(err) == fault.NotReady { // perhaps a leader was elected unheard
				rp.refused++
				rp.check(shard)
			} else if err == nil {
				rp.refused = 0
			}
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

// purgeHeldUp sees to runs that a longer one, or an owner that tells no marks, keeps from going with the rest: with all others
// of their partition that are over where those are many, else one by one.
func (rp *reaper) purgeHeldUp(now time.Time) {
	overdue := func(r *run) bool { return now.Sub(r.doneAt) >= rp.cfg.Grace+purgeAtLast }
	if !slices.ContainsFunc(rp.over, overdue) {
		return
	}
	byPartition, late := map[int][]*run{}, map[int]bool{}
	for _, r := range rp.over {
		p := r.id.Partition()
		byPartition[p] = append(byPartition[p], r)
		late[p] = late[p] || overdue(r)
	}
	low := rp.lowest()
	for _, partition := range slices.Sorted(maps.Keys(byPartition)) {
		list := byPartition[partition]
		switch {
		case !late[partition]:
		case below(list, low[partition]) >= purgeAtOnce && rp.refused < purgeRefused:
			shard := subjects.LedgerShard(partition, rp.store.Shards())
			rp.purgeRange(shard, subjects.PartitionFilter(partition, rp.store.Shards()), low[partition], rp.cursors.owned[partition].reading.Life(),
				func(r *run) bool { return r.id.Partition() == partition })
		default:
			for _, r := range list {
				if overdue(r) && len(rp.orphans) < orphansATick {
					rp.orphan(r.id, r.generation)
					rp.forget(r)
				}
			}
		}
	}
	rp.over = slices.DeleteFunc(rp.over, func(r *run) bool { return r.phase != finished })
}

func below(list []*run, seq uint64) (n int) {
	for _, r := range list {
		if r.lastSeq < seq {
			n++
		}
	}
	return n
}
