package machine

import (
	"container/heap"
	"slices"
	"time"
)

// room is how many calls for workers may be ready at once in a scope whose plan bounds that (plan language,
// "concurrency"): from when they are ready until they are decided, backoff included. The rooms of a run are a tree, in
// which each knows the first call that could be let in as far as it is asked: so who is first of all is at hand however
// many scopes there are in which calls wait.
type room struct {
	run   *Run
	size  int // 0 for any number: the room above all others
	taken int
	held  []int // the calls that could be ready but for it, in the order in which they are let in
	first int   // the first of those and of those below that there is room for here; -1 where there is none
	outer *room
	below []*room // that have a first, as a heap
	place int     // among those of outer; -1 where it is not among them
}

// newRoom returns the room of a scope; nil where its plan has no bound.
func newRoom(r *Run, sc *scope) *room {
	if sc.plan.Concurrency == 0 {
		return nil
	}
	outer := sc.outer.bounded()
	if outer == nil {
		if r.rooms == nil {
			r.rooms = &room{run: r, first: -1, place: -1}
		}
		outer = r.rooms
	}
	return &room{run: r, size: sc.plan.Concurrency, first: -1, outer: outer, place: -1}
}

// bounded returns the room of the scope itself, or of the nearest above it whose plan bounds how many calls may be ready
// at once; nil where none does.
func (sc *scope) bounded() *room {
	for ; sc != nil; sc = sc.outer {
		if sc.room != nil {
			return sc.room
		}
	}
	return nil
}

// take counts calls that take room, here and in all rooms above, or leave it.
func (x *room) take(n int) {
	for ; x != nil; x = x.outer {
		x.taken += n
		x.rank()
	}
}

// hold keeps a call for which everything is there until there is room for it here and in all rooms above.
func (x *room) hold(i int) {
	x.run.calls[i].state = held
	at, _ := slices.BinarySearchFunc(x.held, i, x.run.before)
	x.held = slices.Insert(x.held, at, i)
	x.take(0)
}

// rank finds out anew who is first here, and where the room stands among those beside it.
func (x *room) rank() {
	for len(x.held) > 0 && x.run.calls[x.held[0]].state != held {
		x.held = x.held[1:] // it was let in, or cancelled
	}
	x.first = -1
	if x.size == 0 || x.taken < x.size {
		if len(x.held) > 0 {
			x.first = x.held[0]
		}
		if len(x.below) > 0 && (x.first < 0 || x.run.before(x.below[0].first, x.first) < 0) {
			x.first = x.below[0].first
		}
	}
	switch {
	case x.outer == nil || x.place < 0 && x.first < 0:
	case x.place < 0:
		heap.Push(x.outer, x)
	case x.first < 0:
		heap.Remove(x.outer, x.place)
	default:
		heap.Fix(x.outer, x.place)
	}
}

// Len and what follows make a heap of the rooms below.
func (x *room) Len() int { return len(x.below) }

func (x *room) Less(i, j int) bool { return x.run.before(x.below[i].first, x.below[j].first) < 0 }

func (x *room) Swap(i, j int) {
	x.below[i], x.below[j] = x.below[j], x.below[i]
	x.below[i].place, x.below[j].place = i, j
}

func (x *room) Push(y any) {
	y.(*room).place = len(x.below)
	x.below = append(x.below, y.(*room))
}

func (x *room) Pop() any {
	last := len(x.below) - 1
	y := x.below[last]
	x.below, y.place = x.below[:last], -1
	return y
}

// admit lets calls be ready that there is room for, the first in the order of the plan first. It comes last of what a
// record does, so that whoever could be ready by then is compared. As long as a list is not counted nobody is let in:
// its items may come before others, and every owner has to let in the same.
func (r *Run) admit(at time.Time, out *Effects) {
	for r.rooms != nil && r.rooms.first >= 0 && r.uncounted == 0 {
		i := r.rooms.first
		x := r.scopeOf(i).bounded()
		if r.calls[i].state != held { // it was cancelled
			x.take(0)
			continue
		}
		r.calls[i].state = ready
		x.take(1)
		r.launch(i, at, out)
	}
}
