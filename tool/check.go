package tool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// MaxViolations is the most violations that one check lists.
const MaxViolations = 50

// Hole is a part of a value that is not known yet: a reference, which is resolved when the step runs.
type Hole struct {
	// Pointer is the JSON pointer (RFC 6901) of the part; "" is the whole value.
	Pointer string
	// Text says that the part is known to be a string, only not which one (a template).
	Text bool
}

// Violation is one way in which a value breaks a schema.
type Violation struct {
	// Pointer is the JSON pointer of the part that is wrong; "" is the whole value.
	Pointer string
	// Message says what is wrong, in one sentence for a model or a person.
	Message string
	// Hint says what to write instead, with what stands there now; "" where nobody can tell.
	Hint string
	// Text says that the part is a hole of text (see Hole): what is wrong with it is that it is text.
	Text bool
	// Missing is the name of the property that the part lacks; "" for anything else.
	Missing string

	null  bool // the part is null
	fewer bool // there is too little of it
}

// Check returns the violations of the schema by value, at most MaxViolations, sorted by pointer. value is JSON.
//
// What stands in value at a hole is a placeholder and only its being there counts. Violations that the hole may be to
// blame for are left out: those at the hole or within it, and those of a part around it that depend on its content
// (anyOf, oneOf, not, if, contains, uniqueItems, enum, const, unevaluated…). Violations that are certain whatever the
// hole becomes are kept: a wrong type elsewhere, a missing or superfluous property, and a type other than string for a
// hole that is text. An empty answer therefore means "valid" only where there are no holes.
//
// The work of a check is bounded in steps, which depend on schema and value alone. One that takes more is a violation
// of the whole value.
func (s *Schema) Check(value []byte, holes []Hole) []Violation {
	steps := maxSteps
	return s.CheckWithin(value, holes, &steps)
}

// CheckWithin is Check for one of several values that share an allowance of steps, from which it takes what it uses.
func (s *Schema) CheckWithin(value []byte, holes []Hole, steps *int) []Violation {
	if s == nil {
		return nil
	}
	if s.single != nil {
		form, refusal := s.form(value, holes)
		if refusal != nil {
			return refusal
		}
		return form.CheckWithin(value, holes, steps)
	}
	if s.open && !isHole(holes, "") {
		if v := bytes.TrimLeft(value, " \t\r\n"); len(v) > 0 && v[0] == '{' {
			return nil
		}
		return []Violation{{Message: "must be an object"}}
	}
	if s.s == nil {
		return nil
	}
	if s.quick != nil && s.quick.valid(value, holes) {
		return nil
	}
	v, err := decodeBounded(value)
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	return s.validate(v, len(value), finder{holes: holes}, steps)
}

// validate runs the validator and picks what is certain from its tree of errors, as f says.
func (s *Schema) validate(v any, size int, f finder, steps *int) (list []Violation) {
	s.budget.start(size, *steps)
	defer func() {
		if !s.budget.end(steps) {
			list = []Violation{{Message: tooManySteps,
				Hint: "hand over less at once, or simplify the tool's schema: fewer branches, contains, patterns and values of enum"}}
		}
	}()
	defer func() { // the validator is not ours, and a value from anywhere must not end the process
		if r := recover(); r != nil {
			list = []Violation{{Message: fmt.Sprintf("the schema can't be checked against this value: %v", r)}}
		}
	}()
	err := s.s.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Violation{{Message: err.Error()}}
	}
	f.s, f.root = s, v
	f.index()
	f.visit(invalid, nil)
	slices.SortFunc(f.found, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(f.found)
}

const tooManySteps = "the schema takes too many steps to check against this value"

// finder walks a tree of validation errors.
type finder struct {
	s         *Schema
	holes     []Hole
	byPointer map[string]*Hole
	sorted    []string              // their pointers
	root      any                   // the whole value
	wants     func(*Violation) bool // which are to be found; nil for all
	found     []Violation
}

// visit collects the certain violations of e and its causes. condition is where the outermost "if" around e was
// decided; nil for none.
func (f *finder) visit(e *jsonschema.ValidationError, condition *string) {
	if len(f.found) >= MaxViolations {
		return
	}
	at := pointer(e.InstanceLocation)
	if condition == nil { // an outer one lies around the inner ones, so it sees all their holes
		if c, ok := conditional(e); ok {
			condition = &c
		}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, c := range e.Causes {
			f.visit(c, condition)
		}
		return
	case *kind.AnyOf:
		// An anyOf of one is what generators write for a type with a description; look through it.
		if len(e.Causes) == 1 && !f.holeWithin(at) {
			f.visit(e.Causes[0], condition)
			return
		}
	case *kind.Required:
		if f.certain(e, at, condition) {
			f.required(e, at, k.Missing)
		}
		return
	case *kind.AdditionalProperties:
		if f.certain(e, at, condition) {
			f.superfluous(e, at, k.Properties)
		}
		return
	}
	if f.certain(e, at, condition) {
		f.broken(e, at)
	}
}

