package orchestrator

import (
	"cmp"
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
	// others is how many orchestrators there are besides this one. mark tells them how far this one's runs are over,
	// marks returns what they told.
	others   int
	siblings int // other loops of this process, which are owners like others
	mark     func([]kv.Mark)
	marks    func() []kv.Mark

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
	// Each of several owners makes the requests, at its own times, and forgets its own runs after them: so nobody needs
	// to know whether another did, and all make no more requests than one.
	others := rp.others + rp.siblings
	if rp.ticks++; rp.ticks%min(1+others, purgeTurns) != 0 || others+len(rp.over) == 0 {
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

// purgeHeldUp handles runs that a longer one, or an owner that tells no marks, keeps from going with the rest: with all
// others of their partition that are over where those are many, else one by one.
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

// orphan is a generation of which records lie in the ledger and no plan: a zombie's, or what a purge left when its
// process died.
type orphan struct {
	id         subjects.Run
	generation uint64
}

// stray is a record where no plan will ever be found for it. Whoever hosts a tool may write such. It goes by its own
// name, up to its own sequence: a purge of the generation that it claims to be of would take along a plan that is older
// than that.
type stray struct {
	subject string
	seq     uint64
}

const (
	maxOrphans   = 100_000
	orphansATick = 2_000
	purgeQuick   = time.Millisecond // a purge that takes longer is followed by a pause,
	purgeRest    = 9                // so many times as long
)

// withoutPlan takes a record of a generation whose plan doesn't stand. While a cursor replays what is there, the plan
// can't be missing and come later: it has the lowest sequence of its run.
func (rp *reaper) withoutPlan(rec subjects.Record, r *run, e kv.Entry) {
	switch {
	case rec.Kind == subjects.UnknownRecord && (rec.Generation == 0 || r != nil && rec.Generation > r.generation): // a newer version's
	case rec.Generation >= e.Seq || r != nil && rec.Generation > r.generation:
		// No plan has that sequence: it would have been read before this.
		rp.stray(e)
	default:
		rp.orphan(rec.Run, rec.Generation)
	}
}

// orphan notes records whose plan is gone. Those that don't fit come up again when the ledger is read anew.
func (rp *reaper) orphan(id subjects.Run, generation uint64) {
	if rp.orphans == nil {
		rp.orphans = map[orphan]bool{}
	}
	if len(rp.orphans) < maxOrphans {
		rp.orphans[orphan{id, generation}] = true
	}
}

// stray notes a record that is nobody's. One on a subject with a wildcard in it can't be named alone: it goes with all
// that lies below some sequence, as do those that don't fit.
func (rp *reaper) stray(e kv.Entry) {
	if rp.strays == nil {
		rp.strays = map[stray]bool{}
	}
	if len(rp.strays) < maxOrphans && subjects.Literal(e.Subject) {
		rp.strays[stray{e.Subject, e.Seq}] = true
	}
}

// purgeOrphans removes generations and stray records one by one. For each purge the server counts anew what every
// cursor of the stream has still to read, which takes the longer the more the stream holds. So one is made after the
// other, and the more time they take, the longer are the pauses: what is left in the ledger for a while harms nobody, a
// server that does nothing else does.
func (rp *reaper) purgeOrphans() {
	if rp.busy || len(rp.orphans)+len(rp.strays) == 0 {
		return
	}
	orphans, strays := rp.next(rp.runs.byID)
	rp.busy = true
	rp.job(func(ctx context.Context) {
		defer rp.post(func() { rp.busy = false })
		for i, o := range orphans {
			if !rp.purgeOne(ctx, o.id.Plain(), func() error { return rp.store.PurgeRun(ctx, o.id, o.generation) }) {
				rp.post(func() { rp.again(orphans[i:], strays) })
				return
			}
		}
		for i, x := range strays {
			if !rp.purgeOne(ctx, x.subject, func() error { return rp.store.PurgeRecord(ctx, x.subject, x.seq) }) {
				rp.post(func() { rp.again(nil, strays[i:]) })
				return
			}
		}
	})
}

// next takes out what is purged next, in some order that is always the same.
func (rp *reaper) next(runs map[subjects.Run]*run) (orphans []orphan, strays []stray) {
	for o := range rp.orphans {
		if len(orphans) == orphansATick {
			break
		}
		delete(rp.orphans, o)
		if r := runs[o.id]; r == nil || r.generation != o.generation {
			orphans = append(orphans, o)
		}
	}
	for x := range rp.strays {
		if len(orphans)+len(strays) >= orphansATick {
			break
		}
		delete(rp.strays, x)
		strays = append(strays, x)
	}
	slices.SortFunc(orphans, func(a, b orphan) int {
		return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.id.Key(), b.id.Key()))
	})
	slices.SortFunc(strays, func(a, b stray) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.subject, b.subject)) })
	return orphans, strays
}

// again puts back what could not be purged.
func (rp *reaper) again(orphans []orphan, strays []stray) {
	for _, o := range orphans {
		rp.orphan(o.id, o.generation)
	}
	for _, x := range strays {
		rp.stray(kv.Entry{Subject: x.subject, Seq: x.seq})
	}
}

// purgeOne makes one purge and the pause behind it; false where it failed.
func (rp *reaper) purgeOne(ctx context.Context, what string, purge func() error) bool {
	began := rp.clock.Now()
	if err := purge(); err != nil {
		if ctx.Err() == nil {
			rp.log.Warn("records without a plan could not be purged", "of", what, "error", err)
		}
		return false
	}
	if took := rp.clock.Now().Sub(began); took > purgeQuick {
		rp.clock.Pause(ctx, min(purgeRest*took, time.Second))
	}
	return true
}
