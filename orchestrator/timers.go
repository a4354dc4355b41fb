package orchestrator

import (
	"container/heap"
	"time"
)

// timers is a heap of runs by their next deadline, as the monotonic clock will show it. A run stands in it at most once.
type timers struct{ heap timerHeap }

// set moves a run to a time of the ledger; the zero time removes it.
func (t *timers) set(r *run, at time.Time) {
	if at.IsZero() {
		if r.timer >= 0 {
			heap.Remove(&t.heap, r.timer)
		}
		return
	}
	wake := r.time.When(at)
	switch {
	case r.timer < 0:
		r.wake = wake
		heap.Push(&t.heap, r)
	case r.wake != wake:
		r.wake = wake
		heap.Fix(&t.heap, r.timer)
	}
}

func (t *timers) next() (time.Duration, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].wake, true
}

// due takes out the first run whose time has come.
func (t *timers) due(mono time.Duration) *run {
	if len(t.heap) == 0 || t.heap[0].wake > mono {
		return nil
	}
	return heap.Pop(&t.heap).(*run)
}

type timerHeap []*run

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].wake < h[j].wake }
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
