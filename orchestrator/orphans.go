package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// What goes by its own name is a generation that nobody needs any more, whole or in part: of a run that is over while a
// longer one goes on, of a zombie, or what a purge left when its process died. It is noted with the cursor that read it,
// because it is known of the life of the ledger that this one reads: a server that lost the end of its file may give the
// name to another. Where the cursor is gone by the time of the purge it is forgotten; whoever reads the ledger then
// finds what is there.

// stray is a record where no plan will ever be found for it. Whoever hosts a tool may write such. It goes by its own
// name, up to its own sequence: a purge of the generation that it claims to be of would take along a plan that is older
// than that.
type stray struct {
	subject string
	seq     uint64
}

const (
	maxOrphans    = 100_000
	orphansAtOnce = 2_000 // by one job; as many go in the next, at once
)

// withoutPlan takes a record of a generation whose plan doesn't stand. While a cursor replays what is there, the plan
// can't be missing and come later: it has the lowest sequence of its run.
func (rp *reaper) withoutPlan(rec subjects.Record, r *run, e kv.Entry) {
	switch {
	case rec.Kind == subjects.UnknownRecord && (rec.Generation == 0 || r != nil && rec.Generation > r.generation): // a newer version's
	case rec.Generation >= e.Seq || r != nil && rec.Generation > r.generation:
		// No plan has that sequence: it would have been read before this.
		rp.stray(e)
	case rp.recent(rec):
		// Its plan was not read, and stands perhaps. Until its grace has passed it stays, so that its id is not free while it
		// may count as new; then it is looked for.
	case r == nil && rp.cursors.skipped[rec.Run.Partition()].stays(rp.clock.Now()):
		// It has no plan. But an older one of its id may stand that was skipped, which goes with what goes of a later generation.
		rp.postpone(rec, e)
	default:
		rp.orphan(rec.Run, rec.Generation)
	}
}

// postpone takes a record without a plan once more when what was skipped has passed its grace, as long as the same cursor reads
// there. One that doesn't fit comes up again when the ledger is read anew.
func (rp *reaper) postpone(rec subjects.Record, e kv.Entry) {
	if rp.postponed >= maxOrphans {
		return
	}
	rp.postponed++
	partition, named := rec.Run.Partition(), kv.Entry{Subject: e.Subject, Seq: e.Seq}
	from := rp.cursors.owned[partition]
	rp.later(rp.cursors.skipped[partition].until.Sub(rp.clock.Now()), func() {
		rp.postponed--
		if rp.cursors.owned[partition] == from {
			rp.withoutPlan(rec, rp.runs.byID[rec.Run], named)
		}
	})
}

// recent reports whether a record is of a generation that was skipped, and may be within its grace.
func (rp *reaper) recent(rec subjects.Record) bool {
	x := &rp.cursors.skipped[rec.Run.Partition()]
	return x.below > 0 && x.recent(rec.Generation, rp.clock.Now())
}

// orphan notes a generation that is to go by its name, and returns whether there is room for it. Records that don't fit
// come up again when the ledger is read anew.
func (rp *reaper) orphan(id subjects.Run, generation uint64) bool {
	if rp.orphans == nil {
		rp.orphans = map[kv.Generation]*cursor{}
	}
	if len(rp.orphans) >= maxOrphans {
		return false
	}
	rp.orphans[kv.Generation{Run: id, Number: generation}] = rp.cursors.owned[id.Partition()]
	return true
}

// undismissed notes a run that is to leave the ledger before its grace and is there still: until it has, its id is not free, so
// it does not count as over.
func (rp *reaper) undismissed(id subjects.Run, generation uint64) {
	if rp.orphan(id, generation) {
		if rp.unfree == nil {
			rp.unfree = map[kv.Generation]bool{}
		}
		rp.unfree[kv.Generation{Run: id, Number: generation}] = true
	}
}

