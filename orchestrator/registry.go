package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// frozen returns the form in which runs keep a tool of the registry.
func frozen(t *tool.Registered) *wire.FrozenTool {
	return wire.Frozen(wire.FrozenTool{
		Digest: t.Digest, Shard: t.Shard, AckWait: t.AckWait.Milliseconds(), Contract: t.Contract, Plan: t.Template(), Agent: t.Agent(),
	})
}

// registry keeps the tools in memory: those of now for new plans, and schemas by digest for runs that froze them.
type registry struct {
	store toolStorage
	log   *slog.Logger

	mu       sync.RWMutex
	tools    map[string]*known
	names    []string             // sorted; nil when it has to be made again
	declared map[string]declared  // by the digests of definitions, which don't change
	sets     map[string]frozenSet // what runs froze last, by the names of the tools
	news     []func(name string)  // are told which tool may have another limit now
	vanished map[string]time.Time // tools that went without a mark of their removal, and when
	marks    map[string]uint64    // of tools that were removed: what is read of them later may be older
	narrowed map[tenantTool]*narrowed

	// agentSets are the agents that runs froze last, by all that they follow from.
	agentSets map[[sha256.Size]byte]agentSet
	starts    wire.Starts // that were read
}

// frozenSet is what runs keep of the tools of their plans: the same for all that call the same tools, as long as nobody
// registers one of them anew. It is never changed.
type frozenSet struct {
	tools   map[string]*wire.FrozenTool
	schemas schemas
}

// maxSets and maxSet bound the sets that are remembered, and the tools of each.
const (
	maxSets = 1024
	maxSet  = 64
)

type known struct {
	tool.Registered
	schema *tool.Schema
	output *tool.Schema     // nil: not declared
	frozen *wire.FrozenTool // what every run that begins now keeps of it
}

func newRegistry(store toolStorage, log *slog.Logger) *registry {
	return &registry{store: store, log: log, tools: map[string]*known{}, declared: map[string]declared{}, sets: map[string]frozenSet{}, agentSets: map[[sha256.Size]byte]agentSet{}, vanished: map[string]time.Time{}, marks: map[string]uint64{}, narrowed: map[tenantTool]*narrowed{}}
}

// follow lets news be told of each tool that is registered from now on; news must not wait.
func (g *registry) follow(news func(name string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.news = append(g.news, news)
}

// limit returns the fan-out limit of a tool as the registry has it now; frozen where it isn't known.
func (g *registry) limit(name string, frozen int) int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if k := g.tools[name]; k != nil {
		return k.Contract.Limit
	}
	return frozen
}

