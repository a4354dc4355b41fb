package orchestrator

import (
	"math"
	"time"

	"github.com/stepjet/stepjet/machine"
)

// suspects are the runs whose effects may have been lost: those taken over from another owner, those that have waited
// for long, and all of them after a step stream lost what lay in it.
type suspects struct {
	*env
	// runs has, for each, how long what lay in a step stream may be taken for gone. A worker may be at a step whose
	// message is gone, and goes on; the longer that is ago, the fewer are.
	runs    map[*run]time.Duration
	soon    bool   // a comparison is posted
	compare func() // compares them
}

// longGone is longer than any worker is at a step.
const longGone = time.Duration(math.MaxInt64)

func (s *suspects) add(r *run, gone time.Duration) {
	if s.runs == nil {
		s.runs = map[*run]time.Duration{}
	}
	s.runs[r] = max(s.runs[r], gone)
}

// compareSoon compares them once the loop has read what waits for it, so that many runs taken over together make one
// comparison.
func (s *suspects) compareSoon() {
	if !s.soon {
		s.soon = true
		s.post(s.compare)
	}
}

// take empties the set.
func (s *suspects) take() (all map[*run]time.Duration) {
	all, s.runs, s.soon = s.runs, nil, false
	return all
}

// heldBack returns which attempts this owner holds back, exactly; that takes longer than to tell of some that they may be.
func heldBack(r *run) (holds func(machine.Dispatch) bool) {
	all := map[machine.Dispatch]bool{}
	for _, x := range r.lanes {
		for _, h := range x.calls.items[x.calls.head:] {
			all[h.dispatch()] = true
		}
	}
	return func(d machine.Dispatch) bool { return all[d] && r.flights[d.Call] == nil }
}
