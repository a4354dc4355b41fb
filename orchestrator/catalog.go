package orchestrator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	groups "github.com/stepjet/stepjet/tool/group"
	"github.com/stepjet/stepjet/wire"
)

// catalog is plan.Catalog over the registry; it remembers what was asked for, so that the contracts frozen are those
// validated against.
type catalog struct {
	g      *registry
	tenant string
	all    bool              // the tools of all tenants count
	used   map[string]*known // nil for a name that isn't there

	permits *groups.Permits // what the run may call; nil for everything
	roles   *agents.Roles
	listed  bool // what searches may find is left out
}

// permitted returns what a run may call that was submitted with permissions, as of its start; nil for everything.
func permitted(p *wire.Permits) (*groups.Permits, error) {
	if p == nil {
		return nil, nil
	}
	var all []*groups.Definition
	for _, raw := range p.Groups {
		d, err := groups.Parse(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return groups.Permit(p.Permissions, groups.NewSet(all)), nil
}

// permit returns what a run keeps of its permissions, where it was submitted with some: the groups of now that need any.
func (g *registry) permit(ctx context.Context, permissions []string) (*wire.Permits, error) {
	if permissions == nil {
		return nil, nil
	}
	set, err := g.store.AllGroups(ctx)
	if err != nil {
		return nil, err
	}
	p := &wire.Permits{Permissions: permissions}
	for _, d := range set.Keeping(permissions) {
		raw, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		p.Groups = append(p.Groups, raw)
	}
	return p, nil
}

// maxRefresh bounds how many unknown names of one plan are looked up.
const maxRefresh = 32

func (c *catalog) find(name string) *known {
	if k, seen := c.used[name]; seen {
		return k
	}
	c.g.mu.RLock()
	k := c.g.tools[name]
	c.g.mu.RUnlock()
	if k != nil && !c.all && len(k.Tenants) > 0 && !slices.Contains(k.Tenants, c.tenant) {
		k = nil
	}
	k = c.g.as(c.tenant, k)
	c.used[name] = k
	return k
}

// Lookup returns a tool.
func (c *catalog) Lookup(name string) (plan.Tool, bool) {
	k := c.find(name)
	if k == nil {
		return plan.Tool{}, false
	}
	return plan.Tool{
		Input: k.schema, Output: k.output, DependsOn: k.Contract.DependsOn, Approval: k.Contract.Approval != "", Plan: k.Definition.Plan, Agent: c.agent(k),
		Refused: c.refused(k),
	}, true
}

// refused returns why the run may not call a tool; nil where it may. What an agent calls is known to nobody before, so a call
// of it takes what all that it can reach takes.
func (c *catalog) refused(k *known) *plan.Refused {
	if c.permits == nil {
		return nil
	}
	call := groups.Call{Tool: k.Name, Reaches: []groups.Live{{Name: k.Name, Hints: k.Definition.Annotations}}}
	if k.Agent() {
		free, reached := *c, frozenSet{map[string]*wire.FrozenTool{}, schemas{}}
		free.permits, free.listed = nil, true // else nothing would be seen behind a template that may not be called
		free.keep(k.Name, reached, &strings.Builder{})
		call = agentcheck.Reaching(k.Name, k.Definition, slices.Collect(maps.Keys(reached.tools)), func(name string) *tool.Definition { return c.find(name).Definition })
	}
	return (*plan.Refused)(c.permits.Refuse(call))
}

// Names returns the names of the tenant's tools, sorted; of a run that calls the tools of some groups alone, of these.
func (c *catalog) Names() []string {
	if !c.permits.Bounded() {
		return c.names()
	}
	return slices.DeleteFunc(c.names(), func(name string) bool {
		k := c.find(name)
		return k == nil || len(c.permits.Lacks(name, k.Definition.Annotations)) > 0
	})
}

func (c *catalog) names() []string {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	if c.g.names == nil {
		for name := range c.g.tools {
			c.g.names = append(c.g.names, name)
		}
		sort.Strings(c.g.names)
	}
	mine := make([]string, 0, len(c.g.names))
	for _, name := range c.g.names {
		if t := c.g.tools[name].Tenants; c.all || len(t) == 0 || slices.Contains(t, c.tenant) {
			mine = append(mine, name)
		}
	}
	return mine
}

// missing returns names that were asked for and aren't there, sorted.
func (c *catalog) missing() []string {
	var names []string
	for name, k := range c.used {
		if k == nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names[:min(len(names), maxRefresh)]
}

// agent returns what a plan has to know of a tool that is an agent; nil for any other.
func (c *catalog) agent(k *known) *plan.Agent {
	if !k.Agent() {
		return nil
	}
	a, r := agents.Read(k.Definition, c)
	if a != nil && !c.listed {
		for _, role := range agents.SearchesOf(a) {
			if wide := agents.TooWide(len(c.Searchable(role))); wide != nil {
				return wide
			}
		}
	}
	return agents.Of(a, r)
}

// InlineAgent reads an agent that a plan defines itself. It is a tool of this plan from then on, under a name that no
// registry has.
func (c *catalog) InlineAgent(name, step string, definition []byte) (plan.Tool, plan.Report) {
	d, r := agentcheck.Inline(step, definition, func(d *tool.Definition) plan.Report {
		a, r := agents.Read(d, c)
		if a != nil {
			r.Problems = append(r.Problems, agentcheck.Sinks(a)...)
		}
		return r
	})
	if d == nil {
		return plan.Tool{}, r
	}
	k := &known{Registered: tool.Registered{Name: name, Definition: d, Digest: d.Digest()}}
	k.Contract, _ = d.Contract() // it has none of its own
	k.schema, _ = d.Input()      // a flaw of the definition is told
	k.output, _ = d.Output()
	f := wire.FrozenTool{Digest: k.Digest, Contract: k.Contract, Agent: true}
	f.Definition, _ = json.Marshal(d) // it was read from JSON
	k.frozen = wire.Frozen(f)
	c.used[name] = k
	t, _ := c.Lookup(name)
	return t, r
}

// Group returns the tools of a group, for agents, and whether there is one.
func (c *catalog) Group(role string) (tools []string, ok bool) {
	return c.roles.Group(role, func() (live []groups.Live) {
		for _, name := range c.names() {
			live = append(live, groups.Live{Name: name, Hints: c.find(name).Definition.Annotations})
		}
		return live
	})
}

// Groups returns the roles of all groups, sorted.
func (c *catalog) Groups() []string { return c.roles.Groups() }

// Searchable returns what an agent's search looks through: tools that the run may call, and templates of such. No
// search finds an agent, nor a template that calls one: who is called by whom is to be seen when an agent is applied.
func (c *catalog) Searchable(role string) []string {
	free := *c
	free.permits, free.listed = nil, true
	may := func(name string) bool {
		k := c.find(name)
		return k != nil && !k.Agent() && (c.permits == nil || len(c.permits.Lacks(name, k.Definition.Annotations)) == 0)
	}
	return c.roles.Searchable(role, func() []string {
		if role == "" {
			return c.Names()
		}
		tools, _ := c.Group(role)
		return tools
	}, func(name string) bool {
		if !may(name) {
			return false
		}
		return !c.find(name).Template() ||
			!slices.ContainsFunc(agentcheck.Within(name, &free), func(x agentcheck.Call) bool { return !may(x.Tool) })
	})
}

// found returns what a tool can call that is an agent and searches for tools.
func (c *catalog) found(name string) (all []string) {
	if k := c.find(name); k != nil && k.Agent() && !c.listed {
		if a, _ := agents.Read(k.Definition, c); a != nil {
			for _, role := range agents.SearchesOf(a) {
				all = append(all, c.Searchable(role)...)
			}
		}
	}
	return all
}

// Definition returns the definition of a tool, for agents that may use it.
func (c *catalog) Definition(name string) (*tool.Definition, bool) {
	k := c.find(name)
	if k == nil {
		return nil, false
	}
	return k.Definition, true
}

// checkAgainst reports what is wrong with the definition of a template or an agent, held against the tools of a catalog,
// of which it is one: so that a way back to it is found.
func checkAgainst(d *tool.Definition, c *catalog) (r plan.Report) {
	own := &known{Registered: tool.Registered{Definition: d}}
	own.schema, _ = d.Input() // a flaw of the definition that others report
	own.output, _ = d.Output()
	c.used[d.Name] = own // an agent within its plan may name it
	if d.Agent != nil {
		var a *agent.Definition
		if a, r = agents.Read(d, c); a != nil {
			r.Problems = append(r.Problems, agentcheck.Sinks(a)...)
		}
		problems, warnings := agentcheck.Texts(d)
		r.Problems, r.Warnings = append(r.Problems, problems...), append(r.Warnings, warnings...)
	} else {
		r = plan.CheckTemplate(d, c)
	}
	if len(r.Problems) > 0 {
		return r
	}
	if p := agentcheck.Circle(d.Name, c.calls); p != nil {
		r.Problems = append(r.Problems, *p)
	}
	return r
}

// calls returns what a tool can call: an agent or a template.
func (c *catalog) calls(name string) []agentcheck.Call {
	k := c.find(name)
	switch {
	case k == nil:
	case k.Agent():
		if a, _ := agents.Read(k.Definition, c); a != nil {
			return agentcheck.CallsOf(a)
		}
	case k.Template():
		return agentcheck.Within(name, c)
	}
	return nil
}

// check reports what is wrong with the plan of a template, or with an agent, held against the tools that those may call
// who may call it. The error is one that may pass.
func (g *registry) check(ctx context.Context, d *tool.Definition) (r plan.Report, err error) {
	of := []*catalog{g.catalog("")}
	if of[0].all = true; len(d.Tenants) > 0 {
		of = nil
		for _, tenant := range d.Tenants {
			of = append(of, g.catalog(tenant))
		}
	}
	for _, c := range of {
		if err = c.read(ctx, func() bool { r = checkAgainst(d, c); return len(r.Problems) == 0 }); err != nil {
			return r, err
		}
		if unknownTools(r.Problems) && g.lost(ctx, c.missing()) {
			return r, fault.New(fault.NotReady, "the registry has lost tools that %s may call", d.Name).
				WithHint("apply it again once workers have registered them")
		}
		if len(r.Problems) > 0 {
			break
		}
	}
	return r, nil
}

// read has something read against the catalog, which reports whether it has no problems: again where a tool that it
// misses was registered a moment ago and has not come here yet, since the registry's own word counts, and where an
// agent asks for groups.
func (c *catalog) read(ctx context.Context, what func() bool) error {
	var set *groups.Set
	again := func() bool {
		c.used, c.roles = map[string]*known{}, agents.NewRoles(set)
		return what()
	}
	sound := again()
	if c.roles.Wanted() {
		var err error
		if set, err = c.g.store.AllGroups(ctx); err != nil {
			return err
		}
		sound = again()
	}
	if missing := c.missing(); !sound && len(missing) > 0 && c.g.refresh(ctx, missing) {
		again()
	}
	return nil
}

// freeze returns what a run keeps of the tools of its plan.
func (c *catalog) freeze(p *plan.Plan) (map[string]*wire.FrozenTool, schemas) {
	var key strings.Builder // the names as they come, each once; no name holds a space
	fresh := frozenSet{map[string]*wire.FrozenTool{}, schemas{}}
	for s := range p.All() {
		name := s.Tool
		if s.Tool == "" || s.Ask {
			continue
		}
		c.keep(name, fresh, &key)
	}
	set := c.g.share(key.String(), fresh)
	return set.tools, set.schemas
}

// needsOfAgents returns what has to be known to go on with the agents among some tools.
func (c *catalog) needsOfAgents(tools map[string]*wire.FrozenTool) (needs []string) {
	for name := range tools {
		if k := c.find(name); k != nil && k.Agent() {
			needs = append(needs, wire.NeedsOfAgent(k.Definition.Agent)...)
			if c.reachesAgent(name, map[string]bool{}) {
				needs = append(needs, wire.SharedBoards)
			}
		}
	}
	return needs
}

// reachesAgent reports whether a tool can call an agent, by itself or through others.
func (c *catalog) reachesAgent(name string, seen map[string]bool) bool {
	return slices.ContainsFunc(c.calls(name), func(x agentcheck.Call) bool {
		if seen[x.Tool] {
			return false
		}
		seen[x.Tool] = true
		k := c.find(x.Tool)
		return k != nil && k.Agent() || c.reachesAgent(x.Tool, seen)
	})
}

// keep adds a tool to a set, and all that an agent can call.
func (c *catalog) keep(name string, fresh frozenSet, key *strings.Builder) {
	if fresh.tools[name] != nil {
		return
	}
	k := c.find(name)
	if k == nil {
		return
	}
	fresh.tools[name], fresh.schemas[name] = k.frozen, k.schema
	key.WriteString(name + " ")
	for _, called := range c.calls(name) {
		c.keep(called.Tool, fresh, key)
	}
	for _, found := range c.found(name) {
		c.keep(found, fresh, key)
	}
}

// What tenants override for their own runs. The registry's entries and the tools' consumers are the same for all; a run
// freezes the contract as its tenant has narrowed it.

// tenantTool names a tool of one tenant.
type tenantTool struct{ tenant, tool string }

// narrowed is what a tenant has made of a tool.
type narrowed struct {
	override *tool.Override // nil: cleared
	revision uint64
	of, as   *known // the tool as all have it, and as the tenant has it; made when it is first asked for
}

// narrow takes what a tenant overrides of a tool, unless it is older than what is known.
func (g *registry) narrow(tenant, name string, o *tool.Override, revision uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := tenantTool{tenant, name}
	if old := g.narrowed[key]; old == nil || old.revision <= revision {
		g.narrowed[key] = &narrowed{override: o, revision: revision}
	}
}

// as returns a tool as a tenant has it.
func (g *registry) as(tenant string, k *known) *known {
	if k == nil {
		return nil
	}
	key := tenantTool{tenant, k.Name}
	g.mu.RLock()
	n := g.narrowed[key]
	g.mu.RUnlock()
	if n == nil || n.override == nil {
		return k
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n.of != k {
		own := *k
		own.Contract = n.override.Narrow(k.Contract)
		own.frozen = frozen(&own.Registered)
		n.of, n.as = k, &own
	}
	return n.as
}

// A plan is rejected for good, so it must not be rejected for tools that nobody removed: where the registry was
// emptied, or tools vanished from it without a mark, plans that name an unknown tool wait. Workers register again by
// themselves.

// vanishedFor is how long a tool that vanished may take to be registered again. Whoever is looked after by no worker
// and by no orchestrator that remembers it until then is unknown.
const vanishedFor = time.Minute

// unknownTools reports whether a plan has problems with tools that nobody knows.
func unknownTools(problems []fault.Problem) bool {
	return slices.ContainsFunc(problems, func(p fault.Problem) bool { return p.Code == fault.UnknownTool })
}

// lost reports whether the registry may not be taken at its word when it says that it has no such tool.
func (g *registry) lost(ctx context.Context, missing []string) bool {
	g.mu.RLock()
	vanished := slices.ContainsFunc(missing, func(name string) bool {
		at, was := g.vanished[name]
		return was && time.Since(at) < vanishedFor
	})
	g.mu.RUnlock()
	if vanished {
		return true
	}
	emptied, err := g.store.RegistryEmptied(ctx)
	if err != nil {
		g.log.Warn("can't see whether the tool registry was emptied", "error", err)
	}
	return emptied
}
