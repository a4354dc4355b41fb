package agentcheck

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Inline reads the agent that a step of a plan defines itself: what a definition has under "agent", and beside that what it
// has of a tool but for the name. read holds the definition against the tools that there are. The definition is nil if and
// only if the report has problems, whose places are those within the field.
func Inline(step string, raw json.RawMessage, read func(*tool.Definition) plan.Report) (*tool.Definition, plan.Report) {
	body, nested := definitionOf(step, raw)
	var r plan.Report
	d, err := tool.ParseDefinition(body)
	whole := d
	if flaws := tool.FlawsOf(err); len(flaws) > 0 { // what else is wrong is told all the same
		r.Problems, whole = flaws, &tool.Definition{Name: step, Agent: agentOf(body)}
	} else if err != nil {
		f := fault.As(err)
		r.Problems = []fault.Problem{{Code: f.Code, Message: f.Message, Hint: f.Hint}}
	}
	if whole != nil {
		found := read(whole)
		problems, warnings := Texts(whole)
		r.Problems, r.Warnings = slices.Concat(r.Problems, found.Problems, problems), slices.Concat(found.Warnings, warnings)
	}
	if nested {
		r.Problems = []fault.Problem{{Code: fault.UnknownField, Path: "/agent/agent", Message: `"agent" is not a field of an agent`,
			Hint: `take what stands in it one level up: "agent": {"planner": …, "tools": […]}`}}
	}
	for _, list := range [...][]fault.Problem{r.Problems, r.Warnings} {
		for i := range list {
			list[i].Path = inlinePlace(list[i].Path)
		}
	}
	if len(r.Problems) > 0 {
		return nil, r
	}
	return d, r
}

// ofTool are the members of a definition that stand beside those of the agent in a plan.
var ofTool = map[string]bool{"description": true, "inputSchema": true, "input_schema": true, "outputSchema": true, "output_schema": true}

// definitionOf returns the definition that an agent of a plan would have in the registry. nested says that it was written as
// such.
func definitionOf(step string, raw json.RawMessage) (body []byte, nested bool) {
	name, _ := json.Marshal(step) // of a text
	outer, inner := append([]byte(`{"name":`), name...), []byte("{")
	jsontape.Members(raw, func(key, value []byte) bool {
		word := jsontape.Unquoted(key)
		nested = nested || word == "agent"
		if ofTool[word] {
			if string(value) == "null" {
				return true
			}
			outer = append(append(append(append(outer, ','), key...), ':'), value...)
			return true
		}
		if len(inner) > 1 {
			inner = append(inner, ',')
		}
		inner = append(append(append(inner, key...), ':'), value...)
		return true
	})
	outer = append(append(append(outer, `,"agent":`...), inner...), "}}"...)
	return outer, nested
}

// agentOf returns the agent of a definition.
func agentOf(body []byte) json.RawMessage {
	var d struct {
		Agent json.RawMessage `json:"agent"`
	}
	_ = json.Unmarshal(body, &d) // it was put together
	return d.Agent
}

// inlinePlace returns where in a plan's agent stands what has such a place in its definition.
func inlinePlace(path string) string {
	if rest, is := strings.CutPrefix(path, "/agent"); is && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// Tools are those that are there, for who knows of no groups.
type Tools interface {
	// Definition returns a tool, and whether there is one of that name.
	Definition(name string) (*tool.Definition, bool)
	// Names returns the names of all of them, sorted.
	Names() []string
}

// Against holds definitions of agents against tools. What an agent takes out of groups it may take out of any: then nothing
// is said of its tools.
func Against(tools Tools) func(*tool.Definition) plan.Report {
	return func(d *tool.Definition) plan.Report {
		body, err := json.Marshal(d)
		if err != nil {
			return plan.Report{Problems: []fault.Problem{{Code: fault.InvalidTool, Message: err.Error()}}}
		}
		c := &groupless{Tools: tools}
		a, r := agent.Parse(body, c)
		if c.asked {
			a, r = agent.Parse(body, nil)
		}
		if a != nil {
			r.Problems = append(r.Problems, Sinks(a)...)
		}
		return r
	}
}

// groupless is agent.Catalog over such tools.
type groupless struct {
	Tools
	asked bool // for a group
}

// Lookup returns a tool.
func (c *groupless) Lookup(name string) (*tool.Definition, bool) { return c.Definition(name) }

// Group returns nothing, and notes that it was asked.
func (c *groupless) Group(string) (tools []string, ok bool) {
	c.asked = true
	return nil, false
}

// Groups returns nothing, likewise.
func (c *groupless) Groups() []string { return nil }

// Searchable returns all tools, of whatever group.
func (c *groupless) Searchable(string) []string { return c.Names() }
