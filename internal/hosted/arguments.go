package hosted

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
)

// properties are what an input schema says about the arguments that placeholders take.
type properties struct {
	declared map[string]property
	required map[string]bool
}

type property struct {
	Default json.RawMessage `json:"default"`
	Type    json.RawMessage `json:"type"` // a string or several
}

// propertiesOf reads the outermost properties of an input schema. What it can't read has none; whether the schema is
// valid is checked elsewhere.
func propertiesOf(schema json.RawMessage) properties {
	var in struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	p := properties{map[string]property{}, map[string]bool{}}
	if json.Unmarshal(schema, &in) != nil {
		return p
	}
	for name, raw := range in.Properties {
		var one property
		_ = json.Unmarshal(raw, &one) // true and false are schemas too
		p.declared[name] = one
	}
	for _, name := range in.Required {
		p.required[name] = true
	}
	return p
}

// scalar reports whether the schema leaves room for a string, number or boolean.
func (p property) scalar() bool {
	var one string
	var several []string
	switch {
	case len(p.Type) == 0:
		return true
	case json.Unmarshal(p.Type, &one) == nil:
		several = []string{one}
	case json.Unmarshal(p.Type, &several) != nil:
		return true
	}
	for _, t := range several {
		if t != "object" && t != "array" && t != "null" {
			return true
		}
	}
	return false
}

// arguments are those of one call, read as far as placeholders need them.
type arguments struct {
	given    map[string]json.RawMessage
	defaults map[string]json.RawMessage
}

func readArguments(args json.RawMessage, defaults map[string]json.RawMessage) (arguments, error) {
	a := arguments{defaults: defaults}
	if err := json.Unmarshal(args, &a.given); err != nil {
		return a, fault.Wrap(fault.InvalidArguments, err, "reading the arguments")
	}
	return a, nil
}

// text returns an argument as text: a string as it is, a number or boolean as its literal. ok is false where it is
// neither given (null counts as not given) nor has a default.
func (a arguments) text(name string) (text string, ok bool, err error) {
	raw := a.given[name]
	if len(raw) == 0 || raw[0] == 'n' {
		if raw = a.defaults[name]; len(raw) == 0 || raw[0] == 'n' {
			return "", false, nil
		}
	}
	switch raw[0] {
	case '{', '[':
		return "", false, fault.New(fault.InvalidArguments, "the argument %q must be a string, a number or a boolean", name).
			WithHint("refer to a part of it, for example $ref:step.field")
	case '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", false, fault.Wrap(fault.InvalidArguments, err, "reading the argument "+name)
		}
		return text, true, nil
	}
	return string(raw), true, nil
}

// must is text for placeholders that can't be left out.
func (a arguments) must(name string) (string, error) {
	text, ok, err := a.text(name)
	if err == nil && !ok {
		err = fault.New(fault.InvalidArguments, "the argument %q is missing", name)
	}
	return text, err
}
