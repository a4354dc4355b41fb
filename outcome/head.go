package outcome

import "time"

// HeadTools is the most tools that a Head names.
const HeadTools = 16

// Head is what a list shows of a finished run. It stands in a header of the run's document, so that whoever lists many
// need not read them.
type Head struct {
	Generation uint64    `json:"generation"`
	Status     RunStatus `json:"status"`
	Submitted  time.Time `json:"submitted"`
	Started    time.Time `json:"started,omitzero"`
	Finished   time.Time `json:"finished,omitzero"`
	Stats      Stats     `json:"stats"`
	// Tools are those that the run calls, by name, in the order of its steps: the first HeadTools.
	Tools []string `json:"tools,omitempty"`
}

// HeadOf returns the head of a run. Of a document whose steps lie elsewhere it names no tools.
func HeadOf(r *Run) Head {
	h := Head{
		Generation: r.Generation, Status: r.Status, Submitted: r.Submitted, Started: r.Started, Finished: r.Finished, Stats: r.Stats,
	}
	seen := map[string]bool{"": true} // a value calls none
	h.name(r.Steps, seen)
	return h
}

// name names the tools of some steps, and of those within them.
func (h *Head) name(steps []Step, seen map[string]bool) {
	for i := range steps {
		if len(h.Tools) == HeadTools {
			return
		}
		s := &steps[i]
		if !seen[s.Tool] {
			seen[s.Tool] = true
			h.Tools = append(h.Tools, s.Tool)
		}
		h.name(s.Steps, seen)
		for k := range s.Items {
			h.name(s.Items[k].Steps, seen)
		}
	}
}
