package index

import (
	"time"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// sameWait is by how much two words on when a step began to wait differ that mean the same moment.
const sameWait = 2 * time.Second

// Waiting takes which runs that go on have waited too long, by key, in place of what was told before, but for runs of which
// it was not known: unsure reports those.
func (ix *Index) Waiting(runs map[string]Wait, unsure func(subjects.Run) bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	changed := false
	for _, e := range ix.order {
		if e.Status != outcome.Running {
			continue
		}
		w, waits := runs[e.Key]
		switch {
		case waits && (e.Waits == nil || !e.Waits.same(&w)):
			e.Waits, changed = &w, true
		case !waits && e.Waits != nil && !unsure(e.Run()):
			e.Waits, changed = nil, true
		}
	}
	if changed {
		ix.changes()
	}
}

func (w *Wait) same(o *Wait) bool {
	return w.Step == o.Step && w.Tool == o.Tool && w.Since.Sub(o.Since).Abs() < sameWait
}
