package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/catalog/search"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/tool"
)

// tenant is what serves one tenant: its client, and its tools as they stand in the registry.
type tenant struct {
	desk
	name string
	mcp  *mcp.Server

	opening sync.Mutex
	// Of the goroutine that offers tools: what is listed of execute_tool_plan, and the groups as they were read last.
	guide  string
	groups groups
}

func newTenant(cfg *Config, l *life, states task.Keys, name string) *tenant {
	t := &tenant{name: name}
	t.runs = &runs{most: cfg.MaxResult}
	t.tasks = &tasks{runs: t.runs, keys: cfg.Keys, retention: cfg.Retention}
	t.cfg, t.life, t.states = cfg, l, states
	t.forms = newForms(cfg, l, t.runs)
	t.shelf.index = search.New(nil)
	capabilities := &mcp.ServerCapabilities{}
	capabilities.AddExtension(task.Extension, nil)
	t.mcp = mcp.NewServer(&mcp.Implementation{Name: "stepjet", Title: "Stepjet", Version: cfg.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       cfg.Logger,
		Capabilities: capabilities,
		// Lists are a tenant's: nobody between may keep them for others.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	t.tasks.offer(t.mcp)
	t.addResources()
	t.mcp.AddReceivingMiddleware(t.middleware)
	t.mcp.AddSendingMiddleware(overhear)
	return t
}

const instructions = `Stepjet runs plans: one JSON document that lists tool calls and how the output of one feeds the ` +
	`arguments of another. Use execute_tool_plan for everything that takes several calls; search_tools finds what plans can call.`

// open connects the tenant when it is first needed, and returns once its tools are known.
func (t *tenant) open(ctx context.Context) error {
	t.opening.Lock()
	defer t.opening.Unlock()
	if t.runs.client != nil {
		return nil
	}
	c, err := t.cfg.Client(ctx, t.name)
	if err != nil {
		return err
	}
	tools, err := c.Tools(ctx)
	if err != nil {
		return err
	}
	approver := c
	if open := t.cfg.Approver; open != nil {
		if approver, err = open(ctx, t.name); err != nil {
			return err
		}
	}
	t.runs.client, t.runs.approver = c, approver
	t.offer(ctx, tools)
	t.life.working.Go(func() { t.follow(t.life.ctx, tools) })
	return nil
}

// followPause is between two tries to read a registry that can't be read.
const followPause = time.Second

// follow keeps the tools as the registry has them, until ctx ends. What comes while lists are made is taken together.
func (t *tenant) follow(ctx context.Context, tools []tool.Registered) {
	news := make(chan []tool.Registered, 1)
	t.life.working.Go(func() {
		again := time.NewTicker(groupsEvery)
		defer again.Stop()
		for {
			select {
			case tools = <-news:
				t.offer(ctx, tools)
			case <-again.C:
				if t.listsGroups(len(tools)) && t.readGroups(ctx) {
					t.offer(ctx, tools)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	for {
		err := t.runs.client.WatchTools(ctx, func(tools []tool.Registered) {
			select {
			case <-news: // it is old now
			default:
			}
			news <- tools
		})
		if ctx.Err() != nil {
			return
		}
		t.cfg.Logger.Warn("the registry can't be followed; its tools stay as they were", "tenant", t.name, "error", err)
		if !backoff.Pause(ctx, followPause) {
			return
		}
	}
}

// listsGroups reports whether what is listed of so many tools depends on groups.
func (t *tenant) listsGroups(tools int) bool {
	return tools > mostListed || t.exposesGroups()
}

// exposesGroups reports whether which tools are offered as tools of their own depends on groups.
func (t *tenant) exposesGroups() bool { return t.cfg.Expose != nil && len(t.cfg.Expose.Groups()) > 0 }

// readGroups reads the groups anew and reports whether they have changed.
func (t *tenant) readGroups(ctx context.Context) bool {
	changed, err := t.groups.read(ctx, t.runs.client)
	if err != nil && ctx.Err() == nil {
		t.cfg.Logger.Warn("groups of tools can't be read; what is listed stays as it was", "tenant", t.name, "error", err)
	}
	if changed && t.cfg.Expose != nil {
		if strange := t.groups.lacks(t.cfg.Expose.Groups()); len(strange) > 0 {
			t.cfg.Logger.Warn("the tools to offer as tools of their own are of groups that there are not", "tenant", t.name,
				"groups", strange, "hint", "look at those there are with stepjet groups list")
		}
	}
	return changed
}

// offer takes the registry's tools as they are now.
func (t *tenant) offer(ctx context.Context, registered []tool.Registered) {
	if t.groups.all == nil && t.listsGroups(len(registered)) {
		t.readGroups(ctx)
	}
	tools := make([]*tool.Definition, len(registered))
	for i, r := range registered {
		tools[i] = r.Effective()
	}
	roles := t.groups.of(tools)
	known := t.groups.all != nil || !t.exposesGroups() // "!group:host" is to offer nothing of a group that nobody has read
	exposed, revisions := map[string]*tool.Definition{}, map[string]uint64{}
	for i, r := range registered {
		d := tools[i]
		name := catalog.Name(catalog.Anthropic, d.Name)
		if known && t.cfg.exposes(d, roles[d.Name]) && !slices.Contains(builtins, name) {
			exposed[name], revisions[name] = d, r.Revision
		}
	}
	before := t.shelf.put(tools, exposed, revisions)
	t.addBuiltins(tools)
	for name, d := range exposed {
		if before[name] != revisions[name] {
			t.expose(name, d)
		}
	}
	for name := range before {
		if exposed[name] == nil {
			t.mcp.RemoveTools(name)
		}
	}
}

// expose offers a registered tool as one of its own. One whose schema clients can't take is left out.
func (t *tenant) expose(name string, d *tool.Definition) {
	listed, err := listedTool(name, d)
	if err == nil {
		err = addTool(t.mcp, listed, t.callTool)
	}
	if err != nil {
		t.cfg.Logger.Warn("a tool can't be offered to clients of MCP and is left out", "tool", d.Name, "error", err)
		t.mcp.RemoveTools(name)
	}
}

// addBuiltins offers the tools that are always there. Only execute_tool_plan depends on the others.
func (t *tenant) addBuiltins(tools []*tool.Definition) {
	plan, err := planTool(tools, &t.groups)
	if err != nil {
		t.cfg.Logger.Error("execute_tool_plan can't be described over the tools there are", "error", err)
		plan, _ = planTool(nil, &t.groups)
	}
	raw, _ := json.Marshal(plan) // it came from JSON
	first, changed := t.guide == "", t.guide != string(raw)
	t.guide = string(raw)
	if changed {
		t.mcp.AddTool(plan, t.callPlan)
	}
	if first {
		t.mcp.AddTool(searchTool, t.callSearch)
		t.mcp.AddTool(resultTool, t.callResult)
		t.mcp.AddTool(cancelTool, t.callCancel)
	}
}

// addResources offers the results of steps to be read, part by part.
func (t *tenant) addResources() {
	template := mcp.ResourceTemplate{
		Name: "result", Title: "Result of a step", MIMEType: jsonType,
		URITemplate: "stepjet://runs/{run}/steps/{step}{?path,offset,limit}",
		Description: `What a step returned, as JSON; the step "=" is the plan's output. path is a JSON pointer (/items/0), offset and limit ` +
			`count bytes of what it leads to; at most 262,144 come at once.`,
	}
	t.mcp.AddResourceTemplate(&template, t.readResource)
	loose := template // the SDK's matcher knows parameters in this order alone, and no paths
	loose.Name, loose.URITemplate = "any-result", "stepjet://runs/{run}/steps/{+rest}"
	t.mcp.AddResourceTemplate(&loose, t.readResource)
}

// middleware goes around all methods.
func (t *tenant) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if !offered(method) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method " + method + " is not offered"}
		}
		t.forms.heard(req.GetSession())
		defer t.forms.heard(req.GetSession())
		who := t.who(req.GetExtra())
		ctx = context.WithValue(ctx, callerKey{}, who)
		if method != "tools/call" {
			res, err := next(ctx, method, req)
			if list, is := res.(*mcp.ListToolsResult); is && err == nil {
				return t.listed(ctx, who, list)
			}
			return res, err
		}
		h := &holder{}
		res, err := next(context.WithValue(ctx, holderKey{}, h), method, req)
		if err == nil && h.task != nil {
			return h.task, nil
		}
		return res, err
	}
}

// requiresTasks reports whether a tool that a caller sees is for clients that know tasks alone.
func (t *tenant) requiresTasks(ctx context.Context, who Principal, name string) bool {
	d := t.shelf.one(name)
	if taskModeOf(d) != taskRequired {
		return false
	}
	b, err := t.runs.boundOf(ctx, who)
	return err == nil && b.sees(d)
}

// listed returns what is listed for a caller: its tools, and of plans the guide over these.
func (t *tenant) listed(ctx context.Context, who Principal, list *mcp.ListToolsResult) (mcp.Result, error) {
	b, err := t.runs.boundOf(ctx, who)
	if err != nil {
		return nil, internalError(fault.As(err))
	}
	if b == nil {
		return list, nil
	}
	mine := *list
	mine.Tools = nil
	for _, one := range list.Tools {
		switch d := t.shelf.one(one.Name); {
		case one.Name == executePlan:
			own, err := planTool(b.some(t.shelf.all()), &groups{all: b.own})
			if err != nil {
				return nil, internalError(fault.As(err))
			}
			mine.Tools = append(mine.Tools, own)
		case d != nil && b.sees(d), slices.Contains(builtins, one.Name):
			mine.Tools = append(mine.Tools, one)
		}
	}
	return &mine, nil
}
