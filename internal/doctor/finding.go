package doctor

// Health is what a check says of what it looked at.
type Health string

// The kinds of Health.
const (
	Healthy Health = "ok"
	// Notable is as it may be, but somebody who looks wants to know it.
	Notable Health = "note"
	// Broken costs users something, now or soon.
	Broken Health = "problem"
)

// Finding is what one check found.
type Finding struct {
	// Check is the name of the check, such as "consumer"; About names what it looked at, where there are several.
	Check  string `json:"check"`
	About  string `json:"about,omitempty"`
	Health Health `json:"health"`
	// Expected is what Stepjet needs, Found what there is.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found"`
	// Means is what that costs the users.
	Means string `json:"means,omitempty"`
	// Fix is what mending does, where Fixable; otherwise the very command or line of configuration that a person
	// writes.
	Fix     string `json:"fix,omitempty"`
	Fixable bool   `json:"fixable,omitempty"`
	// Mended says that Fix was done; Failure why it could not be.
	Mended  bool   `json:"mended,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// Report is what an examination found, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Problems returns the findings that are Broken and were not mended.
func (r *Report) Problems() (all []Finding) {
	for _, f := range r.Findings {
		if f.Health == Broken && !f.Mended {
			all = append(all, f)
		}
	}
	return all
}
