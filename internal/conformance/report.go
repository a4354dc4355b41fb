package conformance

import "fmt"

// Report is what became of all checks.
type Report struct {
	Tool string `json:"tool"`
	// Worker is the name that the worker gives itself in its records.
	Worker string `json:"worker,omitempty"`
	// Conforms is whether no check failed. A warning doesn't count.
	Conforms bool    `json:"conforms"`
	Checks   []Check `json:"checks"`
}

// Check is what became of one check.
type Check struct {
	Name     string    `json:"name"`
	Status   Status    `json:"status"`
	Expected string    `json:"expected"`
	Findings []Finding `json:"findings,omitempty"`
	// Why is why it was skipped.
	Why string  `json:"why,omitempty"`
	MS  float64 `json:"ms,omitempty"`
}

// Status is how a check went.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Warned  Status = "warned" // the worker conforms, and could do better
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Level tells what a worker must do from what it should.
type Level string

// The levels.
const (
	Must   Level = "must"
	Should Level = "should"
)

// Finding is one thing that a worker got wrong.
type Finding struct {
	Level Level `json:"level"`
	// Seen is what it did, Advice what its author can do about it.
	Seen   string `json:"seen"`
	Advice string `json:"advice"`
}

// verdict collects the findings of a check under way.
type verdict struct {
	findings []Finding
	fatal    bool // nothing more can be learned from this worker
	skipped  string
}

func (v *verdict) must(advice, seen string, args ...any) {
	v.findings = append(v.findings, Finding{Must, fmt.Sprintf(seen, args...), advice})
}

func (v *verdict) should(advice, seen string, args ...any) {
	v.findings = append(v.findings, Finding{Should, fmt.Sprintf(seen, args...), advice})
}

func (v *verdict) skip(why string) { v.skipped = why }

func (v *verdict) status() Status {
	status := Passed
	switch {
	case v.skipped != "":
		status = Skipped
	case len(v.findings) > 0:
		status = Warned
	}
	for _, f := range v.findings {
		if f.Level == Must {
			return Failed
		}
	}
	return status
}
