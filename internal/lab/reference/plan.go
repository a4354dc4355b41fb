package reference

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Plan is a plan that was read. Only what matters to a run without a clock is kept.
type Plan struct {
	// Steps are in the order of the document.
	Steps []PlanStep
	// Outputs has the indexes of the output steps, in their order; of all steps where the plan names none.
	Outputs []int
	// Stop is on_failure: stop.
	Stop bool
	// MissingError is on_missing: error.
	MissingError bool
	// Waves is schedule: waves.
	Waves bool
	// Second is whether it is in language 2: a step has a condition or is a value, or names another by $error or $status, or the plan
	// has an output or a concurrency, or asks a person.
	Second bool
	// Output is what it comes to; nil for a plan whose output steps' results are returned.
	Output *value
	// Concurrency is the most calls that are under way at once; 0 for any number.
	Concurrency int
	// Approval is what a person is asked before the first step; nil for nothing.
	Approval *Approval
}

// PlanStep is one step of a plan.
type PlanStep struct {
	// ID and Tool are the step's own; Tool is empty for a value.
	ID, Tool string
	// Deps has the indexes of the steps that it takes values from or depends on, sorted, each once.
	Deps []int
	// Optional is whether its failure is nobody's business.
	Optional bool
	// MaxAttempts is its retry.max_attempts; 0 where it names none.
	MaxAttempts int
	// Value is whether it calls no tool, and is a value.
	Value bool
	// ForEach is whether it runs once for each item of a list.
	ForEach bool
	// As is what the items are called in its arguments.
	As string
	// Approval is what a person is asked before it begins; nil for nothing.
	Approval *Approval

	in *value // the list

	arguments *value
	condition *condition // nil for a step that is always taken
	asks      []ask      // in language 2
}

var (
	idRE   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	toolRE = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)
)

// Parse reads a plan. The error is the first thing wrong that it comes across; it does not look for everything that
// could be wrong.
func Parse(body []byte) (*Plan, error) {
	root, err := read(body)
	if err != nil {
		return nil, err
	}
	list := root.option("steps")
	if list == nil || list.kind != '[' || len(list.members) == 0 {
		return nil, fmt.Errorf("a plan has steps")
	}
	p := &Plan{
		Stop:         isText(root.option("on_failure"), "stop"),
		MissingError: isText(root.option("on_missing"), "error"),
		Waves:        isText(root.option("schedule"), "waves"),
	}
	if p.Approval, err = parseApproval(root.option("approval")); err != nil {
		return nil, err
	}
	p.Second = p.Approval != nil
	for _, m := range list.members {
		s, err := parseStep(m.value)
		if err != nil {
			return nil, err
		}
		if p.index(s.ID) >= 0 {
			return nil, fmt.Errorf("step %q stands twice", s.ID)
		}
		p.Steps = append(p.Steps, s)
	}
	for i, m := range list.members {
		if err := p.link(i, m.value); err != nil {
			return nil, fmt.Errorf("step %q: %w", p.Steps[i].ID, err)
		}
	}
	if err := p.shape(root); err != nil {
		return nil, err
	}
	return p, p.acyclic()
}

func isText(v *value, text string) bool { return v != nil && v.kind == '"' && v.text == text }

func (p *Plan) index(id string) int {
	return slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.ID == id })
}

func parseStep(v *value) (PlanStep, error) {
	var s PlanStep
	id, tool := v.option("id"), v.option("tool")
	worth := v.option("value")
	if id == nil || !idRE.MatchString(id.text) {
		return s, fmt.Errorf("a step has an id")
	}
	s.ID = id.text
	if err := s.parseValue(worth, v); err != nil {
		return s, err
	}
	if worth == nil && (tool == nil || !toolRE.MatchString(tool.text)) {
		return s, fmt.Errorf("a step has a tool, or a value")
	}
	if tool != nil {
		s.Tool = tool.text
	}
	if o := v.option("optional"); o != nil {
		s.Optional = string(o.raw) == "true"
	}
	if r := v.option("retry"); r != nil {
		if n := r.option("max_attempts"); n != nil {
			if err := json.Unmarshal(n.raw, &s.MaxAttempts); err != nil {
				return s, err
			}
		}
	}
	if err := s.parseForEach(v.option("for_each")); err != nil {
		return s, err
	}
	var err error
	if s.Approval, err = parseApproval(v.option("approval")); err != nil {
		return s, err
	}
	if !s.Value {
		if s.arguments, err = parseArguments(v.option("arguments")); err != nil {
			return s, err
		}
	}
	s.condition, err = parseCondition(v.option("if"))
	return s, err
}

