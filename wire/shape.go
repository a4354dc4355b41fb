package wire

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// Shape is the plan of a scope as it is written: as it was submitted, with what amendments made of it.
type Shape struct {
	fields map[string]json.RawMessage // of the plan, its steps among them
	steps  []writtenStep
}

// writtenStep is one step as it is written.
type writtenStep struct {
	id   string
	text json.RawMessage
}

// ReadShape reads a plan that has steps; ok is false for one that is written otherwise.
func ReadShape(body json.RawMessage) (s *Shape, ok bool) {
	s = &Shape{}
	var steps []json.RawMessage
	if json.Unmarshal(body, &s.fields) != nil || json.Unmarshal(s.fields["steps"], &steps) != nil {
		return nil, false
	}
	for _, step := range steps {
		s.steps = append(s.steps, writtenOf(step))
	}
	return s, true
}

func writtenOf(step json.RawMessage) writtenStep {
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(step, &named) // what has no id is refused where it is read as a step
	return writtenStep{named.ID, step}
}

func (s *Shape) find(id string) int {
	return slices.IndexFunc(s.steps, func(x writtenStep) bool { return x.id == id })
}

// Amend does to a shape what an amendment in force did. gone reports whether a step was discarded before anything came
// of it.
func (s *Shape) Amend(a *Change, gone func(id string) bool) {
	s.steps = slices.DeleteFunc(s.steps, func(x writtenStep) bool {
		again := slices.ContainsFunc(a.Add, func(step json.RawMessage) bool { return writtenOf(step).id == x.id })
		return (a.Discard.Rest || slices.Contains(a.Discard.Steps, x.id)) && !again && gone(x.id)
	})
	for _, step := range a.Add {
		x := writtenOf(step)
		if at := s.find(x.id); at >= 0 {
			s.steps[at] = x
		} else {
			s.steps = append(s.steps, x)
		}
	}
	switch {
	case a.Output != nil:
		s.fields["output"] = a.Output
		delete(s.fields, "output_steps")
	case a.OutputSteps != nil:
		s.fields["output_steps"], _ = json.Marshal(a.OutputSteps) // texts
		delete(s.fields, "output")
	}
}

// To returns the change from one shape to another.
func (s *Shape) To(should *Shape) (c Change, err error) {
	for _, x := range should.steps {
		at := s.find(x.id)
		if at >= 0 && sameJSON(s.steps[at].text, x.text) {
			continue
		}
		if at >= 0 {
			c.Discard.Steps = append(c.Discard.Steps, x.id)
		}
		c.Add = append(c.Add, x.text)
	}
	for _, x := range s.steps {
		if should.find(x.id) < 0 {
			c.Discard.Steps = append(c.Discard.Steps, x.id)
		}
	}
	for name, value := range should.fields {
		switch old := s.fields[name]; {
		case name == "steps" || sameJSON(old, value):
		case name == "output":
			c.Output = value
		case name == "output_steps" && json.Unmarshal(value, &c.OutputSteps) == nil:
		default:
			return c, fault.New(fault.InvalidValue, "%q can't be changed while the run goes on", text.Clip(name, 80)).
				WithHint("leave it as it is: an amendment changes steps and what the plan returns")
		}
	}
	return c, nil
}

// Within returns the plan of a step, as it is written; ok is false for a step that has none.
func (s *Shape) Within(id string) (inner *Shape, ok bool) {
	at := s.find(id)
	if at < 0 {
		return nil, false
	}
	var composite struct {
		Plan json.RawMessage `json:"plan"`
	}
	_ = json.Unmarshal(s.steps[at].text, &composite) // it was read as a step
	return ReadShape(composite.Plan)
}

// Replace writes a step's plan anew.
func (s *Shape) Replace(id string, inner *Shape) {
	at := s.find(id)
	var step map[string]json.RawMessage
	if at < 0 || json.Unmarshal(s.steps[at].text, &step) != nil {
		return
	}
	step["plan"] = inner.JSON()
	s.steps[at].text, _ = json.Marshal(step) // it was read from JSON
}

// Drop takes steps out of a plan.
func (s *Shape) Drop(ids []string) {
	s.steps = slices.DeleteFunc(s.steps, func(x writtenStep) bool { return slices.Contains(ids, x.id) })
}

// Close writes a plan as one that waits for no amendments.
func (s *Shape) Close() {
	delete(s.fields, "open")
	delete(s.fields, "open_for")
}

// Steps returns the steps as they are written.
func (s *Shape) Steps() []json.RawMessage {
	steps := make([]json.RawMessage, len(s.steps))
	for i := range steps {
		steps[i] = s.steps[i].text
	}
	return steps
}

// Composites returns the ids of the steps that have a plan of their own, in their order.
func (s *Shape) Composites() (ids []string) {
	for i := range s.steps {
		if _, ok := s.Within(s.steps[i].id); ok {
			ids = append(ids, s.steps[i].id)
		}
	}
	return ids
}

// JSON writes the plan.
func (s *Shape) JSON() json.RawMessage {
	s.fields["steps"], _ = json.Marshal(s.Steps()) // they were read from JSON, as the other fields
	body, _ := json.Marshal(s.fields)
	return body
}
