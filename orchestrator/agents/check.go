package agents

import (
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Tools are the tools that an agent may use: those of the registry, or those that a run froze.
type Tools interface {
	// Definition returns a tool, and whether there is one of that name.
	Definition(name string) (*tool.Definition, bool)
	// Names returns the names of all of them, sorted.
	Names() []string
	// Group is that of agent.Catalog.
	Group(role string) (tools []string, ok bool)
	// Groups is that of agent.Catalog.
	Groups() []string
	// Searchable is that of agent.Catalog.
	Searchable(role string) []string
}

// universe is agent.Catalog over tools.
type universe struct{ Tools }

// Lookup returns a tool.
func (u universe) Lookup(name string) (*tool.Definition, bool) { return u.Definition(name) }

// Read reads the definition of an agent against the tools that it may use. The agent is nil if and only if the report has
// problems, whose places are those of the definition. What no owner acts on yet is refused: an agent that runs without
// what its author relies on would be worse than none.
func Read(d *tool.Definition, tools Tools) (*agent.Definition, plan.Report) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, plan.Report{Problems: []fault.Problem{{Code: fault.InvalidTool, Message: err.Error()}}}
	}
	a, r := agent.Parse(body, universe{tools})
	if a == nil {
		return nil, r
	}
	r.Problems = append(r.Problems, plannerFits(a, tools)...)
	if len(r.Problems) > 0 {
		return nil, r
	}
	return a, r
}

// plannerFits refuses a planner, what makes summaries, and guards that no worker hosts: their calls are one step of a tool
// each, and never a plan of steps.
func plannerFits(a *agent.Definition, tools Tools) (problems []fault.Problem) {
	all := []struct{ what, tool, at string }{{"planner", a.Planner.Tool, "/agent/planner/tool"}, {"summary tool", a.Context.Summary, "/agent/context/summary"}}
	for n, g := range a.Guards {
		all = append(all, struct{ what, tool, at string }{"guard", g.Tool, fmt.Sprintf("/agent/guards/%d/tool", n)})
	}
	for _, asked := range all {
		d, known := tools.Definition(asked.tool)
		if asked.tool == "" || !known || d.Hosted() {
			continue
		}
		kind := "a template"
		if d.Agent != nil {
			kind = "an agent"
		}
		problems = append(problems, fault.Problem{
			Code: fault.InvalidTool, Path: asked.at, Message: fmt.Sprintf("the %s %q is %s, and such are tools that workers host", asked.what, asked.tool, kind),
			Hint: "let a worker answer, of a model or of your own; what " + kind + " does can be a tool of the agent: " + `"tools": ["` + asked.tool + `"]`,
		})
	}
	return problems
}

// Of returns what a plan has to know of an agent; nil is one of which the report says what is wrong.
func Of(a *agent.Definition, r plan.Report) *plan.Agent {
	if a == nil {
		p := r.Problems[0]
		return &plan.Agent{Flaw: p.Path + ": " + p.Message}
	}
	out := &plan.Agent{
		Planner: a.Planner.Tool, Summary: a.Context.Summary, MaxRounds: a.MaxRounds, Concurrency: a.Concurrency, Responds: a.Respond != nil, Time: a.Budget.Time,
	}
	if q := a.Approval; q != nil {
		out.Approval = &plan.Approval{Timeout: q.Timeout, ApproveOnTimeout: q.ApproveOnTimeout}
	}
	if len(a.Guards) > 0 {
		out.Guards, out.GuardTools = a, a.GuardTools()
	}
	return out
}
