package fault

// Problem is one thing wrong with a plan, written so that a model can repair it.
type Problem struct {
	// Code is one of the plan's codes.
	Code Code `json:"code"`
	// Path is a JSON pointer (RFC 6901) into the plan. It goes on into arguments that are JSON strings. Of a problem
	// that stands in several places it is the first.
	Path string `json:"path"`
	// Step is the id of the step that Path lies in; empty where it lies in none, or in one without a valid id.
	Step string `json:"step,omitempty"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says how to mend it; it may be empty.
	Hint string `json:"hint,omitempty"`
	// Paths are the first MaxPaths places of a problem that stands in several; nil of one that stands in one.
	Paths []string `json:"paths,omitempty"`
	// Count is the number of places of a problem that stands in several; 0 of one that stands in one.
	Count int `json:"count,omitempty"`
}

// MaxPaths is the most places that a problem lists.
const MaxPaths = 5

// Again notes that the same problem stands in one more place.
func (p *Problem) Again(path string) {
	if p.Count == 0 {
		p.Count, p.Paths = 1, append(make([]string, 0, MaxPaths), p.Path)
	}
	p.Count++
	if len(p.Paths) < MaxPaths {
		p.Paths = append(p.Paths, path)
	}
}

// Places returns the number of places that a problem stands in: 1 or more.
func (p *Problem) Places() int { return max(p.Count, 1) }
