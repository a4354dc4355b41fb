package tool

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Elem is one element of a path into a JSON value. What it means depends on the value that it goes into.
type Elem struct {
	Key   string
	Index int  // the item of an array; negative for none
	IsKey bool // may be a member of an object
}

// Look is what a schema says for sure of the place that a path leads to, in any value that is valid.
type Look struct {
	// Types are the JSON types that a value there may have; nil where the schema leaves it open.
	Types []string
	// Missing is set where nothing can be there: At is the element of the path that leads nowhere, Names are the
	// properties that are declared in its place, sorted; none where it goes into something else than an object.
	Missing bool
	At      int
	Names   []string
}

// Look follows a path through the schema, which counts as what the author meant: a property that is declared nowhere is
// missing, unless additionalProperties or patternProperties allow it. Where the schema branches (anyOf, oneOf, allOf,
// if, $ref and their like) it says nothing.
func (s *Schema) Look(path []Elem) Look {
	if s == nil || s.s == nil {
		return Look{}
	}
	if s.single != nil && (len(path) == 0 || path[0].Key != s.single.argument) {
		return Look{} // which of two schemas it is depends on the rest of the value
	}
	x := s.s
	for i, e := range path {
		next, names, is := into(x, e)
		switch is {
		case isUnknown:
			return Look{}
		case isMissing:
			return Look{Missing: true, At: i, Names: names}
		default: // it is there
		}
		x = next
	}
	return Look{Types: typesOf(x)}
}

// maxFindDepth bounds how deep PathTo looks.
const maxFindDepth = 8

// PathTo returns a shortest path to a property of this name, through declared properties and the first items of arrays.
func (s *Schema) PathTo(name string) ([]Elem, bool) {
	if s == nil || s.s == nil || s.single != nil {
		return nil, false
	}
	type way struct {
		x    *jsonschema.Schema
		path []Elem
	}
	for level := []way{{x: s.s}}; len(level) > 0 && len(level[0].path) < maxFindDepth; {
		var next []way
		for _, w := range level {
			if w.x.Properties[name] != nil {
				return append(w.path, Elem{Key: name, Index: -1, IsKey: true}), true
			}
			w.path = slices.Clip(w.path)
			for _, key := range slices.Sorted(maps.Keys(w.x.Properties)) {
				next = append(next, way{w.x.Properties[key], append(w.path, Elem{Key: key, Index: -1, IsKey: true})})
			}
			if first, _, is := item(w.x, Elem{}); is == isThere {
				next = append(next, way{first, append(w.path, Elem{})})
			}
		}
		level = next
	}
	return nil, false
}

// Disjoint reports whether no value can be of a type of both lists; an empty one stands for all types.
func Disjoint(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	for _, t := range a {
		if slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number") ||
			t == "number" && slices.Contains(b, "integer") {
			return false
		}
	}
	return true
}

type place uint8

const (
	isUnknown place = iota
	isThere
	isMissing
)

// into follows one element.
func into(x *jsonschema.Schema, e Elem) (next *jsonschema.Schema, names []string, is place) {
	types := typesOf(x)
	object := slices.Contains(types, "object") || types == nil && x.Properties != nil
	array := slices.Contains(types, "array")
	switch {
	case refers(x), object && array, types == nil && !object:
		return nil, nil, isUnknown
	case object:
		return member(x, e)
	case array:
		return item(x, e)
	}
	return nil, nil, isMissing // a string, a number, a boolean or null
}

func member(x *jsonschema.Schema, e Elem) (next *jsonschema.Schema, names []string, is place) {
	if next = x.Properties[e.Key]; next != nil && e.IsKey {
		return next, nil, isThere
	}
	closed := x.AdditionalProperties == false
	if !e.IsKey {
		return nil, nil, isMissing
	}
	if branches(x) || len(x.PatternProperties) > 0 ||
		!closed && (x.AdditionalProperties != nil || len(x.Properties) == 0) {
		return nil, nil, isUnknown
	}
	for name := range x.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return nil, names, isMissing
}

func item(x *jsonschema.Schema, e Elem) (next *jsonschema.Schema, names []string, is place) {
	if e.Index < 0 {
		if e.IsKey {
			return nil, nil, isMissing
		}
		return nil, nil, isUnknown // a number beyond all bounds
	}
	if e.Index < len(x.PrefixItems) {
		return x.PrefixItems[e.Index], nil, isThere
	}
	next = x.Items2020
	if all, old := x.Items.(*jsonschema.Schema); old {
		next = all
	}
	if next == nil || next.Bool != nil {
		return nil, nil, isUnknown
	}
	return next, nil, isThere
}

// typesOf returns the types that a schema names; nil where it names none, or may not be what counts.
func typesOf(x *jsonschema.Schema) []string {
	if x.Types == nil || refers(x) {
		return nil
	}
	return x.Types.ToStrings()
}

// refers reports whether another schema stands in this one's place.
func refers(x *jsonschema.Schema) bool {
	return x.Ref != nil || x.RecursiveRef != nil || x.DynamicRef != nil
}

// branches reports whether other schemas, too, may declare properties.
func branches(x *jsonschema.Schema) bool {
	return len(x.AllOf)+len(x.AnyOf)+len(x.OneOf)+len(x.DependentSchemas)+len(x.Dependencies) > 0 ||
		x.If != nil || x.UnevaluatedProperties != nil
}
