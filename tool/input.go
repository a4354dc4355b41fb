package tool

import (
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

// Input compiles the schema that a step's arguments are checked against. Errors are *fault.Error of code invalid_tool.
//
// For most tools it is the input schema. A tool with a batch is called in two ways: with the array argument itself,
// which the input schema describes, or as one single call with the arguments of one item, which are checked against the
// schema of the array's items; workers gather single calls into an array. Which of the two a step means is told by
// whether its arguments have the key batch.argument. Where the input schema has no such property, it describes the
// single call and is used for both. Where it asks for more than the array, or its items can't be objects, there is no
// single call, and arguments without the array are refused with a message that says so.
func (d *Definition) Input() (*Schema, error) {
	s, err := CompileSchema(d.InputSchema)
	if err != nil || d.Orchestration == nil || d.Orchestration.Batch == nil {
		return s, err
	}
	return s.withBatch(d.InputSchema, d.Orchestration.Batch.Argument), nil
}

// Output compiles the schema of the result; nil for a tool that declares none. Errors are *fault.Error of code
// invalid_tool.
func (d *Definition) Output() (*Schema, error) {
	if len(d.OutputSchema) == 0 {
		return nil, nil
	}
	return CompileSchema(d.OutputSchema)
}

// single is the second way of calling a tool with a batch: one item, without the array around it.
type single struct {
	argument string  // the key that tells the two ways apart
	schema   *Schema // of one item's arguments
	refusal  string  // why there is no single call; "" where there is one
}

// withBatch returns the schema that also takes single calls, or s itself where it describes nothing else.
func (s *Schema) withBatch(raw json.RawMessage, argument string) *Schema {
	if s.s == nil {
		return s
	}
	property := s.s.Properties[argument]
	if property == nil {
		return s
	}
	one := single{argument: argument, schema: s.items(property, raw, argument)}
	for _, name := range s.s.Required {
		if name != argument {
			one.refusal = fmt.Sprintf(
				"the array %q is missing: the tool also needs %q beside it, so it can't be called for one item alone; pass {%[1]q: […], %[2]q: …}",
				clip(argument), clip(name))
		}
	}
	if one.refusal == "" && !one.schema.takesObjects() {
		one.refusal = fmt.Sprintf(
			"the array %q is missing: its items are no objects, so the tool can't be called for one item alone; pass {%[1]q: […]}", clip(argument))
	}
	return &Schema{s: s.s, byURL: s.byURL, budget: s.budget, array: s, single: &one}
}

// items returns the schema of an array's items as part of s; one that accepts any object where it has none.
func (s *Schema) items(property *jsonschema.Schema, raw json.RawMessage, argument string) *Schema {
	for hops := 0; property.Ref != nil && property.Items2020 == nil && property.Items == nil && hops < maxRefs; hops++ {
		property = property.Ref
	}
	item := property.Items2020
	if old, ok := property.Items.(*jsonschema.Schema); ok { // the drafts before 2020-12
		item = old
	}
	if item == nil {
		return &Schema{open: true}
	}
	doc := itemsDoc(raw, argument)
	return &Schema{s: item, byURL: s.byURL, budget: s.budget, open: isOpen(doc), quick: newQuick(item, doc, 0)}
}

// maxRefs bounds how far references are followed.
const maxRefs = 32

// itemsDoc returns the text of an array's items schema, decoded, where it stands in the property itself; nil elsewhere.
func itemsDoc(raw json.RawMessage, argument string) any {
	doc, err := decodeBounded(raw)
	if err != nil {
		return nil
	}
	for _, name := range []string{"properties", argument, "items"} {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = m[name]
	}
	return doc
}

// form returns the schema that these arguments are meant for, or says why there is none.
func (s *Schema) form(value []byte, holes []Hole) (schema *Schema, refusal []Violation) {
	one := s.single
	switch {
	case isHole(holes, "") || hasKey(value, one.argument):
		return s.array, nil
	case one.refusal != "":
		refusal = []Violation{{Message: one.refusal}}
		if key := one.misspelt(value, holes); key != "" {
			refusal[0].Hint = fmt.Sprintf("did you mean %q where %q stands?", one.argument, clip(key))
		}
	default:
		if key := one.misspelt(value, holes); key != "" {
			refusal = []Violation{{
				Pointer: "/" + jsontape.EscapeToken(key),
				Message: fmt.Sprintf("one item has no property %q, and without the array %q this is a call for one item", clip(key),
					clip(one.argument)),
				Hint: fmt.Sprintf("did you mean %q?", one.argument),
			}}
		}
	}
	return one.schema, refusal
}

// misspelt returns a key that was probably meant to be the array's; "" for none: it is like the array's name, an item
// has no such property, and an array stands there, or a reference that may come to one.
func (o *single) misspelt(value []byte, holes []Hole) string {
	declared, known := o.schema.declared()
	if !known {
		return ""
	}
	d := decoder{Cursor: jsontape.Cursor{Src: value}}
	if d.Next() != '{' {
		return ""
	}
	d.At++
	for d.Next() == '"' {
		key, err := d.str()
		if err != nil || d.Next() != ':' {
			return ""
		}
		d.At++
		like, least := text.Likeness(key, o.argument), text.SharesStart
		if d.Next() != '[' {
			if least = text.HoldsOther + 1; len(declared) == 0 || !isHole(holes, "/"+jsontape.EscapeToken(key)) {
				least = like + 1
			}
		}
		if like >= least && declared[key] == nil {
			return key
		}
		if _, err := d.value(1); err != nil {
			return ""
		}
		if d.Next() == ',' {
			d.At++
		}
	}
	return ""
}

// declared returns the properties that the schema of an item names; known is false where it branches, so that there may
// be others.
func (s *Schema) declared() (properties map[string]*jsonschema.Schema, known bool) {
	if s.s == nil {
		return nil, true
	}
	x := s.s
	for hops := 0; x.Ref != nil && x.Properties == nil && hops < maxRefs; hops++ {
		x = x.Ref
	}
	branches := x.Ref != nil || len(x.AllOf)+len(x.AnyOf)+len(x.OneOf)+len(x.PatternProperties) > 0 || x.If != nil ||
		x.DynamicRef != nil
	return x.Properties, !branches
}

// hasKey reports whether value is an object with a key; true for what is no object, so that the schema says so.
func hasKey(value []byte, key string) bool {
	d := decoder{Cursor: jsontape.Cursor{Src: value}}
	if d.Next() != '{' {
		return true
	}
	d.At++
	for d.Next() == '"' {
		k, err := d.str()
		if err != nil || k == key || d.Next() != ':' {
			return true
		}
		d.At++
		if _, err := d.value(1); err != nil {
			return true
		}
		if d.Next() == ',' {
			d.At++
		}
	}
	return false
}

// Form returns the schema that arguments are held against, which have the key of a tool's batch or don't.
func (s *Schema) Form(has func(key string) bool) *Schema {
	switch {
	case s == nil || s.single == nil:
		return s
	case has(s.single.argument):
		return s.array
	}
	return s.single.schema
}
