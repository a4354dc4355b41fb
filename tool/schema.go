package tool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepjet/stepjet/fault"
)

// Limits of schemas. They are far above what tools have, and keep compiling one in the order of milliseconds.
const (
	// MaxSchema is the largest schema, in bytes.
	MaxSchema = 256 << 10
	// MaxSchemaNodes is the most objects and arrays in one schema.
	MaxSchemaNodes = 8192
	// MaxPatternSize is the most instructions that all regular expressions of a schema may compile to; a repetition
	// counts as often as it repeats.
	MaxPatternSize = 20_000
)

// Schema is a compiled JSON Schema (draft 2020-12 unless "$schema" names another one). It may be used from many
// goroutines.
type Schema struct {
	open   bool // accepts any object: nothing to look at
	quick  *quick
	s      *jsonschema.Schema
	byURL  map[string]*jsonschema.Schema
	budget *budget // nil where there is nothing to check
	// Of a tool with a batch, nil for others: the schema of the array form, and the other form.
	array  *Schema
	single *single
}

// CompileSchema compiles a JSON Schema; nil or empty gives one that accepts any object. Nothing outside raw is loaded,
// be it file or URL: a "$ref" that leads out of raw is an error, but for the published meta-schemas. Patterns are RE2:
// look-around and back-references are refused. Errors are *fault.Error of code invalid_tool; they name all that is
// wrong, and Flaws is their cause.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	if len(raw) == 0 {
		return &Schema{open: true}, nil
	}
	if len(raw) > MaxSchema {
		return nil, invalidSchema("%d bytes, at most %d are allowed", len(raw), MaxSchema)
	}
	doc, err := decodeBounded(raw)
	if err != nil {
		return nil, invalidSchema("%s", err.Error())
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, invalidSchema("a JSON Schema is an object, true or false")
	}
	if n := countNodes(doc); n > MaxSchemaNodes {
		return nil, invalidSchema("%d objects and arrays, at most %d are allowed", n, MaxSchemaNodes)
	}
	compiled, err := compile(doc)
	if err != nil {
		flaws := schemaFlaws(doc, err)
		return nil, flaws.fault(notValidSchema + flaws.Error())
	}
	s := &Schema{s: compiled, byURL: map[string]*jsonschema.Schema{}, open: isOpen(doc), quick: newQuick(compiled, doc, 0)}
	s.walk(compiled)
	s.budget = &budget{}
	s.budget.install(s.byURL)
	return s, nil
}

func invalidSchema(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidTool, notValidSchema+format, args...)
}

const notValidSchema = "the schema is not valid: "

// schemaURL names the schema within the compiler; it is never loaded.
const (
	schemaHost = "https://stepjet.invalid"
	schemaURL  = schemaHost + "/schema"
)

func compile(doc any) (s *jsonschema.Schema, err error) {
	defer func() { // the compiler has a panic for states that it thinks impossible
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("it can't be compiled: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine((&patterns{}).compile)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// noLoader loads nothing: what a schema refers to has to be within it.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema has to stand alone; nothing is loaded from outside")
}

// isOpen reports whether a schema accepts every object for sure.
func isOpen(doc any) bool {
	m, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range m {
		switch name {
		case "$schema", "title", "description", "$comment", "examples", "default", "x-orchestration":
		case "type":
			if v != "object" {
				return false
			}
		case "properties":
			if p, ok := v.(map[string]any); !ok || len(p) > 0 {
				return false
			}
		case "required":
			if a, ok := v.([]any); !ok || len(a) > 0 {
				return false
			}
		case "additionalProperties":
			if v != true {
				return false
			}
		default:
			return false
		}
	}
	return m["type"] == "object" // {} accepts more than objects
}

// takesObjects reports whether any object at all can be valid, as far as the top level says.
func (s *Schema) takesObjects() bool {
	if s.open || s.s == nil {
		return true
	}
	x := s.s
	for hops := 0; x.Types == nil && x.Ref != nil && hops < maxRefs; hops++ {
		x = x.Ref
	}
	if x.Bool != nil {
		return *x.Bool
	}
	return x.Types == nil || contains(x.Types.ToStrings(), "object")
}

func countNodes(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			n += countNodes(x)
		}
	case []any:
		for _, x := range v {
			n += countNodes(x)
		}
	default:
		return 0
	}
	return n
}

// walk visits every subschema once.
func (s *Schema) walk(root *jsonschema.Schema) {
	todo := []*jsonschema.Schema{root}
	for len(todo) > 0 {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if x == nil || s.byURL[x.Location] != nil {
			continue
		}
		s.byURL[x.Location] = x
		todo = append(todo, x.Ref, x.RecursiveRef)
		if x.DynamicRef != nil {
			todo = append(todo, x.DynamicRef.Ref)
		}
		todo = children(x, todo)
	}
}

// children appends the subschemas that a schema holds.
func children(x *jsonschema.Schema, list []*jsonschema.Schema) []*jsonschema.Schema {
	list = append(list, x.Not, x.If, x.Then, x.Else, x.PropertyNames, x.UnevaluatedProperties, x.Contains, x.Items2020,
		x.UnevaluatedItems, x.ContentSchema)
	for _, many := range [][]*jsonschema.Schema{x.AllOf, x.AnyOf, x.OneOf, x.PrefixItems} {
		list = append(list, many...)
	}
	for _, many := range []map[string]*jsonschema.Schema{x.Properties, x.DependentSchemas} {
		for _, c := range many {
			list = append(list, c)
		}
	}
	for _, c := range x.PatternProperties {
		list = append(list, c)
	}
	for _, c := range x.Dependencies {
		list = appendAny(list, c)
	}
	list = appendAny(list, x.AdditionalProperties)
	list = appendAny(list, x.AdditionalItems)
	return appendAny(list, x.Items)
}

func appendAny(list []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return append(list, v)
	case []*jsonschema.Schema:
		return append(list, v...)
	}
	return list
}

// AcceptsAnyObject reports whether the schema accepts every object for sure, so that there is nothing to check.
func (s *Schema) AcceptsAnyObject() bool { return s == nil || s.open }
