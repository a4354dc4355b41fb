package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

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
	budget *budget // nil where the schema can't make a check much longer than the value
	// Of a tool with a batch, nil for others: the schema of the array form, and the other form.
	array  *Schema
	single *single
}

// CompileSchema compiles a JSON Schema; nil or empty gives one that accepts any object. Nothing outside raw is loaded,
// be it file or URL: a "$ref" that leads out of raw is an error, but for the published meta-schemas. Patterns are RE2:
// look-around and back-references are refused. Errors are *fault.Error of code invalid_tool.
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
		return nil, invalidSchema("%s", compileMessage(err))
	}
	s := &Schema{s: compiled, byURL: map[string]*jsonschema.Schema{}, open: isOpen(doc), quick: newQuick(compiled, doc, 0)}
	if s.walk(compiled) {
		s.budget = &budget{}
		s.budget.install(s.byURL)
	}
	return s, nil
}

func invalidSchema(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidTool, "the schema is not valid: "+format, args...)
}

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

// compileMessage says why a schema doesn't compile without the compiler's own URLs.
func compileMessage(err error) string {
	var meta *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if errors.As(err, &meta) && errors.As(meta.Err, &invalid) {
		leaf := invalid
		for len(leaf.Causes) > 0 { // one of them is enough to go on
			leaf = leaf.Causes[len(leaf.Causes)-1]
		}
		return "at " + quoted(pointer(leaf.InstanceLocation)) + ": " + (&Schema{}).message(leaf)
	}
	return strings.ReplaceAll(strings.ReplaceAll(err.Error(), schemaURL, ""), schemaHost, "")
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

// walk visits every subschema once, and reports whether one refers to another by name. Only then can the same subschema
// be reached on several ways at once, and checking take longer than the product of schema and value.
func (s *Schema) walk(root *jsonschema.Schema) (refs bool) {
	todo := []*jsonschema.Schema{root}
	for len(todo) > 0 {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if x == nil || s.byURL[x.Location] != nil {
			continue
		}
		s.byURL[x.Location] = x
		if x.Ref != nil || x.RecursiveRef != nil || x.DynamicRef != nil {
			refs = true
			todo = append(todo, x.Ref, x.RecursiveRef)
			if x.DynamicRef != nil {
				todo = append(todo, x.DynamicRef.Ref)
			}
		}
		todo = children(x, todo)
	}
	return refs
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

// budget bounds the work of one check. A schema of a few lines can ask for 2^64 evaluations, as in a chain of
// definitions that each refer twice to the next. The validator offers no way to stop it, but asks every subschema's
// format first, and goes no deeper where that fails.
type budget struct {
	mu   sync.Mutex // held during a check: the formats know no other
	left int
}

var errBudget = errors.New("too many steps")

func (b *budget) install(all map[string]*jsonschema.Schema) {
	for _, s := range all {
		if s.Bool != nil {
			continue
		}
		own := s.Format
		f := &jsonschema.Format{Name: "budget", Validate: func(v any) error { return b.spend(v) }}
		if own != nil {
			f.Name = own.Name
			f.Validate = func(v any) error {
				if err := b.spend(v); err != nil {
					return err
				}
				return own.Validate(v)
			}
		}
		s.Format = f
	}
}

func (b *budget) spend(v any) error {
	cost := 1
	switch v := v.(type) {
	case map[string]any:
		cost += len(v)
	case []any:
		cost += len(v)
	}
	if b.left -= cost; b.left < 0 {
		return errBudget
	}
	return nil
}

// start begins a check of a value of so many bytes: enough for many evaluations of each of its parts, and about a
// second of work for the largest plan.
func (b *budget) start(size int) {
	b.mu.Lock()
	b.left = 100_000 + 8*size
}

// end ends the check and reports whether the budget was enough.
func (b *budget) end() bool {
	enough := b.left >= 0
	b.mu.Unlock()
	return enough
}

// AcceptsAnyObject reports whether the schema accepts every object for sure, so that there is nothing to check.
func (s *Schema) AcceptsAnyObject() bool { return s == nil || s.open }
