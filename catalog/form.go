package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// exported is a tool on its way into a form.
type exported struct {
	name, description string
	schema            object
	strict            bool
	def               *tool.Definition // nil for execute_tool_plan
}

// toolOf makes a tool ready for a form.
func toolOf(f Form, d *tool.Definition, o Options) (exported, error) {
	t := exported{name: Name(f, d.Name), description: d.Description, def: d}
	schema, err := parameters(d)
	if err != nil {
		return t, err
	}
	if f == MCP {
		t.schema = schema
		return t, nil
	}
	t.description = described(d, t.name)
	if f != Anthropic {
		t.description = clip(t.description, maxDescription)
	}
	if o.Strict {
		if s, ok := strictly(schema); ok {
			t.schema, t.strict = s, true
			return t, nil
		}
	}
	if d.Orchestration != nil {
		schema = schema.with("x-orchestration", d.Orchestration)
	}
	t.schema = schema
	return t, nil
}

// parameters returns the input schema as an object that says so, without a contract in it.
func parameters(d *tool.Definition) (object, error) {
	if len(d.InputSchema) == 0 || string(d.InputSchema) == "true" {
		return object{{"type", "object"}, {"properties", object{}}}, nil
	}
	v, err := parse(d.InputSchema)
	if err != nil {
		return nil, fault.New(fault.InvalidTool, "tool %q: the input schema is no JSON: %v", d.Name, err)
	}
	schema, ok := v.(object)
	if !ok {
		return nil, fault.New(fault.InvalidTool, "tool %q: the input schema is no object", d.Name)
	}
	schema = schema.without("x-orchestration")
	if schema.get("type") == nil {
		schema = append(object{{"type", "object"}}, schema...)
	}
	if schema.get("properties") == nil {
		schema = append(schema, member{"properties", object{}})
	}
	return schema, nil
}

// write returns the tool in a form.
func (t exported) write(f Form) object {
	o := object{{"name", t.name}}
	if t.description != "" {
		o = append(o, member{"description", t.description})
	}
	strict := object{}
	if t.strict {
		strict = object{{"strict", true}}
	}
	switch f {
	case OpenAI:
		o = append(append(o, member{"parameters", t.schema}), strict...)
		return object{{"type", "function"}, {"function", o}}
	case OpenAIResponses:
		if !t.strict { // here strict is what an absent one means
			strict = object{{"strict", false}}
		}
		return append(object{{"type", "function"}}, append(append(o, member{"parameters", t.schema}), strict...)...)
	case Anthropic:
		return append(append(o, member{"input_schema", t.schema}), strict...)
	default: // MCP, which has no wrapping of its own
	}
	return t.mcp(o)
}

// mcp adds what only MCP has room for.
func (t exported) mcp(o object) object {
	if t.def == nil {
		return append(o, member{"inputSchema", t.schema})
	}
	if t.def.Title != "" {
		o = append(object{o[0], {"title", t.def.Title}}, o[1:]...)
	}
	o = append(o, member{"inputSchema", t.schema})
	if len(t.def.OutputSchema) > 0 && len(t.def.OutputFlaws()) == 0 { // a client refuses the tool for one that is none
		o = append(o, member{"outputSchema", t.def.OutputSchema})
	}
	if t.def.Annotations != nil {
		o = append(o, member{"annotations", t.def.Annotations})
	}
	if t.def.Orchestration != nil {
		o = append(o, member{"x-orchestration", t.def.Orchestration})
	}
	return o
}

// maxName is the longest name that OpenAI and Anthropic take.
const maxName = 64

// Name returns the name that a tool has in a form. OpenAI and Anthropic take 1 to 64 of [A-Za-z0-9_-]; a name that
// isn't such has its other characters replaced by "_" and ends in eight hex digits of its SHA-256, so that it stays the
// same whatever other tools there are, and differs from theirs. MCP takes names as they are. Plans always use the real
// name.
func Name(f Form, name string) string {
	if f == MCP || plainName(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	b := []byte(name)
	for i, c := range b {
		if !subjects.IsPlain(c) {
			b[i] = '_'
		}
	}
	return string(b[:min(len(b), maxName-9)]) + "_" + hex.EncodeToString(sum[:4])
}

func plainName(name string) bool {
	for i := range len(name) {
		if !subjects.IsPlain(name[i]) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxName
}

// described returns the description of a tool with its contract in words, for forms that have no field for it, and its
// real name where it bears another.
func described(d *tool.Definition, name string) string {
	text, after := d.Description, ""
	if h := hints(d); h != "" {
		after = "Contract: " + h + "."
	}
	if name != d.Name {
		after = join(after, "Its name in plans: "+d.Name, " ")
	}
	if after == "" {
		return text
	}
	return clip(text, maxDescription-utf8.RuneCountInString(after)-2) + sep(text, "\n\n") + after
}

func join(a, b, between string) string {
	if a == "" {
		return b
	}
	return a + between + b
}

func sep(text, s string) string {
	if text == "" {
		return ""
	}
	return s
}

// clip shortens a text to a number of characters.
func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:max(most-1, 0)]) + "…"
}

// indent writes a value as people read it, without escaping < > &.
func indent(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fault.Wrap(fault.InvalidTool, err, "writing tools")
	}
	return b.Bytes(), nil
}