// dismissed notes that all records of a run up to a sequence left the ledger before its grace. What was read of it since
// may have come behind that.
func (rp *reaper) dismissed(r *run, upTo uint64) {
	if r.lastSeq > upTo {
		rp.orphan(r.id, r.generation)
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

// purgeOrphans removes what goes by its own name, some of it at a time.
func (rp *reaper) purgeOrphans() {
	if rp.busy || len(rp.orphans)+len(rp.strays) == 0 {
		return
	}
	groups, strays := rp.nextOrphans(), rp.nextStrays()
	rp.busy = true
	rp.job(func(ctx context.Context) {
		all := true
		for _, g := range groups {
			err := rp.store.PurgeRuns(ctx, g.from.shard, g.runs, g.life)
			rp.warn(ctx, err)
			rp.post(func() { rp.purged(g, err) })
			all = all && err == nil
		}
		for i, x := range strays {
			if err := rp.store.PurgeRecord(ctx, x.subject, x.seq); err != nil {
				rp.warn(ctx, err)
				rp.post(func() { rp.strayed(strays[i:]) })
				all = false
				break
			}
		}
		rp.post(func() {
			if rp.busy = false; all && len(rp.orphans) >= orphansAtOnce {
				rp.purgeOrphans()
			}
		})
	})
}

func (rp *reaper) warn(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		rp.log.Warn("records that nobody needs could not be purged; they are tried again", "error", err)
	}
}

// group is orphans of one cursor, the oldest first.
type group struct {
	from *cursor
	life string // of the ledger that it reads
	runs []kv.Generation
}

// nextOrphans takes out what is purged next. What was read by a cursor that is gone is forgotten, and so is what has
// been read again as a run.
func (rp *reaper) nextOrphans() (groups []group) {
	var due []kv.Generation
	from := map[kv.Generation]*cursor{}
	for g, c := range rp.orphans {
		if len(due) == orphansAtOnce {
			break
		}
		if c != nil && c.reading == nil {
			continue // its life isn't known yet
		}
		delete(rp.orphans, g)
		r := rp.runs.byID[g.Run]
		if c != nil && rp.cursors.owned[g.Run.Partition()] == c && (r == nil || r.generation != g.Number) {
			due, from[g] = append(due, g), c
		} else {
			delete(rp.unfree, g)
		}
	}
	slices.SortFunc(due, func(a, b kv.Generation) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Run.Key(), b.Run.Key()))
	})
	for _, g := range due {
		i := slices.IndexFunc(groups, func(x group) bool { return x.from == from[g] })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{from: from[g], life: rp.lifeOf(from[g])})
		}
		groups[i].runs = append(groups[i].runs, g)
	}
	return groups
}

// lifeOf returns the life of the ledger that a cursor reads; none where purges are refused in every life.
func (rp *reaper) lifeOf(c *cursor) string {
	if rp.refused >= purgeRefused {
		return ""
	}
	return c.reading.Life()
}

// purged takes what a purge of orphans came to. One that was read again meanwhile is of the cursor that did.
func (rp *reaper) purged(g group, err error) {
	rp.answered(g.from.shard, err)
	for _, x := range g.runs {
		if err == nil {
			delete(rp.unfree, x)
		} else if rp.orphans[x] == nil {
			rp.orphans[x] = g.from
		}
	}
}

// nextStrays takes out the stray records that are purged next, in some order that is always the same.
func (rp *reaper) nextStrays() (strays []stray) {
	for x := range rp.strays {
		if len(strays) == orphansAtOnce {
			break
		}
		delete(rp.strays, x)
		strays = append(strays, x)
	}
	slices.SortFunc(strays, func(a, b stray) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.subject, b.subject)) })
	return strays
}

// strayed puts back what could not be purged.
func (rp *reaper) strayed(strays []stray) {
	for _, x := range strays {
		rp.stray(kv.Entry{Subject: x.subject, Seq: x.seq})
	}
}

// What an owner has skipped when it took a partition over goes with all that lies below the marks of a shard. What a longer
// run holds up there would stay, for nobody has it in memory to let it go by its name. So once it is time for that, the
// owner reads each such partition once more, one after the other, and notes what it finds as orphans.

