package reference

import "errors"

// What a plan or a step says of whom to ask before it begins, and what the question comes to.

// Approval says that a person is asked before something begins.
type Approval struct {
	// Timed is whether an answer may take only so long; Approves is what it comes to then, else it is rejected.
	Timed, Approves bool
	// All is whether the items of a list are asked for together.
	All bool

	text *value // nil where the question has none
}

var errApproval = errors.New("an approval is true, false or an object")

// parseApproval reads the approval of a step or a plan; nil for none.
func parseApproval(v *value) (*Approval, error) {
	switch {
	case v == nil || string(v.raw) == "false":
		return nil, nil
	case string(v.raw) == "true":
		return &Approval{}, nil
	case v.kind != '{':
		return nil, errApproval
	}
	a := &Approval{Timed: v.option("timeout") != nil, Approves: isText(v.option("on_timeout"), approve), text: v.option("ask")}
	if all := v.option("all"); all != nil {
		a.All = string(all.raw) == "true"
	}
	if a.text != nil && a.text.kind != '"' {
		return nil, errApproval
	}
	return a, nil
}

// questionOf returns the text of a step's question; nil where it has none.
func (s *PlanStep) questionOf() *value {
	if s.Approval == nil {
		return nil
	}
	return s.Approval.text
}

// linkQuestion returns the references of a step's question to other steps. Items that are asked for together have none of
// their own to refer to.
func (p *Plan) linkQuestion(i int) (others []ref, err error) {
	s := &p.Steps[i]
	text := s.questionOf()
	if text == nil {
		return nil, nil
	}
	all, err := references(text)
	for _, r := range all {
		if s.ForEach && r.id == s.As {
			if s.Approval.All || r.of != ofResult {
				return nil, errRef
			}
			continue
		}
		others = append(others, r)
	}
	return others, err
}

// Question returns what a step's question comes to, or why it comes to nothing. item is nil where there is none.
func (p *Plan) Question(step int, item []byte, s Sight) ([]byte, *Err) {
	text := p.Steps[step].questionOf()
	if text == nil {
		return nil, nil
	}
	r := resolver{plan: p, sight: s, item: item}
	if item != nil {
		r.as = p.Steps[step].As
	}
	out := r.resolve(text)
	return out, r.err
}
