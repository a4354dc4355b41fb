package orchestrator

import (
	"slices"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// simNeed is what some plans need in worlds in which orchestrators of two versions work together.
const simNeed = "later"

// mixed is whether this is such a world.
func (w *world) mixed() bool { return w.seed%11 == 5 }

// bilingual is whether this is a world in which some orchestrators know conditions and others don't.
func (w *world) bilingual() bool { return w.seed%11 == 8 }

// knowledge is what an orchestrator knows of needs. The first always knows; each of the others in every other of its
// lives, as it is replaced by a newer version and by an older one again.
func (w *world) knowledge(name string, life int) wire.Knowledge {
	older := name != "owner0" && life%2 == 0
	switch {
	case w.bilingual() && older:
		return wire.Knowledge{}
	case w.mixed() && older:
		return wire.Knowledge{wire.LanguageTwo: {}}
	case !w.mixed():
		return wire.Ours()
	}
	return wire.Knowledge{wire.LanguageTwo: {}, wire.StateSchema: {}, wire.ApprovedAmendments: {}, wire.Asking: {}, simNeed: {In: func(body []byte) bool { return plan.Digest(body) < "8" }}}
}

// recorded lets all orchestrators hear, some time later, of what runs need.
func (w *world) recorded(names []string) {
	for _, name := range names {
		if slices.Contains(w.needs, name) {
			continue
		}
		w.needs = append(w.needs, name)
		w.stats["a need recorded"]++
		for _, o := range w.owners {
			o.told()
		}
	}
}

// assumed is what an orchestrator goes by.
func (w *world) assumed(knows wire.Knowledge) wire.Knowledge {
	if _, newer := knows[simNeed]; w.bug == ignoreNeeds && !newer {
		return wire.Knowledge{simNeed: {}, wire.LanguageTwo: {}, wire.StateSchema: {}, wire.ApprovedAmendments: {}, wire.Asking: {}}
	}
	return knows
}

// entitled sees that only who knows what a run needs does anything for it, once it was started.
func (w *world) entitled(p *process, id subjects.Run, generation uint64) {
	x := w.truths.of(id, generation)
	if x == nil || x.start == nil {
		return
	}
	for _, o := range w.owners {
		if o.process == p && !o.knows.All(x.start.Needs) {
			w.violate("needs", "%s goes on with %s/%d, which needs %v", p.name, id.ID, generation, x.start.Needs)
		}
	}
}
