package orchestrator

import (
	"slices"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// simNeed is what some plans need in worlds in which orchestrators of two versions work together.
const simNeed = "later"

// mixed is whether this is such a world.
func (w *world) mixed() bool { return w.seed%11 == 5 }

// knowledge is what an orchestrator knows of needs. The first always knows; each of the others in every other of its lives, as it is
// replaced by a newer version and by an older one again.
func (w *world) knowledge(name string, life int) wire.Knowledge {
	if !w.mixed() || name != "owner0" && life%2 == 0 {
		return wire.Ours()
	}
	return wire.Knowledge{simNeed: {In: func(body []byte) bool { return plan.Digest(body) < "8" }}}
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
