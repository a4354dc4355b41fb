package machine

import (
	"cmp"
	"slices"
	"time"
)

// room is how many calls for workers may be ready at once in a scope whose plan bounds that (plan language,
// "concurrency"): from when they are ready until they are decided, backoff included.
type room struct {
	taken int
	held  []int // the calls that could be ready but for it, in the order in which they are let in
}

// hold keeps a call for which everything is there until there is room for it.
func (r *Run) hold(i int) {
	r.calls[i].state = held
	q := &r.scopeOf(i).room
	at, _ := slices.BinarySearchFunc(q.held, i, func(a, b int) int { return r.before(a, b) })
	q.held = slices.Insert(q.held, at, i)
}

// before compares calls in the order of the plan, items by their number.
func (r *Run) before(a, b int) int {
	x, y := &r.calls[a], &r.calls[b]
	return cmp.Or(cmp.Compare(x.Step, y.Step), cmp.Compare(x.Item, y.Item))
}

// leaveRoom gives back the room of a call that is decided.
func (r *Run) leaveRoom(i int) {
	if sc := r.scopeOf(i); sc.plan.Concurrency > 0 {
		sc.room.taken--
	}
}

// admit lets calls be ready that there is room for, the first in the order of the plan first. It comes last of what a
// record does, so that whoever could be ready by then is compared. As long as a list is not counted nobody is let in:
// its items may come before others, and every owner has to let in the same.
func (r *Run) admit(at time.Time, out *Effects) {
	sc := &r.root
	for len(sc.room.held) > 0 && sc.room.taken < sc.plan.Concurrency && r.uncounted == 0 {
		i := sc.room.held[0]
		sc.room.held = sc.room.held[1:]
		if r.calls[i].state == held {
			sc.room.taken++
			r.launch(i, at, out)
		}
	}
}
