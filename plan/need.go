package plan

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
)

// Need is what a step asks of some of the steps that it refers to (plan language, "Conditions"): that one of them has
// succeeded. A step of a plan in language 1 needs each of its Deps, and has no others.
type Need struct {
	// Steps are the one step, or those of all alternatives, in the order in which they are written.
	Steps []int
	// Ended says that a literal or the item of a for_each ends the alternatives, so that the step can do without any.
	Ended bool
	// Data says that a result is to be handed on. Where there is none because a step was not taken, this one is not
	// taken either.
	Data bool
}

// Regards reports whether a step names another by $error or $status, so that the other's failure does not skip it.
func (s *Step) Regards(step int) bool {
	_, found := slices.BinarySearch(s.Named, step)
	return found
}

// fillNeeds fills in what the steps of a plan in language 2 ask of each other. ordered returns the steps that one names
// in depends_on.
func fillNeeds(steps []Step, ordered func(step int) []int) {
	for i := range steps {
		s := &steps[i]
		for _, d := range ordered(i) {
			s.Needs = append(s.Needs, Need{Steps: []int{d}})
		}
		if s.ForEach != nil {
			s.needsOf(s.ForEach.in.holes)
		}
		s.needsOf(s.args.holes)
		if s.If != nil {
			s.Needs = append(s.Needs, s.If.needs...)
			s.name(s.If.targets)
		}
		slices.Sort(s.Named)
		s.Named = slices.Compact(s.Named)
		for _, d := range s.Named {
			steps[d].Regarded = true
		}
	}
}

// needsOf adds the needs of references that hand data on.
func (s *Step) needsOf(holes []hole) {
	for i := range holes {
		h := &holes[i]
		n := Need{Ended: h.def != "", Data: true}
		for k := range h.targets {
			switch t := &h.targets[k]; {
			case t.of != itsResult, t.step == theItem: // it is there whatever came of the step
				n.Ended = true
			default:
				n.Steps = append(n.Steps, t.step)
			}
		}
		s.name(h.targets)
		if len(n.Steps) > 0 {
			s.Needs = append(s.Needs, n)
		}
	}
}

// name notes the steps that are named by $error or $status.
func (s *Step) name(targets []target) {
	for i := range targets {
		if t := &targets[i]; t.of != itsResult {
			s.Named = append(s.Named, t.step)
		}
	}
}

// maxFate bounds the bytes of the JSON of an error: its texts are cut where they are recorded.
const maxFate = 1 << 20

// Fate is how a step ended, as $status and $error see it.
type Fate struct {
	// Status is succeeded, failed, skipped, cancelled or not_taken.
	Status string
	// Error is why it did not succeed; nil where it did, or was not taken.
	Error *fault.Error
}

// value returns the JSON that a reference to a step's error or status goes into.
func (f Fate) value(of aspect) []byte {
	if of == itsStatus {
		return []byte(`"` + f.Status + `"`)
	}
	if f.Error == nil {
		return null
	}
	type account struct { // its form is part of the plan language
		Code     fault.Code      `json:"code"`
		ToolCode string          `json:"tool_code,omitempty"`
		Message  string          `json:"message"`
		Details  json.RawMessage `json:"details"`
	}
	a := account{Code: f.Error.Code, ToolCode: f.Error.ToolCode, Message: f.Error.Message, Details: f.Error.Details}
	if len(a.Details) == 0 {
		a.Details = null
	}
	text, err := json.Marshal(a)
	if err != nil { // details that are no JSON
		a.Details = null
		text, _ = json.Marshal(a)
	}
	return text
}
