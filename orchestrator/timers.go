package orchestrator

import (
	"container/heap"
	"time"
)

// timers is a heap of runs by their next deadline. A run stands in it at most once.
type timers struct{ heap timerHeap }

// set moves a run to a time; the zero time removes it.
func (t *timers) set(r *run, at time.Time) {
	switch {
	case r.timer >= 0 && at.IsZero():
		heap.Remove(&t.heap, r.timer)
	case r.timer >= 0:
		if !r.wake.Equal(at) {
			r.wake = at
			heap.Fix(&t.heap, r.timer)
		}
	case !at.IsZero():
		r.wake = at
		heap.Push(&t.heap, r)
	}
}

func (t *timers) next() (time.Time, bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].wake, true
}

// due takes out the first run whose time has come.
func (t *timers) due(now time.Time) *run {
	if len(t.heap) == 0 || t.heap[0].wake.After(now) {
		return nil
	}
	return heap.Pop(&t.heap).(*run)
}

type timerHeap []*run

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].wake.Before(h[j].wake) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer, h[j].timer = i, j
}
func (h *timerHeap) Push(x any) {
	r := x.(*run)
	r.timer = len(*h)
	*h = append(*h, r)
}
func (h *timerHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	r.timer = -1
	return r
}
