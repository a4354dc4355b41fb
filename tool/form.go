package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/fault"
)

// definitionFields are the names of the MCP form. Two of them have an alias in other forms.
var (
	definitionFields = []string{
		"name", "title", "description", "inputSchema", "outputSchema", "annotations", "x-orchestration", "plan",
		"agent", "tenants",
	}
	inputAliases  = []string{"input_schema", "parameters"}
	outputAliases = []string{"output_schema"}
	formFields    = slices.Concat(definitionFields, inputAliases, outputAliases)
	annotations   = []string{"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
)

// UnmarshalJSON reads a definition in any of the forms of ParseDefinition, without checking its name, schemas and
// contract as a whole: Validate does. Errors are *fault.Error of code invalid_tool.
func (d *Definition) UnmarshalJSON(raw []byte) error {
	if len(raw) > MaxDefinition {
		return fault.New(fault.InvalidTool, "the definition has %d bytes, at most %d are allowed", len(raw), MaxDefinition)
	}
	if _, err := decodeExact(raw); err != nil { // syntax, depth, keys used twice
		return fault.New(fault.InvalidTool, "the definition is not valid: %s", err.Error())
	}
	f, err := definitionObject(raw)
	if err != nil {
		return fault.New(fault.InvalidTool, "the definition is not valid: %s", err.Error())
	}
	*d = Definition{Name: f.str("name"), Title: f.text("title"), Description: f.text("description")}
	d.InputSchema = f.alias("inputSchema", inputAliases)
	d.OutputSchema = f.alias("outputSchema", outputAliases)
	f.decode("annotations", &d.Annotations, "an object of hints that are true or false")
	f.decode("tenants", &d.Tenants, "an array of strings")
	d.Orchestration = f.orchestration(d.InputSchema)
	d.Plan = f.composed("plan", "must be an object with steps, as in a plan")
	d.Agent = f.composed("agent", "must be an object with a planner")
	maps.DeleteFunc(f.raw, func(name string, _ json.RawMessage) bool {
		return contains(definitionFields, name) || contains(inputAliases, name) || contains(outputAliases, name) ||
			name == "type"
	})
	if len(f.raw) > 0 {
		d.Extra = f.raw
	}
	if err := f.err(); err != nil {
		return together(d.Name, fieldFaults(d.Name, "", err))
	}
	return nil
}

// definitionObject returns the members of the object that describes the tool: that of "function", where there is one,
// with what stands beside it and isn't inside too.
func definitionObject(raw []byte) (*fields, error) {
	f, err := readFields(raw, append(slices.Clone(formFields), "function")...)
	if err != nil {
		return nil, err
	}
	inner, ok := f.raw["function"]
	if !ok {
		return f, nil
	}
	g, err := readFields(inner, formFields...)
	if err != nil {
		return nil, within("function", err)
	}
	g.errs = append(g.errs, f.errs...)
	for _, name := range definitionFields {
		outer, ok := f.raw[name]
		if !ok {
			continue
		}
		if own, twice := g.raw[name]; twice && !sameJSON(outer, own) {
			g.fail(name, `stands beside "function" and in it, and they differ`)
		}
		g.raw[name] = outer
	}
	return g, nil
}

// text reads a string that may be empty.
func (f *fields) text(name string) (s string) {
	f.decode(name, &s, "a string")
	return s
}

// alias returns a member under its name or one of its aliases; two that differ are an error.
func (f *fields) alias(name string, others []string) json.RawMessage {
	value := f.raw[name]
	for _, o := range others {
		v, ok := f.raw[o]
		if !ok {
			continue
		}
		if value != nil && !sameJSON(value, v) {
			f.fail(o, "is given beside %s, and they differ", name)
		}
		value = v
	}
	if value == nil {
		return nil
	}
	return bytes.Clone(value)
}

// orchestration returns the contract, which may stand in the definition or in its input schema (seed 003).
func (f *fields) orchestration(schema json.RawMessage) (o *Orchestration) {
	const name = "x-orchestration"
	var in map[string]json.RawMessage
	if json.Unmarshal(schema, &in) == nil && in[name] != nil && string(in[name]) != "null" {
		if own, twice := f.raw[name]; twice && !sameJSON(own, in[name]) {
			f.fail(name, "stands in the definition and in its input schema, and they differ")
		}
		f.raw[name] = in[name]
	}
	f.decode(name, &o, "an object")
	return o
}

func sameJSON(a, b []byte) bool {
	ca, err := canonical(a)
	if err != nil {
		return false
	}
	cb, err := canonical(b)
	return err == nil && bytes.Equal(ca, cb)
}

// UnmarshalJSON reads the hints. A near miss of a hint's name is an error; others that are unknown are left alone.
func (a *Annotations) UnmarshalJSON(raw []byte) error {
	f, err := readFields(raw, annotations...)
	if err != nil {
		return err
	}
	*a = Annotations{Title: f.text("title")}
	for name, target := range map[string]**bool{
		"readOnlyHint": &a.ReadOnlyHint, "destructiveHint": &a.DestructiveHint,
		"idempotentHint": &a.IdempotentHint, "openWorldHint": &a.OpenWorldHint,
	} {
		f.decode(name, target, "true or false")
	}
	return f.err()
}

// composed reads the plan of a template, or an agent; nil where there is none. It is kept in the form in which JSON is
// written here, so that whoever reads the definition again, from wherever, has the same bytes.
func (f *fields) composed(name, otherwise string) json.RawMessage {
	raw, ok := f.raw[name]
	if !ok {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		f.fail(name, "%s", otherwise)
		return nil
	}
	kept, _ := json.Marshal(raw) // it was read as JSON
	return kept
}
