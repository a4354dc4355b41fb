package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
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
	// Plan is the plan that the tool is: its steps run where it is called. Nil for a tool that workers host.
	Plan json.RawMessage `json:"plan,omitempty"`
	// Agent is the loop that the tool is: a planner is asked again and again which steps are to run. Nil for one that is
	// no agent. What may stand in it says package agent.
	Agent json.RawMessage `json:"agent,omitempty"`
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
//   - MCP: {"name","title","description","inputSchema","outputSchema","annotations","x-orchestration"}, and "plan" or "agent"
//   - Anthropic: the same with "input_schema"
//   - OpenAI: {"type":"function","function":{"name","description","parameters"}}, and the flat form without "function"
//
// x-orchestration may stand in the definition, in "function" or in the input schema (seed 003), but not differ between
// them. Errors are *fault.Error of code invalid_tool; they name all that is wrong, and Flaws is their cause. An output
// schema that can't be used is no error, see Warnings.
func ParseDefinition(raw []byte) (*Definition, error) {
	d := &Definition{}
	if err := d.UnmarshalJSON(raw); err != nil {
		if d.Name == "" && d.InputSchema == nil { // nothing of it could be read
			return nil, err
		}
		return nil, together(d.Name, append(partsOf(err), d.flawedSchemas()...))
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return d, nil
}

// SplitDefinitions takes a document of definitions apart without reading them: a JSON array, an object that has the
// array under "tools" (the answer to MCP's tools/list), or one definition alone. Errors are *fault.Error of code
// invalid_tool.
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

// PlaceOf returns the place, as a JSON pointer, of one of the definitions that SplitDefinitions takes a document apart
// into; "" of one alone.
func PlaceOf(raw []byte, parts []json.RawMessage, i int) string {
	if len(parts) == 1 && len(parts[0]) == len(raw) {
		return ""
	}
	return placeOfList(raw) + itoa(i)
}

// placeOfList returns what the place of a definition begins with in a document of several.
func placeOfList(raw []byte) string {
	if bytes.TrimLeft(raw, " \t\r\n")[0] == '{' {
		return "/tools/"
	}
	return "/"
}

// marked reports whether a text begins with a mark of UTF-8 or UTF-16, which editors and shells of Windows write.
func marked(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff"))
}

func splitDefinitions(raw []byte) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		var in struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if broken := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(raw, new(any)), &broken) {
			before := raw[:min(int(broken.Offset), len(raw))]
			if marked(raw) {
				return nil, fault.New(fault.InvalidTool, "no JSON: the text begins with a byte order mark").
					WithHint("save it as UTF-8 without that mark")
			}
			return nil, fault.New(fault.InvalidTool, "no JSON, in line %d: %s", 1+bytes.Count(before, []byte("\n")), broken)
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

// ParseDefinitions reads a JSON array of definitions, or an object that has the array under "tools" (the answer to
// MCP's tools/list). A name used twice is an error. Errors are *fault.Error of code invalid_tool, which name all that
// is wrong with all of the definitions, one definition a line; Flaws is their cause, with places such as
// /tools/1/inputSchema.
func ParseDefinitions(raw []byte) ([]*Definition, error) {
	list, err := splitDefinitions(raw)
	if err != nil {
		return nil, err
	}
	all := make([]*Definition, 0, len(list))
	names := make(map[string]int, len(list))
	var wrong []string
	var flaws Flaws
	base := placeOfList(raw)
	for i, r := range list {
		d, err := ParseDefinition(r)
		if err != nil {
			wrong = append(wrong, "tool number "+itoa(i+1)+": "+fault.As(err).Message)
			flaws = append(flaws, FlawsOf(err).under(base+itoa(i))...)
			continue
		}
		if first, twice := names[d.Name]; twice {
			wrong = append(wrong, fmt.Sprintf("tools number %d and %d are both named %q", first+1, i+1, d.Name))
			flaws = append(flaws, fault.Problem{Code: fault.InvalidTool, Path: base + itoa(i) + "/name",
				Message: wrong[len(wrong)-1]})
			continue
		}
		names[d.Name] = i
		all = append(all, d)
	}
	if len(flaws) > 0 {
		return nil, flaws.fault(strings.Join(wrong, "\n"))
	}
	return all, nil
}

// Validate checks a definition that was put together in Go as ParseDefinition does. Errors are *fault.Error of code
// invalid_tool; they name all that is wrong, and Flaws is their cause.
func (d *Definition) Validate() error {
	var wrong []*fault.Error
	if !subjects.ValidTool(d.Name) {
		hint := "a name is 1 to " + itoa(subjects.MaxToolName) + " of A-Z a-z 0-9 _ . : / -"
		l := Flaws{{Code: fault.InvalidTool, Path: "/name", Message: quoted(clip(d.Name)) + " is no tool name", Hint: hint}}
		wrong = append(wrong, l.fault(l[0].Message))
	}
	if len(d.Tenants) > maxTenants {
		wrong = append(wrong, ofTool(d.Name, "/tenants", fmt.Sprintf("more than %d tenants", maxTenants), ""))
	}
	for i, t := range d.Tenants {
		if !subjects.ValidTenant(t) {
			wrong = append(wrong, ofTool(d.Name, "/tenants/"+itoa(i), quoted(clip(t))+" is no tenant",
				"a tenant is 1 to 64 of A-Z a-z 0-9 _ -"))
			break
		}
	}
	wrong = append(wrong, d.flawedSchemas()...)
	wrong = append(wrong, d.flawedApproval()...)
	if _, err := d.Contract(); err != nil {
		wrong = append(wrong, partsOf(err)...)
	}
	return together(d.Name, wrong)
}

// partsOf returns an error as one part of a definition's.
func partsOf(err error) []*fault.Error { return []*fault.Error{fault.As(err)} }

// flawedSchemas says what is wrong with the schema of the arguments, without which there is no tool.
func (d *Definition) flawedSchemas() []*fault.Error {
	input, err := d.Input()
	if err != nil {
		return partsOf(d.invalid("inputSchema", err))
	}
	if !input.takesObjects() {
		return []*fault.Error{ofTool(d.Name, "/inputSchema", `arguments are always an object, so "type" has to be "object"`,
			`write "type": "object", and what the tool takes under "properties"`)}
	}
	return nil
}

// flawedApproval says that a condition of approvals asks for what calls never have.
func (d *Definition) flawedApproval() []*fault.Error {
	input, err := d.Input()
	if err != nil || d.Orchestration == nil {
		return nil
	}
	return fieldFaults(d.Name, "/x-orchestration", d.Orchestration.Approval.flaw(input))
}

// PlanTool is the name of the tool by which models hand in whole plans. No step of a plan can call a tool of that name.
const PlanTool = "execute_tool_plan"

// Warnings says what of a valid definition is of no use: an output schema that is none (OutputFlaws), a batch whose
// array can't be the one that the input schema has, and all of a tool that has the name of PlanTool or AskTool.
func (d *Definition) Warnings() []fault.Problem {
	warnings := append(d.OutputFlaws(), d.strayBatch()...)
	if d.Name == AskTool {
		warnings = append(warnings, fault.Problem{
			Code: fault.InvalidTool, Path: "/name", Message: "no plan can call it: " + AskTool +
				" is built in, and asks a person", Hint: "give the tool another name",
		})
	}
	if d.Name == PlanTool {
		warnings = append(warnings, fault.Problem{
			Code: fault.InvalidTool, Path: "/name", Message: "no plan can call it: " + PlanTool +
				" is the tool by which models hand in plans", Hint: "give the tool another name",
		})
	}
	return warnings
}

// OutputFlaws says why the output schema is none. A tool with such a one is called as one without is: plans and results
// are not checked against it.
func (d *Definition) OutputFlaws() []fault.Problem {
	if len(d.OutputSchema) == 0 {
		return nil
	}
	_, err := CompileSchema(d.OutputSchema)
	return FlawsOf(err).under("/outputSchema")
}

func (d *Definition) invalid(part string, err error) error {
	prefix := "tool " + quoted(clip(d.Name)) + ": " + part + ": "
	return FlawsOf(err).under("/" + part).fault(prefix + fault.As(err).Message)
}

// Hosted reports whether the tool is one that workers host: it is neither a plan nor an agent.
func (d *Definition) Hosted() bool { return d.Plan == nil && d.Agent == nil }

// kind is what a tool is that no worker hosts.
func (d *Definition) kind() string {
	if d.Agent != nil {
		return "an agent"
	}
	return "a plan"
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

// Digest returns the SHA-256, in lower-case hex, of the definition's canonical JSON: the MCP form, compact, the keys of
// every object sorted, numbers as written; behind it the plan of a template, or an agent, as it stands, since what comes
// out of these has the order of their keys. Definitions of equal digest mean the same.
func (d *Definition) Digest() string {
	b, err := json.Marshal(d)
	if err == nil {
		b, err = canonical(b)
	}
	if err != nil { // only a definition with schemas that are no JSON, which Validate refuses
		b = []byte(d.Name)
	}
	sum := sha256.Sum256(append(append(b, d.Plan...), d.Agent...))
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
