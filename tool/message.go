package tool

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// message says what is wrong, for a model that has to mend it. What the value was is quoted only as far as needed.
func (s *Schema) message(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "must be " + article(k.Want) + ", not " + article([]string{k.Got})
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Format:
		if k.Want == "regex" && k.Err != nil {
			return "is not a pattern that can be used: " + k.Err.Error()
		}
		return "is not a valid " + k.Want
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return "must not be like this: it fits the schema under \"not\""
	case *kind.AnyOf:
		return "fits none of the alternatives of anyOf" + s.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			return fmt.Sprintf("fits alternatives %d and %d of oneOf, but may fit only one", k.Subschemas[0], k.Subschemas[1])
		}
		return "fits none of the alternatives of oneOf" + s.alternatives(e)
	case *kind.RefCycle:
		return "can't be checked: the schema refers to itself without end"
	case *kind.Dependency:
		return fmt.Sprintf("with %q it needs %s too", clip(k.Prop), quotedList(k.Missing))
	case *kind.DependentRequired:
		return fmt.Sprintf("with %q it needs %s too", clip(k.Prop), quotedList(k.Missing))
	case *kind.PropertyNames:
		return fmt.Sprintf("%q is not allowed as a property's name", clip(k.Property))
	}
	return sizeMessage(e)
}

// sizeMessage says what is wrong with a count, a length or a number.
func sizeMessage(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.MinProperties:
		return fmt.Sprintf("has %d properties, at least %d are needed", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d properties, at most %d are allowed", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d items, at least %d are needed", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items, at most %d are allowed", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal, but all must differ", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "no item fits the schema under \"contains\""
	case *kind.MinContains:
		return fmt.Sprintf("%d items fit the schema under \"contains\", at least %d must", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("%d items fit the schema under \"contains\", at most %d may", len(k.Got), k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, at least %d are needed", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, at most %d are allowed", k.Got, k.Want)
	case *kind.Pattern:
		return fmt.Sprintf("does not match the pattern %s", clip(k.Want))
	case *kind.Minimum:
		return "must be at least " + rational(k.Want)
	case *kind.Maximum:
		return "must be at most " + rational(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + rational(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + rational(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + rational(k.Want)
	}
	if e.ErrorKind != nil {
		return "breaks the schema's " + strings.Join(e.ErrorKind.KeywordPath(), "/")
	}
	return "breaks the schema"
}

// missing says that a required property isn't there, and what it should be, where the schema says so.
func (s *Schema) missing(url, name string) string {
	m := fmt.Sprintf("the required property %q is missing", clip(name))
	p := s.property(url, name)
	if p == nil {
		return m
	}
	var about []string
	if p.Types != nil {
		about = append(about, strings.Join(p.Types.ToStrings(), " or "))
	}
	if p.Enum != nil {
		about = append(about, "one of "+values(p.Enum.Values))
	}
	if p.Description != "" {
		about = append(about, clip(p.Description))
	}
	if len(about) > 0 {
		m += " (" + strings.Join(about, ": ") + ")"
	}
	return m
}

func (s *Schema) property(url, name string) *jsonschema.Schema {
	x := s.byURL[url]
	if x == nil {
		return nil
	}
	p := x.Properties[name]
	for n := 0; p != nil && p.Ref != nil && p.Types == nil && n < 8; n++ { // $ref to a definition
		p = p.Ref
	}
	return p
}

// alternatives says in short what the alternatives of an anyOf or oneOf wanted.
func (s *Schema) alternatives(e *jsonschema.ValidationError) string {
	const most = 4
	var all []string
	for _, c := range e.Causes {
		for len(c.Causes) > 0 {
			c = c.Causes[0]
		}
		if c.ErrorKind == nil {
			return ""
		}
		m := s.message(c)
		if k, ok := c.ErrorKind.(*kind.Required); ok && len(k.Missing) > 0 {
			m = s.missing(c.SchemaURL, k.Missing[0])
		} else if k, ok := c.ErrorKind.(*kind.AdditionalProperties); ok && len(k.Properties) > 0 {
			m = fmt.Sprintf("there is no property %q", clip(k.Properties[0]))
		}
		if len(c.InstanceLocation) > len(e.InstanceLocation) {
			m = pointer(c.InstanceLocation[len(e.InstanceLocation):]) + " " + m
		}
		if !contains(all, m) {
			all = append(all, m)
		}
	}
	if len(all) == 0 || len(all) > most {
		return ""
	}
	return ": " + strings.Join(all, "; or ")
}

// article writes types as "a string or a number".
func article(types []string) string {
	all := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "null":
			all[i] = t
		case "array", "object", "integer":
			all[i] = "an " + t
		default:
			all[i] = "a " + t
		}
	}
	return strings.Join(all, " or ")
}

// values writes JSON values as a list, the first few of them.
func values(list []any) string {
	const most = 16
	all := make([]string, 0, most)
	for i, v := range list {
		if i == most {
			all = append(all, "…")
			break
		}
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte("?")
		}
		all = append(all, clip(string(b)))
	}
	return strings.Join(all, ", ")
}

func quotedList(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = quoted(clip(w))
	}
	return listed(all)
}

// rational writes a number of a schema.
func rational(r *big.Rat) string {
	if r == nil {
		return "?"
	}
	if r.IsInt() {
		return clip(r.Num().String())
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}
