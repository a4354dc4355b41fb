package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// orphan is a generation of which records lie in the ledger and no plan: a zombie's, or what a purge left when its process
// died.
type orphan struct {
	id         subjects.Run
	generation uint64
}

// stray is a record where no plan will ever be found for it. Whoever hosts a tool may write such. It goes by its own name, up
// to its own sequence: a purge of the generation that it claims to be of would take along a plan that is older than that.
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

// withoutPlan takes a record of a generation whose plan doesn't stand. While a cursor replays what is there, the plan can't be
// missing and come later: it has the lowest sequence of its run.
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

// stray notes a record that is nobody's. One on a subject with a wildcard in it can't be named alone: it goes with all that lies
// below some sequence, as do those that don't fit.
func (rp *reaper) stray(e kv.Entry) {
	if rp.strays == nil {
		rp.strays = map[stray]bool{}
	}
	if len(rp.strays) < maxOrphans && subjects.Literal(e.Subject) {
		rp.strays[stray{e.Subject, e.Seq}] = true
	}
}

// purgeOrphans removes generations and stray records one by one. For each purge the server counts anew what every cursor of the
// stream has still to read, which takes the longer the more the stream holds. So one is made after the other, and the more time they
// take, the longer are the pauses: what is left in the ledger for a while harms nobody, a server that does nothing else does.
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