// broken adds what is wrong with a value.
func (f *finder) broken(e *jsonschema.ValidationError, at string) {
	v := Violation{Pointer: at, Message: f.s.message(e), fewer: fewer(e.ErrorKind)}
	value, there := f.at(e.InstanceLocation)
	v.null = there && value == nil
	switch {
	case isHole(f.holes, at):
		v.Text = true
	case there && !f.holeWithin(at):
		v.Message += notGiven(e, value)
		v.Hint = f.hint(e, value)
	}
	f.add(v)
}

func (f *finder) add(v Violation) {
	if len(f.found) < MaxViolations && (f.wants == nil || f.wants(&v)) {
		f.found = append(f.found, v)
	}
}

// certain reports whether a violation stands whatever the holes become.
func (f *finder) certain(e *jsonschema.ValidationError, at string, condition *string) bool {
	if len(f.holes) == 0 {
		return true
	}
	if condition != nil && f.holeWithin(*condition) {
		return false
	}
	if h, within := f.around(at); within {
		// Nothing is known of what is in the hole, but that text is a string, and that "false" refuses everything.
		switch k := e.ErrorKind.(type) {
		case *kind.Type:
			return h.Text && at == h.Pointer && !contains(k.Want, "string")
		case *kind.FalseSchema:
			return at == h.Pointer && !unevaluated(e.SchemaURL)
		}
		return false
	}
	switch e.ErrorKind.(type) {
	case *kind.Type, *kind.Required, *kind.AdditionalProperties, *kind.PropertyNames, *kind.Dependency,
		*kind.DependentRequired, *kind.MinProperties, *kind.MaxProperties, *kind.MinItems, *kind.MaxItems,
		*kind.AdditionalItems:
		return true // they look at keys and counts only
	case *kind.FalseSchema:
		return !unevaluated(e.SchemaURL) || !f.holeWithin(parent(at))
	}
	return !f.holeWithin(at)
}

// unevaluated reports whether a schema stands under unevaluatedProperties or unevaluatedItems, which depend on what
// other subschemas made of the values beside it.
func unevaluated(url string) bool {
	return strings.HasSuffix(url, "/unevaluatedProperties") || strings.HasSuffix(url, "/unevaluatedItems")
}

// index makes the holes quick to find: there may be thousands, and as many violations.
func (f *finder) index() {
	if len(f.holes) == 0 {
		return
	}
	f.byPointer, f.sorted = make(map[string]*Hole, len(f.holes)), make([]string, len(f.holes))
	for i := range f.holes {
		f.byPointer[f.holes[i].Pointer], f.sorted[i] = &f.holes[i], f.holes[i].Pointer
	}
	slices.Sort(f.sorted)
}

// around returns the hole that a pointer leads to or into.
func (f *finder) around(at string) (*Hole, bool) {
	for {
		if h := f.byPointer[at]; h != nil {
			return h, true
		}
		if at == "" {
			return nil, false
		}
		at = parent(at)
	}
}

// holeWithin reports whether a hole is at or below a pointer.
func (f *finder) holeWithin(at string) bool {
	if f.byPointer[at] != nil {
		return true
	}
	i, _ := slices.BinarySearch(f.sorted, at+"/")
	return i < len(f.sorted) && strings.HasPrefix(f.sorted[i], at+"/")
}

func isHole(holes []Hole, at string) bool {
	return slices.ContainsFunc(holes, func(h Hole) bool { return h.Pointer == at })
}

func parent(at string) string {
	if i := strings.LastIndexByte(at, '/'); i >= 0 {
		return at[:i]
	}
	return ""
}

// conditional reports whether an error stems from a "then" or "else", and gives the place whose "if" chose it. The
// schema's location tells: .../then/properties/x, where each keyword that goes into the value takes one step off the
// error's own place.
func conditional(e *jsonschema.ValidationError) (string, bool) {
	_, path, ok := strings.Cut(e.SchemaURL, "#/")
	if !ok {
		return "", false
	}
	at, below := -1, 0
	words := strings.Split(path, "/")
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "then", "else":
			if at < 0 {
				at = i
			}
		case "properties", "patternProperties", "prefixItems":
			i++ // the next word is a name
			if at >= 0 {
				below++
			}
		case "items", "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "contains":
			if at >= 0 {
				below++
			}
		case "$defs", "definitions", "dependentSchemas", "dependencies":
			i++
		}
	}
	if at < 0 {
		return "", false
	}
	place := e.InstanceLocation
	return pointer(place[:max(len(place)-below, 0)]), true
}

// pointer writes a JSON pointer.
func pointer(tokens []string) string {
	if len(tokens) == 0 {
		return ""
	}
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(jsontape.EscapeToken(t))
	}
	return b.String()
}
