package plan

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
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
func fillNeeds(p *Plan, ordered func(step int) []int) {
	for i := range p.Steps {
		fillNeed(p, i, ordered)
	}
}

// fillNeed is fillNeeds for one step.
func fillNeed(p *Plan, i int, ordered func(step int) []int) {
	s := &p.Steps[i]
	for _, d := range ordered(i) {
		s.Needs = append(s.Needs, Need{Steps: []int{d}})
	}
	if s.ForEach != nil {
		s.needsOf(s.ForEach.in.holes, p.calcs)
	}
	if s.Approval != nil {
		s.needsOf(s.Approval.text.holes, nil)
	}
	s.needsOf(s.args.holes, p.calcs)
	if s.If != nil {
		s.Needs = append(s.Needs, s.If.needs...)
		s.name(s.If.targets)
	}
	if s.Repeat != nil && s.Repeat.Until != nil {
		s.Needs = append(s.Needs, s.Repeat.Until.needs...)
		s.name(s.Repeat.Until.targets)
	}
	slices.Sort(s.Named)
	s.Named = slices.Compact(s.Named)
	for _, d := range s.Named {
		p.regard(d)
	}
}

// needsOf adds the needs of references that hand data on.
func (s *Step) needsOf(holes []hole, calcs []*expression.Expression) {
	for i := range holes {
		h := &holes[i]
		s.name(h.targets)
		if h.calc > 0 {
			s.Needs = append(s.Needs, needsOf(calcs[h.calc-1], h.targets, true)...)
			continue
		}
		n := Need{Ended: h.def != "", Data: true}
		for k := range h.targets {
			n.add(&h.targets[k])
		}
		if len(n.Steps) > 0 {
			s.Needs = append(s.Needs, n)
		}
	}
}

// needsOf returns what an expression asks of the steps that it refers to: a reference before ?? has an alternative.
func needsOf(x *expression.Expression, targets []target, data bool) (all []Need) {
	for _, u := range x.Uses() {
		n := Need{Ended: u.Ended, Data: data}
		for _, k := range u.References {
			n.add(&targets[k])
		}
		if len(n.Steps) > 0 {
			all = append(all, n)
		}
	}
	return all
}

// add adds one of the alternatives.
func (n *Need) add(t *target) {
	if t.of != itsResult || t.step == theItem { // it is there whatever came of the step
		n.Ended = true
		return
	}
	n.Steps = append(n.Steps, t.step)
}

// name notes the steps that are named by $error or $status.
func (s *Step) name(targets []target) {
	for i := range targets {
		if t := &targets[i]; t.of == itsError || t.of == itsStatus {
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
