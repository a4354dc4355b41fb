package orchestrator

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// purger removes finished runs from the ledger after their grace.
//
// Removing runs one by one costs two requests each. Records lie in the order they were written, so where every run that
// began before some sequence is over, all records below it go in one request: of the whole shard where the marks of its
// owners (marks.go) say so, else of a partition.
type purger struct {
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

// finished notes that a run is over, and begins its grace.
func (p *purger) finished(r *run) { p.done = append(p.done, r) }

// purge removes what is past its grace.
func (l *loop) purge(now time.Time) {
	p := &l.purges
	for len(p.done) > 0 && now.Sub(p.done[0].doneAt) >= l.cfg.Grace {
		p.young = append(p.young, p.done[0])
		p.done[0] = nil
		p.done = p.done[1:]
	}
	p.young = slices.DeleteFunc(p.young, func(r *run) bool {
		if now.Sub(r.doneAt) < r.stays() {
			return false
		}
		if r.phase == finished {
			r.over = true
			p.over = append(p.over, r)
		}
		return true
	})
	l.purgeOrphans()
	// Each of several owners makes the requests, at its own times, and forgets its own runs after them: so nobody needs to know
	// whether another did, and all make no more requests than one.
	if p.ticks++; p.ticks%min(1+l.others, purgeTurns) != 0 || l.others+len(p.over) == 0 {
		return
	}
	l.advance()
	own := l.ownMarks()
	l.mark(own)
	if len(p.over) == 0 {
		return
	}
	all := slices.Concat(own, l.marks())
	for shard := range l.store.Shards() {
		if life, upTo, whole := l.wholeShard(shard, all); whole {
			l.purgeRange(shard, "", upTo, life, func(r *run) bool { return subjects.LedgerShard(r.id.Partition(), l.store.Shards()) == shard })
		}
	}
	l.purgeHeldUp(now)
}

// purgeRange removes all records below a sequence and forgets the runs that lay wholly there.
func (l *loop) purgeRange(shard int, filter string, upTo uint64, life string, in func(*run) bool) {
	var gone, kept []*run
	for _, r := range l.purges.over {
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
	l.purges.over = kept
	l.job(func(ctx context.Context) {
		err := l.store.PurgeUpTo(ctx, shard, filter, upTo, life)
		l.post(func() {
			if fault.CodeOf(err) == fault.NotReady { // perhaps a leader was elected unheard
				l.purges.refused++
				l.check(shard)
			} else if err == nil {
				l.purges.refused = 0
			}
			for _, r := range gone {
				if err != nil {
					l.purges.over = append(l.purges.over, r)
					continue
				}
				if r.lastSeq >= upTo { // a record that came too late for this
					l.purges.orphan(r.id, r.generation)
				}
				l.forget(r)
			}
		})
		if err != nil && ctx.Err() == nil {
			l.log.Warn("finished runs could not be purged; they are tried again", "runs", len(gone), "error", err)
		}
	})
}

// purgeHeldUp sees to runs that a longer one, or an owner that tells no marks, keeps from going with the rest: with all others
// of their partition that are over where those are many, else one by one.
func (l *loop) purgeHeldUp(now time.Time) {
	overdue := func(r *run) bool { return now.Sub(r.doneAt) >= l.cfg.Grace+purgeAtLast }
	if !slices.ContainsFunc(l.purges.over, overdue) {
		return
	}
	byPartition, late := map[int][]*run{}, map[int]bool{}
	for _, r := range l.purges.over {
		p := r.id.Partition()
		byPartition[p] = append(byPartition[p], r)
		late[p] = late[p] || overdue(r)
	}
	low := l.lowest()
	for _, partition := range slices.Sorted(maps.Keys(byPartition)) {
		list := byPartition[partition]
		switch {
		case !late[partition]:
		case below(list, low[partition]) >= purgeAtOnce && l.purges.refused < purgeRefused:
			shard := subjects.LedgerShard(partition, l.store.Shards())
			l.purgeRange(shard, subjects.PartitionFilter(partition, l.store.Shards()), low[partition], l.owned[partition].reading.Life(),
				func(r *run) bool { return r.id.Partition() == partition })
		default:
			for _, r := range list {
				if overdue(r) && len(l.purges.orphans) < orphansATick {
					l.purges.orphan(r.id, r.generation)
					l.forget(r)
				}
			}
		}
	}
	l.purges.over = slices.DeleteFunc(l.purges.over, func(r *run) bool { return r.phase != finished })
}

func below(list []*run, seq uint64) (n int) {
	for _, r := range list {
		if r.lastSeq < seq {
			n++
		}
	}
	return n
}
