package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
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

// Digest names all of an agent that the requests of its planner, and what becomes of its answers, follow from, but for how
// long it may go on: a retry of one with the same digest may go on where it ended. Empty for no agent.
func Digest(d *tool.Definition) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(d.Agent, &members) != nil {
		return ""
	}
	delete(members, "max_rounds")
	delete(members, "budget")
	text, err := json.Marshal([]any{members, d.InputSchema, d.OutputSchema})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Lasting returns the most rounds that an agent may have, and whether it has guards.
func Lasting(d *tool.Definition) (rounds int, guarded bool) {
	var members map[string]json.RawMessage
	var guards []json.RawMessage
	_ = json.Unmarshal(d.Agent, &members) // it was read before
	_ = json.Unmarshal(members["guards"], &guards)
	_ = json.Unmarshal(members["max_rounds"], &rounds)
	return cmp.Or(rounds, agent.DefaultRounds), len(guards) > 0
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
		Planner: a.Planner.Tool, Summary: a.Context.Summary, MaxRounds: a.MaxRounds, Concurrency: a.Concurrency, Responds: a.Respond != nil, Streams: a.StreamPlan, Time: a.Budget.Time,
	}
	if q := a.Approval; q != nil {
		out.Approval = &plan.Approval{Timeout: q.Timeout, ApproveOnTimeout: q.ApproveOnTimeout}
	}
	if len(a.Guards) > 0 {
		out.Guards, out.GuardTools = a, a.GuardTools()
	}
	return out
}

// MostSearched is the most tools that a search looks through: a run freezes all of them.
const MostSearched = 1_000

// Roles are the groups of tools of one moment, as the agents that a plan can reach ask for them. It is for one
// goroutine.
type Roles struct {
	set    *group.Set // nil: not read yet
	wanted bool
	tools  map[string][]string // of the roles that were asked for
	found  map[string][]string // that searches look through, likewise
}

// NewRoles returns the groups of a set; nil for one that nobody has read yet.
func NewRoles(set *group.Set) *Roles {
	return &Roles{set: set, tools: map[string][]string{}, found: map[string][]string{}}
}

// Wanted reports whether somebody has asked for a group and the set was not read yet: then all that was asked is to
// be asked again.
func (r *Roles) Wanted() bool { return r.wanted }

// Group returns the tools that stand for a role among those that are live, and whether there is such a group.
func (r *Roles) Group(role string, live func() []group.Live) (tools []string, ok bool) {
	if r.set == nil {
		r.wanted = true
		return nil, false
	}
	if tools, ok = r.tools[role]; ok {
		return tools, true
	}
	d, tools := r.set.Resolve(role, live())
	if d == nil {
		return nil, false
	}
	r.tools[role] = append([]string{}, tools...)
	return tools, true
}

// Groups returns the roles of all groups, sorted.
func (r *Roles) Groups() []string {
	if r.set == nil {
		return nil
	}
	return r.set.Roles()
}

// Searchable returns what searches look through: the tools of a group, or all where the role is empty, that may be
// found.
func (r *Roles) Searchable(role string, all func() []string, mayBeFound func(tool string) bool) []string {
	found, known := r.found[role]
	if !known {
		found = slices.DeleteFunc(slices.Clone(all()), func(name string) bool { return !mayBeFound(name) })
		r.found[role] = found
	}
	return found
}

// Frozen returns what a run keeps of groups: the tools of the roles that its agents name, and those that their
// searches look through, by roles; nil for nothing.
func (r *Roles) Frozen() FrozenRoles {
	f := FrozenRoles{}
	if len(r.tools) > 0 {
		f.Roles = maps.Clone(r.tools)
	}
	if len(r.found) > 0 {
		f.Search = maps.Clone(r.found)
	}
	return f
}

// FrozenRoles are the groups that a run froze.
type FrozenRoles struct{ Roles, Search map[string][]string }

// Group returns the tools of a group.
func (f FrozenRoles) Group(role string) (tools []string, ok bool) {
	tools, ok = f.Roles[role]
	return tools, ok
}

// Groups returns the roles of all groups, sorted.
func (f FrozenRoles) Groups() []string { return slices.Sorted(maps.Keys(f.Roles)) }

// Searchable returns what searches look through.
func (f FrozenRoles) Searchable(role string) []string { return f.Search[role] }

// SearchesOf returns the roles that an agent's searches are for; an empty one is all tools, of which its facades may
// have some selected, too.
func SearchesOf(a *agent.Definition) (roles []string) {
	for _, e := range a.Entries() {
		if role, is := e.Searches(); is {
			roles = append(roles, role)
		} else if e.Selects() != "" {
			roles = append(roles, "")
		}
	}
	return roles
}

// TooWide returns an agent that can't run, since its search would look through so many tools; nil where it can.
func TooWide(tools int) *plan.Agent {
	if tools <= MostSearched {
		return nil
	}
	const flaw = `its searches, or what its facades have selected, are of %d tools, at most %d are allowed; ` +
		`search in a group: {"search_tools": {"group": "web"}}`
	return &plan.Agent{Flaw: fmt.Sprintf(flaw, tools, MostSearched)}
}
