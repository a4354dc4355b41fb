package orchestrator

import (
	"slices"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// begins returns where an owner begins to read partitions, and sees that what it leaves out is over: its outcome stands, and
// whoever waited for it was told.
func (w *world) begins(p *process, s *stream, partitions []int, since kv.Since) uint64 {
	if since.Seq == 0 || since.Life != s.life() {
		return 1
	}
	seen, left := map[*truth]bool{}, 0
	for _, e := range s.all {
		rec, ok := subjects.ParseRecord(e.Subject)
		if !ok || e.Seq >= since.Seq || !slices.Contains(partitions, rec.Run.Partition()) {
			continue
		}
		left++
		gen := rec.Generation
		if rec.Kind == subjects.PlanKind {
			gen = e.Seq
		}
		x := w.truths.of(rec.Run, gen)
		if x == nil || x.gone || seen[x] {
			continue
		}
		seen[x] = true
		h := w.truths.history[x.id]
		switch {
		case !w.truths.hasOutcome(x):
			w.violate("skipped", "%s takes %s/%d for over, which has no outcome", p.name, x.id.ID, x.gen)
		case h.gen == x.gen && !x.announced:
			w.violate("skipped", "%s takes %s/%d for over, of whose end nobody was told", p.name, x.id.ID, x.gen)
		case h.gen == x.gen && h.rejected():
			w.violate("skipped", "%s takes %s/%d for over, which was rejected, so that its id is not free", p.name, x.id.ID, x.gen)
		}
	}
	w.log("%s reads %v from %d on, without %d records", p.name, partitions, since.Seq, left)
	w.stats["an owner began to read at a mark"]++
	if left > 0 {
		w.stats["an owner skipped what is over"]++
	}
	return since.Seq
}

// life names that of a stream.
func (s *stream) life() string { return "since " + s.name }

// checkGrace sees that a run stays in the ledger for a grace after its end, whoever owns it: so that no late record of it
// is of a run that nobody knows, and its id is not free while it counts as new.
func (t *truths) checkGrace(x *truth) {
	h := t.history[x.id]
	if h == nil || h.gen != x.gen || h.rejected() || h.expired {
		return
	}
	if had := t.w.now - x.overAt; had < simGrace {
		t.w.violate("grace", "%s/%d was purged %v after its end", x.id.ID, x.gen, had)
	}
}

// seeks counts how often an owner looks for what is left of what it had skipped.
func (w *world) seeks(p *process, partitions []int) {
	for _, o := range w.owners {
		for _, l := range o.loops.all {
			if x := l.reaper.seeking; o.process == p && x != nil && x.reading == nil && slices.Equal(partitions, []int{x.partition}) {
				w.stats["what was skipped was looked for"]++
			}
		}
	}
}
