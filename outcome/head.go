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
	// Failed is the first step that failed, in the order of the steps; empty for none.
	Failed string `json:"failed,omitempty"`
	// Doing is the first step that is at work, of a run that goes on: it was sent to a worker, is tried again, or what stands
	// within it is at work; empty where there is none, as while a person is waited for. Since is from when on it was to be.
	Doing string    `json:"doing,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// RetryOf is the run that this one tries again.
	RetryOf string `json:"retry_of,omitempty"`
	// Calls is what the calls of each of Tools took and came to, of a run that is over; nil where nobody counted.
	Calls map[string]*Calls `json:"calls,omitempty"`
}

// HeadOf returns the head of a run. Of a document whose steps lie elsewhere it names no tools.
func HeadOf(r *Run) Head {
	h := Head{
		Generation: r.Generation, Status: r.Status, Submitted: r.Submitted, Started: r.Started, Finished: r.Finished,
		Stats: r.Stats, RetryOf: r.RetryOf,
	}
	seen := map[string]bool{"": true} // a value calls none
	h.look(r.Steps, seen)
	if !r.Finished.IsZero() {
		h.count(r.Steps)
	} else if r.Status == Running {
		h.doing(r.Steps)
	}
	if o := r.Outcome; o != nil && h.Failed == "" && len(o.Errors) > 0 {
		h.Failed = o.Errors[0].Step
	}
	return h
}

// doing says what is at work.
func (h *Head) doing(steps []Step) {
	for i := range steps {
		s := &steps[i]
		if s.Status == StepReady || s.Status == StepRunning || s.Status == StepRetrying {
			h.Doing, h.Since = s.ID, s.Ready
			return
		}
	}
}

// count says what the calls of the tools that are named came to.
func (h *Head) count(steps []Step) {
	all := CallsOf(steps)
	for _, name := range h.Tools {
		if c := all[name]; c != nil {
			if h.Calls == nil {
				h.Calls = map[string]*Calls{}
			}
			h.Calls[name] = c
		}
	}
}

// look goes through some steps, and those within them, until there is nothing more to find.
func (h *Head) look(steps []Step, seen map[string]bool) {
	for i := range steps {
		if len(h.Tools) == HeadTools && h.Failed != "" {
			return
		}
		s := &steps[i]
		if len(h.Tools) < HeadTools && !seen[s.Tool] {
			seen[s.Tool] = true
			h.Tools = append(h.Tools, s.Tool)
		}
		h.look(s.Steps, seen)
		for k := range s.Items {
			h.look(s.Items[k].Steps, seen)
		}
		if h.Failed == "" && s.Status == StepFailed {
			h.Failed = s.ID
		}
	}
}
