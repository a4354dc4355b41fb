// Package agentcheck finds what is wrong with an agent when it is applied, beyond what a run of it needs: that it can
// call itself, and texts that stand for nothing. Agents that were applied before run on, whatever is found here. It is
// pure.
package agentcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Call is a tool that an agent or a template can call, and where that stands in its definition.
type Call struct{ Tool, At string }

// CallsOf returns what an agent can call, its planner first, also what it calls for itself.
func CallsOf(a *agent.Definition) []Call {
	all := []Call{{a.Planner.Tool, plannerAt}}
	if s := a.Context.Summary; s != "" {
		all = append(all, Call{s, "/agent/context/summary"})
	}
	for n, g := range a.Guards {
		if g.Tool != "" {
			all = append(all, Call{g.Tool, fmt.Sprintf("/agent/guards/%d/tool", n)})
		}
	}
	for _, e := range a.Entries() {
		if e.Kind == agent.KindTool {
			all = append(all, Call{e.Tool, e.At})
		}
		if e.Selects() != "" {
			all = append(all, Call{e.Selects(), e.At + "/select"})
		}
	}
	return all
}

// Within returns what the plan of a template can call, and those that it calls. c knows all tools that it names.
func Within(template string, c plan.Catalog) []Call {
	body, _ := json.Marshal(map[string]any{"steps": []any{map[string]any{"id": "call", "tool": template}}}) // of a name
	p, _ := plan.ParseLimited(body, c, plan.Limits{Done: map[string]bool{"call": true}})
	if p == nil {
		return nil // it can't run: whoever calls it is told so
	}
	var all []Call
	for s := range p.All() {
		if s.Tool != "" && !s.Ask && s.Tool != template {
			all = append(all, Call{s.Tool, "/plan/steps"})
		}
	}
	return all
}

// Circle returns the problem of a tool that can reach itself through others, by the shortest way; nil for none.
func Circle(name string, calls func(name string) []Call) *fault.Problem {
	type reached struct {
		tool string
		way  []string // the tools before it
		at   string   // where the first of them is called
	}
	next, seen := []reached{{tool: name}}, map[string]bool{}
	for len(next) > 0 {
		x := next[0]
		next = next[1:]
		way := append(slices.Clone(x.way), x.tool)
		for _, c := range calls(x.tool) {
			at := x.at
			if at == "" {
				at = c.At
			}
			if c.Tool == name {
				return &fault.Problem{Code: fault.Cycle, Path: at,
					Message: "it reaches itself: " + strings.Join(append(way, name), " → "),
					Hint:    "leave this one out; an agent does something again in its next round, so it need not call itself"}
			}
			if !seen[c.Tool] {
				seen[c.Tool] = true
				next = append(next, reached{c.Tool, way, at})
			}
		}
	}
	return nil
}

// Files are definitions that are looked at together, by name, without a server. All other tools are taken to be there,
// and to call nothing.
type Files map[string]*tool.Definition

// Circle is that of a definition of the files.
func (f Files) Circle(name string) *fault.Problem { return Circle(name, f.calls) }

// plannerAt is where an agent's definition names its planner.
const plannerAt = "/agent/planner/tool"

// Planners returns the planners of an agent and of those that it can reach, its own first.
func (f Files) Planners(name string) (all []string) {
	seen := map[string]bool{name: true}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, c := range f.calls(next[0]) {
			if c.At == plannerAt && !slices.Contains(all, c.Tool) {
				all = append(all, c.Tool)
			}
			if !seen[c.Tool] {
				seen[c.Tool] = true
				next = append(next, c.Tool)
			}
		}
	}
	return all
}

// calls returns what a definition of the files can call; nothing for what is hosted, and for what can't be read.
func (f Files) calls(name string) []Call {
	d := f[name]
	switch {
	case d == nil || d.Hosted():
		return nil
	case d.Plan != nil:
		return Within(name, f)
	}
	body, err := json.Marshal(d)
	if err != nil {
		return nil
	}
	a, _ := agent.Parse(body, nil)
	if a == nil { // what is wrong with it is told
		return nil
	}
	return CallsOf(a)
}

// Lookup returns a tool, for plans that call it.
func (f Files) Lookup(name string) (plan.Tool, bool) {
	if d := f[name]; d != nil && d.Plan != nil {
		return plan.Tool{Plan: d.Plan}, true
	}
	return plan.Tool{}, true
}

// Names returns the names of the definitions.
func (f Files) Names() []string { return nil }
