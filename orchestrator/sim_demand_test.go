package orchestrator

import (
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// checkDemand looks at what a loop would say is wanted: in the partitions of which it says that it knows all, what is out
// and what is held back are two, and everything that workers are wanted for is one of them. It is for worlds in which
// partitions are kept until the next owner serves them; in the others nobody can know when an owner has let go of one.
// What somebody sends who was taken for dead comes later than it can be looked for.
func (o *orch) checkDemand(l *turning) {
	if !o.w.patient() || o.w.turns%8 != 0 {
		return
	}
	c := &count{loop: l.loop}
	for p, of := range l.cursors.owned {
		runs := l.runs.oldest[p].runs
		if of == nil || l.cursors.shared[p] || !c.sure(p, runs) {
			continue
		}
		for _, r := range runs {
			if r.phase == running && !r.awaitingInput() {
				o.checkCounted(r, l.cursors.alone[p].Add(-late).Sub(epoch))
			}
		}
	}
}

// checkCounted looks at one run of a partition in which nobody else has been at work since a time.
func (o *orch) checkCounted(r *run, alone time.Duration) {
	held := map[machine.Call]bool{}
	for _, x := range r.lanes.All() {
		for _, h := range x.calls.items[x.calls.head:] {
			d := h.dispatch()
			if f := r.flights.At(d.Call); f != nil && f.attempt == d.Attempt || !r.machine.Wanted(d.Call, d.Attempt) {
				continue
			}
			held[d.Call] = true
			a := r.attempt(d.Call, d.Attempt)
			if m := o.w.steps.find(a); m != nil && m.stored < alone {
				o.w.violate("demand", "%s holds back %s, which is out since %v; it has been alone since %v", o.name, a.MessageID(), m.stored, alone)
			}
			o.w.stats["a step that counts as held back"]++
		}
	}
	var should machine.Effects // what is withheld is not among them, and is asked for again
	r.machine.Outstanding(o.w.time(), &should)
	for _, d := range should.Dispatch {
		a := r.attempt(d.Call, d.Attempt)
		if d.Attempt > 1 || !d.At.IsZero() || iterated(a.Step) {
			continue // the message of one that waited for its time may have been lost: the sweep finds that
		}
		if held[d.Call] || r.flights.At(d.Call) != nil || !r.machine.Wanted(d.Call, d.Attempt) {
			continue
		}
		shards := len(o.w.shards)
		recorded := o.w.stored(subjects.StepRecord(a, shards)) || o.w.stored(subjects.ClaimRecord(a, shards))
		if !recorded && o.w.steps.find(a) == nil && o.w.stored(subjects.PlanRecord(r.id, shards)) {
			o.w.violate("demand", "%s neither holds %s back nor has it out", o.name, a.MessageID())
		}
	}
}

// iterated reports whether a step stands in an iteration after the first, which may have waited for its time.
func iterated(token string) bool {
	return slices.ContainsFunc(strings.Split(token, "/"), func(part string) bool {
		return strings.HasPrefix(part, plan.IterationStep) && part != plan.IterationStep+"0"
	})
}

// stored reports whether a record lies in the ledger.
func (w *world) stored(subject string) bool { return w.streamOf(subject).bySubj[subject] != nil }
