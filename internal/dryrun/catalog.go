package dryrun

import (
	"slices"

	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// catalog is plan.Catalog over a list of tools. It compiles schemas when they are asked for: a registry may have
// thousands of tools, and a plan a few.
type catalog struct {
	tools map[string]Tool
	names []string
	known map[string]*known
	err   error // a tool that was asked for can't be used

	permits *group.Permits // what the run may call; nil for everything
}

// known is a tool that a plan names.
type known struct {
	Tool
	name          string
	input, output *tool.Schema
	result        []byte // the made-up one of each call; nil before the first
	from          outcome.Origin

	calls, atOnce int           // all, and in one round
	refused       *plan.Refused // why the run may not call it
}

func newCatalog(tools []Tool) *catalog {
	c := &catalog{tools: make(map[string]Tool, len(tools)), known: map[string]*known{}}
	for _, t := range tools {
		if _, twice := c.tools[t.Definition.Name]; !twice {
			c.names = append(c.names, t.Definition.Name)
		}
		c.tools[t.Definition.Name] = t
	}
	slices.Sort(c.names)
	return c
}

// Names returns the names of all tools, sorted.
func (c *catalog) Names() []string { return c.names }

// Lookup returns a tool.
func (c *catalog) Lookup(name string) (plan.Tool, bool) {
	if k := c.known[name]; k != nil {
		return k.plan(), true
	}
	t, ok := c.tools[name]
	if !ok {
		return plan.Tool{}, false
	}
	input, err := t.Definition.Input()
	if err != nil {
		c.err = err
	}
	output, _ := t.Definition.Output() // one that can't be used is none
	k := &known{Tool: t, name: name, input: input, output: output, refused: c.refused(&t)}
	c.known[name] = k
	return k.plan(), true
}

// Definition returns that of a tool.
func (c *catalog) Definition(name string) (*tool.Definition, bool) {
	t, ok := c.tools[name]
	return t.Definition, ok
}

// InlineAgent reads an agent that the plan defines itself. It is a tool of the plan, as one of the registry is: what its
// rounds would do nobody knows.
func (c *catalog) InlineAgent(name, step string, definition []byte) (plan.Tool, plan.Report) {
	d, r := agentcheck.Inline(step, definition, agentcheck.Against(c))
	if d == nil {
		return plan.Tool{}, r
	}
	own := *d
	own.Name = name
	contract, _ := own.Contract() // it has none of its own
	c.tools[name] = Tool{Definition: &own, Contract: contract}
	t, _ := c.Lookup(name)
	return t, r
}

func (k *known) plan() plan.Tool {
	return plan.Tool{
		Input: k.input, Output: k.output, DependsOn: k.Contract.DependsOn, Approval: k.Contract.Approval != "", Plan: k.Definition.Plan,
		Refused: k.refused,
	}
}

// returns returns what each call of the tool returns in a dry run.
func (k *known) returns() []byte {
	if k.result != nil {
		return k.result
	}
	sample := tool.SampleOf(k.output)
	switch {
	case sample.JSON == nil:
		k.result, k.from = []byte("null"), outcome.FromNothing
	case sample.Example:
		k.result, k.from = sample.JSON, outcome.FromExample
	default:
		k.result, k.from = sample.JSON, outcome.FromSchema
	}
	return k.result
}