// run follows the registry until ctx ends; it returns once what is there has been read.
func (g *registry) run(ctx context.Context, owned *sync.WaitGroup) error {
	ready, tenants := make(chan struct{}), make(chan struct{})
	failed := make(chan error, 1)
	owned.Go(func() {
		g.watch(ctx, "the tool registry", ready, failed, func(caughtUp func()) error {
			return g.store.WatchTools(ctx, g.heard, caughtUp)
		})
	})
	owned.Go(func() {
		g.watch(ctx, "tenants' overrides", tenants, failed, func(caughtUp func()) error {
			return g.store.WatchTenantOverrides(ctx, g.narrow, caughtUp)
		})
	})
	for _, read := range []<-chan struct{}{ready, tenants} {
		select {
		case <-read:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// watch follows one thing until ctx ends, however often the following of it ends before. ready is closed once what is
// there has been read; failed takes the error of one that ended, where there is room.
func (g *registry) watch(
	ctx context.Context, what string, ready chan<- struct{}, failed chan<- error, follow func(caughtUp func()) error,
) {
	var once sync.Once
	for ctx.Err() == nil {
		err := follow(func() { once.Do(func() { close(ready) }) })
		if ctx.Err() != nil {
			return
		}
		select {
		case failed <- err:
		default:
		}
		g.log.Warn("the watch of "+what+" ended: watching again", "error", err)
		backoff.Pause(ctx, followPause)
	}
}

// heard takes what the watch of the registry reports, in the order of the registry.
func (g *registry) heard(t tool.Registered, deleted bool) {
	g.mu.Lock()
	delete(g.marks, t.Name) // this is newer, or the registry was begun anew
	if deleted {
		g.removed(t)
	}
	g.mu.Unlock()
	if !deleted {
		g.changed(t)
	}
}

// removed notes that a tool is gone; the registry is locked.
func (g *registry) removed(t tool.Registered) {
	if t.Revision > 0 {
		g.marks[t.Name] = t.Revision
	}
	old := g.tools[t.Name]
	if old == nil || t.Revision > 0 && t.Revision <= old.Revision { // it is there again
		return
	}
	delete(g.tools, t.Name)
	g.names = nil
	if t.Revision == 0 {
		g.vanished[t.Name] = time.Now()
	}
}

// changed takes an entry that was written or read, unless something newer is known.
func (g *registry) changed(t tool.Registered) {
	schema, err := t.Definition.Input()
	if err != nil {
		g.log.Error("a registered tool has an input schema that can't be used; the tool is left out", "tool", t.Name, "error", err)
		return
	}
	g.mu.Lock()
	if t.Revision < g.marks[t.Name] {
		g.mu.Unlock()
		return
	}
	if old := g.tools[t.Name]; old == nil || old.Revision <= t.Revision {
		k := &known{t, schema, g.outputSchema(t), frozen(&t)}
		g.tools[t.Name] = k
		g.declared[t.Digest] = declared{schema, k.output}
		g.names = nil
		delete(g.vanished, t.Name)
	}
	news := g.news
	g.mu.Unlock()
	for _, tell := range news {
		tell(t.Name)
	}
}

// outputSchema returns the schema of a tool's results; nil where there is none that can be used.
func (g *registry) outputSchema(t tool.Registered) *tool.Schema {
	s, err := t.Definition.Output()
	if err != nil {
		g.log.Warn("a registered tool has an output schema that can't be used; plans are not checked against it", "tool", t.Name, "error", err)
		return nil
	}
	return s
}

// refresh reads tools that a plan named and nobody knows from the registry itself; true if any turned up.
func (g *registry) refresh(ctx context.Context, names []string) (found bool) {
	for _, name := range names {
		t, err := g.store.Tool(ctx, name)
		if err != nil {
			if !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
				g.log.Warn("can't read the tool registry", "tool", name, "error", err)
			}
			continue
		}
		g.changed(t)
		found = true
	}
	return found
}

// registered returns all tools, in the order of their names.
func (g *registry) registered() []tool.Registered {
	g.mu.RLock()
	defer g.mu.RUnlock()
	all := make([]tool.Registered, 0, len(g.tools))
	for _, k := range g.tools {
		all = append(all, k.Registered)
	}
	slices.SortFunc(all, func(a, b tool.Registered) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// catalog returns the tools that one tenant may use. It is for one plan, on one goroutine.
func (g *registry) catalog(tenant string) *catalog {
	return &catalog{g: g, tenant: tenant, used: map[string]*known{}, roles: agents.NewRoles(nil)}
}

// share returns a set that an earlier run froze, if it is the same as this one.
func (g *registry) share(key string, fresh frozenSet) frozenSet {
	if len(fresh.tools) > maxSet {
		return fresh
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if set, there := g.sets[key]; there && maps.Equal(set.tools, fresh.tools) && maps.Equal(set.schemas, fresh.schemas) {
		return set
	}
	if len(g.sets) >= maxSets {
		clear(g.sets)
	}
	g.sets[key] = fresh
	return fresh
}

// schemasFor returns the schemas that a run froze, by their digests. The rounds of agents may call any of its tools.
func (g *registry) schemasFor(ctx context.Context, p *plan.Plan, start *wire.Start, agents *agentsOf) (schemas, error) {
	if agents != nil && agents.schemas != nil {
		return agents.schemas, nil
	}
	s := schemas{}
	var names []string
	for step := range p.All() {
		names = append(names, step.Tool)
	}
	if agents != nil {
		names = slices.Sorted(maps.Keys(start.Tools))
	}
	for _, name := range names {
		if _, done := s[name]; done || start.Tools[name] == nil {
			continue
		}
		schema, err := g.schema(ctx, start.Tools[name])
		if err != nil {
			return nil, err
		}
		s[name] = schema
	}
	return s, nil
}

// frozenTools are the tools that a run froze, for the agents among them.
type frozenTools struct {
	agents.FrozenRoles
	defined map[string]*tool.Definition
}

// Definition returns a tool.
func (f frozenTools) Definition(name string) (*tool.Definition, bool) {
	d := f.defined[name]
	return d, d != nil
}

// Names returns the names of all, sorted.
func (f frozenTools) Names() []string { return slices.Sorted(maps.Keys(f.defined)) }

// definition returns the definition of a tool that a run froze: that of now where it is the same, since a run may keep many.
func (g *registry) definition(ctx context.Context, name string, t *wire.FrozenTool) (*tool.Definition, error) {
	if t.Definition != nil {
		return tool.ParseDefinition(t.Definition)
	}
	digest := t.Digest
	g.mu.RLock()
	k := g.tools[name]
	g.mu.RUnlock()
	if k != nil && k.Digest == digest {
		return k.Definition, nil
	}
	return g.store.Definition(ctx, digest)
}

// agents returns the agents that a run froze, and what it calls that has a plan; of a run without agents none. They are
// the same for all runs that froze the same tools and groups, and never changed. The error is one that may pass.
func (g *registry) agents(ctx context.Context, start *wire.Start) (agentSet, error) {
	names := slices.Sorted(maps.Keys(start.Tools))
	if !slices.ContainsFunc(names, func(name string) bool { return start.Tools[name].Agent }) {
		return agentSet{}, nil
	}
	key, shared := agentsKey(names, start)
	if shared {
		g.mu.RLock()
		all := g.agentSets[key]
		g.mu.RUnlock()
		if all.defined != nil {
			return all, nil
		}
	}
	tools := frozenTools{agents.FrozenRoles{Roles: start.Groups, Search: start.Search}, map[string]*tool.Definition{}}
	for _, name := range names {
		d, err := g.definition(ctx, name, start.Tools[name])
		if err != nil {
			return agentSet{}, err
		}
		tools.defined[name] = d
	}
	all := agentSet{defined: map[string]*agent.Definition{}, digests: map[string]string{}, schemas: schemas{}}
	for _, name := range names {
		var err error
		if all.schemas[name], err = g.schema(ctx, start.Tools[name]); err != nil {
			return agentSet{}, err
		}
		if !start.Tools[name].Agent {
			continue
		}
		a, report := agents.Read(tools.defined[name], tools)
		if a == nil {
			p := report.Problems[0]
			return agentSet{}, fault.New(fault.Internal, "the agent %s of an accepted run can't be read: %s: %s", name, p.Path, p.Message)
		}
		all.defined[name], all.digests[name] = a, agents.Digest(tools.defined[name])
	}
	var err error
	if all.templates, err = g.planned(ctx, names, start, all.defined); err != nil {
		return agentSet{}, err
	}
	if shared {
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.agentSets) >= maxSets {
			clear(g.agentSets)
		}
		g.agentSets[key] = all
	}
	return all, nil
}

// agentsKey is made of all that the agents of a run follow from: the tools by their digests, which name what never changes,
// and what stands for groups and searches. Large sets are not shared.
func agentsKey(names []string, start *wire.Start) (key [sha256.Size]byte, shared bool) {
	if len(names) > maxSet {
		return key, false
	}
	digests := make([]string, 0, len(names))
	for _, name := range names {
		digests = append(digests, name+" "+start.Tools[name].Digest+" "+strconv.FormatBool(start.Tools[name].Agent))
	}
	text, err := json.Marshal([]any{digests, start.Groups, start.Search})
	return sha256.Sum256(text), err == nil
}

// templates returns the plans of the templates that a run froze, by name, and its agents. The error is one that may pass.
func (g *registry) templates(ctx context.Context, start *wire.Start) (map[string]*plan.Template, error) {
	set, err := g.agents(ctx, start)
	if err != nil || set.templates != nil {
		return set.templates, err
	}
	return g.planned(ctx, slices.Sorted(maps.Keys(start.Tools)), start, nil)
}

// planned returns what has a plan among the tools of these names, and the agents.
func (g *registry) planned(ctx context.Context, names []string, start *wire.Start, defined map[string]*agent.Definition) (map[string]*plan.Template, error) {
	var all map[string]*plan.Template
	for _, name := range names {
		t := start.Tools[name]
		if !t.Plan && !t.Agent {
			continue
		}
		d, err := g.definition(ctx, name, t)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = map[string]*plan.Template{}
		}
		x := &plan.Template{Name: name, Plan: d.Plan}
		if a := defined[name]; a != nil {
			x.Agent = agents.Of(a, plan.Report{})
		}
		of, err := g.declaredBy(ctx, t)
		if err != nil {
			return nil, err
		}
		x.Input, x.Output = of.in, of.out
		all[name] = x
	}
	return all, nil
}

// declared is what a definition says of a tool's arguments and results.
type declared struct {
	in  *tool.Schema
	out *tool.Schema // nil where none is declared that can be used
}

// declaredBy returns what the definition of a tool declares that a run froze. The error is one that may pass, unless the
// schema of the arguments can't be used.
func (g *registry) declaredBy(ctx context.Context, t *wire.FrozenTool) (declared, error) {
	digest := t.Digest
	if x := g.heardOf(digest); x.in != nil {
		return x, nil
	}
	d, err := g.definition(ctx, "", t)
	if err != nil {
		return declared{}, err
	}
	var x declared
	if x.in, err = d.Input(); err != nil {
		return declared{}, err
	}
	if x.out, _ = d.Output(); t.Definition != nil { // it is this run's alone
		return x, nil
	}
	g.mu.Lock()
	g.declared[digest] = x
	g.mu.Unlock()
	return x, nil
}

// heardOf returns what is known by now of a definition, without waiting.
func (g *registry) heardOf(digest string) declared {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.declared[digest]
}

// output returns the output schema of a definition that a run froze; nil where it declares none that can be used. The
// error is one that may pass.
func (g *registry) output(ctx context.Context, t *wire.FrozenTool) (*tool.Schema, error) {
	x, err := g.declaredBy(ctx, t)
	return x.out, err
}

func (g *registry) schema(ctx context.Context, t *wire.FrozenTool) (*tool.Schema, error) {
	x, err := g.declaredBy(ctx, t)
	return x.in, err
}
