// Package catalog tells models about tools: it writes the registered tools in the forms that model APIs take (OpenAI,
// Anthropic, MCP), and the one tool by which a model hands in a whole plan, execute_tool_plan, with a schema of plans
// and a guide to writing good ones.
//
// What it writes is the definition as it counts, contract included: hand it tool.Registered.Effective. It is pure: no
// I/O, no clock, and the same tools always come to the same bytes.
package catalog

import (
	"cmp"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Form is the way in which an API of models takes tools.
type Form string

// The forms.
const (
	// OpenAI is that of chat completions: {"type":"function","function":{"name","description","parameters"}}.
	OpenAI Form = "openai"
	// OpenAIResponses is that of the responses API: {"type":"function","name","description","parameters"}.
	OpenAIResponses Form = "openai-responses"
	// Anthropic is {"name","description","input_schema"}.
	Anthropic Form = "anthropic"
	// MCP is {"name","description","inputSchema","outputSchema","annotations","x-orchestration"}.
	MCP Form = "mcp"
)

// Forms returns the forms in the order in which they are told to people.
func Forms() []Form { return []Form{OpenAI, OpenAIResponses, Anthropic, MCP} }

// Options say how tools are written. The zero value is the plain way.
type Options struct {
	// Strict asks the API to hold the model to the schema (OpenAI's and Anthropic's "strict"). Such schemas know no
	// optional properties: those become nullable, and null stands for absent. A tool whose schema can't be written so
	// is written plainly. MCP knows no such thing.
	Strict bool
	// Planner leaves out what a plan of an agent's planner can't have: agents of its own.
	Planner bool
}

// maxDescription is the longest description of a function that OpenAI takes, in characters. Those of parameters have no
// such limit.
const maxDescription = 1024

// Export writes tools in a form: a JSON array, sorted by name, indented. Errors are *fault.Error: InvalidValue for an
// unknown form, InvalidTool for a schema that is no JSON or two tools that would bear one name.
func Export(f Form, tools []*tool.Definition, o Options) ([]byte, error) {
	if !slices.Contains(Forms(), f) {
		return nil, unknownForm(f)
	}
	list := make([]any, 0, len(tools))
	taken := map[string]string{}
	for _, d := range sorted(tools) {
		name := Name(f, d.Name)
		if other, twice := taken[name]; twice {
			return nil, fault.New(fault.InvalidTool, "%q and %q would both be named %q", other, d.Name, name).WithHint("rename one of them")
		}
		taken[name] = d.Name
		t, err := toolOf(f, d, o)
		if err != nil {
			return nil, err
		}
		list = append(list, t.write(f))
	}
	return indent(list)
}

// Meta writes execute_tool_plan, the tool by which a model hands in a plan over the given tools: a JSON object,
// indented. Plans use the tools' real names, whatever Export calls them. Errors are those of Export.
func Meta(f Form, tools []*tool.Definition, o Options) ([]byte, error) {
	if !slices.Contains(Forms(), f) {
		return nil, unknownForm(f)
	}
	tools = sorted(tools)
	t := exported{name: plan.RecursiveTool, strict: o.Strict && f != MCP}
	guide := Guide(tools)
	if t.strict {
		guide = strictNote + guide
	}
	t.description = purpose + "\n\n" + guide
	steps := "The steps, in any order."
	if f == OpenAI || f == OpenAIResponses { // where a description is short, the guide stands beside the steps
		t.description, steps = purpose, guide
	}
	t.schema = modelSchema(tools, steps, t.strict)
	return indent(t.write(f))
}

func unknownForm(f Form) error {
	return fault.New(fault.InvalidValue, "%q is no form of tools", string(f)).WithHint("the forms are openai, openai-responses, anthropic and mcp")
}

// sorted returns the tools by name, without one that would be a plan in a plan.
func sorted(tools []*tool.Definition) []*tool.Definition {
	tools = slices.DeleteFunc(slices.Clone(tools), func(d *tool.Definition) bool { return d.Name == plan.RecursiveTool })
	slices.SortStableFunc(tools, func(a, b *tool.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// callable returns the tools that a plan can call where it has these, sorted: they, and the one that asks a person.
// Where there are none, nothing is known of the others either.
func callable(tools []*tool.Definition) []*tool.Definition {
	if tools = sorted(tools); len(tools) == 0 {
		return nil
	}
	return sorted(append(tools, tool.AskDefinition()))
}
