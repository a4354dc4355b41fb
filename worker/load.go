package worker

import (
	"slices"
	"strings"
)

// Load is how much one tool of a worker has to do.
type Load struct {
	Tool string
	// Slots is how many executions, or calls of a batch tool, the worker takes at once; Busy is how many of them are
	// taken now, those among them whose handlers were given up and have not returned.
	Slots, Busy int
}

// Load returns how much each tool has to do now, in the order of their names.
func (w *Worker) Load() []Load {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Load, 0, len(w.tools))
	for name, h := range w.tools {
		x := Load{Tool: name, Slots: h.slots}
		if f := h.feed.Load(); f != nil {
			x.Busy = f.taken(h.slots)
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Load) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

// taken returns how many of so many slots are taken.
func (f *feed) taken(slots int) int {
	select {
	case <-f.pulling:
		return slots - f.puller.Free()
	default: // it has not begun
		return 0
	}
}