// parseArguments returns the object that arguments are: themselves, or what a string holds.
func parseArguments(v *value) (*value, error) {
	if v == nil || v.kind == '"' && v.text == "" {
		return read([]byte("{}"))
	}
	if v.kind == '"' {
		if wholeRE.MatchString(v.text) {
			return nil, fmt.Errorf("arguments are no reference")
		}
		inner, err := read([]byte(v.text))
		if err != nil {
			return nil, err
		}
		v = inner
	}
	if v.kind != '{' || verbatim(v) != nil {
		return nil, fmt.Errorf("arguments are an object")
	}
	return v, nil
}

// link finds the steps that a step depends on.
func (p *Plan) link(i int, v *value) error {
	if err := p.noForeign(i); err != nil {
		return err
	}
	refs, err := references(p.Steps[i].arguments)
	if err != nil {
		return err
	}
	if p.Steps[i].ForEach {
		if refs, err = p.linkForEach(i, refs); err != nil {
			return err
		}
	}
	var ids []string
	for _, r := range refs {
		if d := p.index(r.id); d >= 0 && r.of == ofResult && p.Steps[d].ForEach && !r.intoEntries() {
			return errRef
		}
		ids = append(ids, r.id)
		p.Second = p.Second || r.of != ofResult
	}
	asked, err := p.linkQuestion(i)
	if err != nil {
		return err
	}
	for _, r := range asked {
		if d := p.index(r.id); d >= 0 && r.of == ofResult && p.Steps[d].ForEach && !r.intoEntries() {
			return errRef
		}
		ids = append(ids, r.id)
	}
	p.Second = p.Second || p.Steps[i].Value || p.Steps[i].Tool == askTool || p.Steps[i].Approval != nil
	if c := p.Steps[i].condition; c != nil {
		p.Second = true
		for _, r := range c.refs {
			if d := p.index(r.id); d >= 0 && r.of == ofResult && p.Steps[d].ForEach && !r.intoEntries() {
				return errRef
			}
			ids = append(ids, r.id)
		}
	}
	if d := v.option("depends_on"); d != nil {
		for _, m := range d.members {
			ids = append(ids, m.value.text)
		}
	}
	for _, id := range ids {
		dep := p.index(id)
		if dep < 0 {
			return fmt.Errorf("there is no step %q", id)
		}
		p.Steps[i].Deps = append(p.Steps[i].Deps, dep)
	}
	slices.Sort(p.Steps[i].Deps)
	p.Steps[i].Deps = slices.Compact(p.Steps[i].Deps)
	p.Steps[i].asks = p.asksOf(i, v.option("depends_on"))
	return nil
}

// references returns all references in some arguments, or in a list.
func references(v *value) ([]ref, error) {
	if v.kind == '"' {
		return referencesOfText(v.text)
	}
	if v.calc != nil {
		return v.calc.refs, nil
	}
	if verbatim(v) != nil {
		return nil, nil
	}
	if target, is, err := objectForm(v); is {
		return []ref{target}, err
	}
	var all []ref
	for _, m := range v.members {
		if v.kind == '{' {
			if _, err := keyText(m.key); err != nil {
				return nil, err
			}
		}
		some, err := references(m.value)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func referencesOfText(s string) ([]ref, error) {
	p, err := parse(s)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(p.refs)
	for _, part := range p.pieces {
		if part.ref != nil {
			all = append(all, *part.ref)
		}
	}
	return all, nil
}

// objectForm reads {"$ref": "a.city"}. is tells whether the value has the key $ref at all.
func objectForm(v *value) (target ref, is bool, err error) {
	inner := v.get("$ref")
	if inner == nil {
		return ref{}, false, nil
	}
	if len(v.members) != 1 || inner.kind != '"' {
		return ref{}, true, errRef
	}
	target, err = wholeRef(inner.text)
	return target, true, err
}

var escapedKeyRE = regexp.MustCompile(`^\$(\$+(?:ref|text))$`)

// keyText returns the key that a key in the arguments stands for.
func keyText(key string) (string, error) {
	if m := escapedKeyRE.FindStringSubmatch(key); m != nil {
		return m[1], nil
	}
	return parseKey(key)
}

func (p *Plan) outputs(v *value) error {
	if v == nil || len(v.members) == 0 {
		for i := range p.Steps {
			p.Outputs = append(p.Outputs, i)
		}
		return nil
	}
	for _, m := range v.members {
		i := p.index(m.value.text)
		if i < 0 || slices.Contains(p.Outputs, i) {
			return fmt.Errorf("output step %q is unknown, or stands twice", m.value.text)
		}
		p.Outputs = append(p.Outputs, i)
	}
	return nil
}

// acyclic takes away every step whose dependencies are all gone, as long as there is one.
func (p *Plan) acyclic() error {
	gone := map[int]bool{}
	for len(gone) < len(p.Steps) {
		before := len(gone)
		for i, s := range p.Steps {
			if !slices.ContainsFunc(s.Deps, func(d int) bool { return !gone[d] }) {
				gone[i] = true
			}
		}
		if len(gone) == before {
			return fmt.Errorf("steps wait for each other")
		}
	}
	return nil
}