// seeking is the reading of a partition for what is left of what was skipped there.
type seeking struct {
	partition int
	from      *cursor // that skipped it
	below     uint64
	found     map[kv.Generation]bool
	strays    []kv.Entry
	read      bool         // to its end: what comes behind that is none of this; known to the cursor's callbacks
	reading   kv.Following // nil until it has begun
	ended     bool
}

// take notes a record of a generation that was skipped, as far as there is room; it may be called beside the loop.
func (s *seeking) take(e kv.Entry) {
	rec, ok := subjects.ParseRecord(e.Subject)
	switch {
	case s.read || len(s.found)+len(s.strays) >= maxOrphans:
	case !ok:
		if rec.Kind == subjects.MisplacedRecord && e.Seq < s.below {
			s.strays = append(s.strays, kv.Entry{Subject: e.Subject, Seq: e.Seq})
		}
	case rec.Kind == subjects.PlanKind:
		if e.Seq < s.below {
			s.found[kv.Generation{Run: rec.Run, Number: e.Seq}] = true
		}
	case rec.Kind == subjects.UnknownRecord && rec.Generation == 0: // a newer version's
	case rec.Generation >= e.Seq:
		if e.Seq < s.below {
			s.strays = append(s.strays, kv.Entry{Subject: e.Subject, Seq: e.Seq})
		}
	case rec.Generation < s.below:
		s.found[kv.Generation{Run: rec.Run, Number: rec.Generation}] = true
	}
}

// seek begins to read a partition of which something was skipped, once all of it may go by its name.
func (rp *reaper) seek(now time.Time) {
	if rp.seeking != nil {
		return
	}
	for p := range rp.cursors.skipped {
		x, c := &rp.cursors.skipped[p], rp.cursors.owned[p]
		if x.below == 0 || now.Sub(x.until) < purgeAtLast || c == nil || !c.caughtUp || c.reading == nil {
			continue
		}
		s := &seeking{partition: p, from: c, below: x.below, found: map[kv.Generation]bool{}}
		rp.seeking = s
		rp.job(func(ctx context.Context) {
			reading, err := rp.store.Follow(ctx, c.shard, []int{p}, kv.Since{}, s.take,
				func(uint64) {
					s.read = true
					rp.post(func() { rp.sought(s, true) })
				},
				func(error) { rp.post(func() { rp.sought(s, false) }) })
			rp.post(func() {
				if err != nil {
					rp.sought(s, false) // the next turn tries again
					return
				}
				if s.reading = reading; s.ended {
					reading.Stop()
				}
			})
		})
		return
	}
}

// sought ends the reading of a partition; all is whether it was read to its end.
func (rp *reaper) sought(s *seeking, all bool) {
	if s.ended {
		return
	}
	if s.ended, rp.seeking = true, nil; s.reading != nil {
		s.reading.Stop()
	}
	if !all || rp.cursors.owned[s.partition] != s.from {
		return // who reads it anew finds it
	}
	left := len(s.found) + len(s.strays)
	if left > 0 {
		rp.log.Info("what was skipped when a partition was read lies there still, and goes by its name", "partition", s.partition, "records", left)
	}
	fit := left < maxOrphans
	for g := range s.found {
		fit = rp.orphan(g.Run, g.Number) && fit
	}
	for _, e := range s.strays {
		rp.stray(e)
	}
	if fit { // else what is left is looked for once these are gone
		rp.cursors.skipped[s.partition] = skipped{}
	}
}

// skips reports whether something was skipped that may go now.
func (rp *reaper) skips(now time.Time) bool {
	return slices.ContainsFunc(rp.cursors.skipped[:], func(x skipped) bool { return x.due(now) })
}

// goesBelow reports whether something that was skipped goes with all that lies below a sequence, and takes it for asked for.
func (rp *reaper) goesBelow(shard int, upTo uint64, now time.Time) (goes bool) {
	for p := range rp.cursors.skipped {
		x := &rp.cursors.skipped[p]
		if subjects.LedgerShard(p, rp.store.Shards()) == shard && x.below <= upTo && x.due(now) {
			x.purged, goes = true, true
		}
	}
	return goes
}
