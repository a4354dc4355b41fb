package dryrun

import (
	"encoding/json"

	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// refused returns why the run may not call a tool, as orchestrators find it; nil where it may. A call of an agent takes what all
// that it can reach takes, for what it calls is known to nobody before.
func (c *catalog) refused(t *Tool) *plan.Refused {
	if c.permits == nil {
		return nil
	}
	call := group.Call{Tool: t.Definition.Name, Reaches: []group.Live{{Name: t.Definition.Name, Hints: t.Definition.Annotations}}}
	if t.Definition.Agent != nil {
		var names []string
		for _, x := range c.reached(t.Definition.Name) {
			names = append(names, x.Definition.Name)
		}
		call = agentcheck.Reaching(t.Definition.Name, t.Definition, names, func(name string) *tool.Definition { return c.tools[name].Definition })
	}
	return (*plan.Refused)(c.permits.Refuse(call))
}

// reached returns the tools that an agent can reach, itself first: those that it and the agents below it name, their
// planners among them, and those that templates among these call.
func (c *catalog) reached(agent string) (all []Tool) {
	free := newCatalog(nil)
	free.tools = c.tools
	seen := map[string]bool{}
	for next := []string{agent}; len(next) > 0; {
		name := next[0]
		next = next[1:]
		x, known := c.tools[name]
		if seen[name] || !known {
			continue
		}
		seen[name] = true
		all = append(all, x)
		switch {
		case x.Definition.Agent != nil:
			next = append(next, calledByAgent(x.Definition.Agent)...)
		case x.Definition.Plan != nil:
			next = append(next, calledByPlan(name, free)...)
		}
	}
	return all
}

// calledByAgent returns the names of the tools in the definition of an agent, its planner's among them.
func calledByAgent(raw json.RawMessage) (names []string) {
	var a struct {
		Planner struct{ Tool string }
		Tools   json.RawMessage
	}
	if json.Unmarshal(raw, &a) != nil {
		return nil // it can't run
	}
	names = []string{a.Planner.Tool}
	for entries := []json.RawMessage{a.Tools}; len(entries) > 0; entries = entries[1:] {
		var list []json.RawMessage
		if json.Unmarshal(entries[0], &list) != nil {
			continue // there are none
		}
		for _, e := range list {
			var name string
			var entry struct {
				Tool  string
				Tools json.RawMessage // of a facade or a chain
			}
			switch {
			case json.Unmarshal(e, &name) == nil:
				names = append(names, name)
			case json.Unmarshal(e, &entry) == nil:
				names, entries = append(names, entry.Tool), append(entries, entry.Tools)
			}
		}
	}
	return names
}

// calledByPlan returns the names of the tools that a template can call.
func calledByPlan(name string, c *catalog) (names []string) {
	call, _ := json.Marshal(map[string]any{"steps": []any{map[string]any{"id": "call", "tool": name}}}) // of a name
	p, _ := plan.ParseLimited(call, c, plan.Limits{Done: map[string]bool{"call": true}})
	if p == nil {
		return nil // it can't run: whoever calls it is told so
	}
	for s := range p.All() {
		if s.Tool != "" && !s.Ask {
			names = append(names, s.Tool)
		}
	}
	return names
}
