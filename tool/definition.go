package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
)

// Limits of definitions.
const (
	// MaxDefinition is the largest definition, in bytes: it has to fit into one message.
	MaxDefinition = 512 << 10
	// MaxDefinitions is the most definitions that ParseDefinitions reads at a time.
	MaxDefinitions = 10_000

	maxTenants = 1000
)

// Definition is a tool as its author describes it: the MCP form plus the orchestration contract. It marshals to the MCP
// form, whatever form it was read from.
type Definition struct {
	// Name is 1 to 128 of [A-Za-z0-9_.:/-].
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema is the JSON Schema of the arguments; empty accepts any object.
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// OutputSchema is the JSON Schema of the result; empty accepts anything.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *Annotations    `json:"annotations,omitempty"`
	// Orchestration is the contract as written, without defaults; nil where there is none.
	Orchestration *Orchestration `json:"x-orchestration,omitempty"`
	// Tenants are those who may use the tool; empty means all.
	Tenants []string `json:"tenants,omitempty"`
	// Extra are members that Stepjet doesn't know (_meta, icons, …); they are kept as they came.
	Extra map[string]json.RawMessage `json:"-"`
}

// Annotations are the hints of MCP. A nil hint was not given.
type Annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// ParseDefinition reads one definition and checks all of it: name, schemas and contract. It takes
//
//   - MCP: {"name","title","description","inputSchema","outputSchema","annotations","x-orchestration"}
//   - Anthropic: the same with "input_schema"
//   - OpenAI: {"type":"function","function":{"name","description","parameters"}}, and the flat form without "function"
//
// x-orchestration may stand in the definition, in "function" or in the input schema (seed 003), but not differ between
// them. Errors are *fault.Error of code invalid_tool.
func ParseDefinition(raw []byte) (*Definition, error) {
	d := &Definition{}
	if err := d.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return d, nil
}

// SplitDefinitions takes a document of definitions apart without reading them: a JSON array, an object that has the array
// under "tools" (the answer to MCP's tools/list), or one definition alone. Errors are *fault.Error of code invalid_tool.
func SplitDefinitions(raw []byte) ([]json.RawMessage, error) {
	var one struct {
		Name     string          `json:"name"`
		Function json.RawMessage `json:"function"`
		Tools    json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(raw, &one) == nil && one.Tools == nil && (one.Name != "" || one.Function != nil) {
		return []json.RawMessage{raw}, nil
	}
	return splitDefinitions(raw)
}

func splitDefinitions(raw []byte) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		var in struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(raw, &in) != nil || in.Tools == nil {
			return nil, fault.New(fault.InvalidTool, `the tools are neither a JSON array nor an object with "tools"`)
		}
		list = in.Tools
	}
	if len(list) > MaxDefinitions {
		return nil, fault.New(fault.InvalidTool, "%d tools; at most %d at a time", len(list), MaxDefinitions)
	}
	return list, nil
}

// ParseDefinitions reads a JSON array of definitions, or an object that has the array under "tools" (the answer to MCP's
// tools/list). A name used twice is an error. Errors are *fault.Error of code invalid_tool.
func ParseDefinitions(raw []byte) ([]*Definition, error) {
	list, err := splitDefinitions(raw)
	if err != nil {
		return nil, err
	}
	all := make([]*Definition, 0, len(list))
	names := make(map[string]int, len(list))
	for i, r := range list {
		d, err := ParseDefinition(r)
		if err != nil {
			e := fault.As(err)
			return nil, &fault.Error{Code: e.Code, Message: "tool number " + itoa(i+1) + ": " + e.Message, Hint: e.Hint, Cause: err}
		}
		if first, twice := names[d.Name]; twice {
			return nil, fault.New(fault.InvalidTool, "tools number %d and %d are both named %q", first+1, i+1, d.Name)
		}
		names[d.Name] = i
		all = append(all, d)
	}
	return all, nil
}

// Validate checks a definition that was put together in Go as ParseDefinition does. Errors are *fault.Error of code
// invalid_tool.
func (d *Definition) Validate() error {
	if !ValidName(d.Name) {
		return fault.New(fault.InvalidTool, "%q is no tool name", clip(d.Name)).
			WithHint("a name is 1 to %d of A-Z a-z 0-9 _ . : / -", MaxName)
	}
	if len(d.Tenants) > maxTenants {
		return fault.New(fault.InvalidTool, "tool %q: more than %d tenants", d.Name, maxTenants)
	}
	for _, t := range d.Tenants {
		if !validTenant(t) {
			return fault.New(fault.InvalidTool, "tool %q: %q is no tenant", d.Name, clip(t)).
				WithHint("a tenant is 1 to 64 of A-Z a-z 0-9 _ -")
		}
	}
	input, err := d.Input()
	if err != nil {
		return d.invalid("inputSchema", err)
	}
	if !input.takesObjects() {
		return fault.New(fault.InvalidTool, `tool %q: inputSchema: arguments are always an object, so "type" has to be "object"`, d.Name)
	}
	if len(d.OutputSchema) > 0 {
		if _, err := CompileSchema(d.OutputSchema); err != nil {
			return d.invalid("outputSchema", err)
		}
	}
	_, err = d.Contract()
	return err
}

func (d *Definition) invalid(part string, err error) error {
	e := fault.As(err)
	return &fault.Error{Code: fault.InvalidTool, Message: "tool " + quoted(d.Name) + ": " + part + ": " + e.Message, Hint: e.Hint, Cause: err}
}

// AllowedFor reports whether a tenant may use the tool.
func (d *Definition) AllowedFor(tenant string) bool {
	return len(d.Tenants) == 0 || contains(d.Tenants, tenant)
}

// MarshalJSON writes the MCP form, with the members of Extra among its own.
func (d Definition) MarshalJSON() ([]byte, error) {
	type plain Definition // without this method
	return withExtra(plain(d), d.Extra)
}

// Digest gives the SHA-256, in lower-case hex, of the definition's canonical JSON: the MCP form, compact, the keys of
// every object sorted, numbers as written. Definitions of equal digest mean the same.
func (d *Definition) Digest() string {
	b, err := json.Marshal(d)
	if err == nil {
		b, err = canonical(b)
	}
	if err != nil { // only a definition with schemas that are no JSON, which Validate refuses
		b = []byte(d.Name)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonical sorts the keys of all objects and removes white space.
func canonical(raw []byte) ([]byte, error) {
	v, err := decodeExact(raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v) // sorts keys; json.Number keeps its digits
}
