package servers

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// extension reads x-stepjet, which says how the bridge uses a server.
func (r *reader) extension(f jsonfile.Fields, e *Entry) {
	e.Calls, e.Instances, e.connect = defaultCalls, 1, defaultConnect
	e.isolation, e.Context = shared, passNone
	if e.Kind == Stdio {
		e.isolation = byTenant // a process may remember what one tenant told it
	}
	defer r.guarded(f, e)
	if !f.Has("x-stepjet") {
		return
	}
	x, ok := r.problems.Object(f.At("x-stepjet"), f.Values["x-stepjet"], "include", "exclude", "tools", "calls",
		"instances", "isolation", "context", "retry_errors", "allow_private", "connect_timeout")
	if !ok {
		return
	}
	e.include = r.selector(x, "include")
	if x.Has("exclude") {
		s := r.selector(x, "exclude")
		e.exclude = &s
	}
	e.Calls = int(x.Number("calls", defaultCalls, 1024))
	e.Instances = int(x.Number("instances", 1, 64))
	if x.Has("isolation") {
		e.isolation = isolation(x.Choice("isolation", string(shared), string(bySlot), string(byTenant)))
	}
	e.Private = x.Flag("allow_private")
	r.connectTimeout(x, e)
	r.retryErrors(x, e)
	r.contextRule(x, e)
	r.tools(x, e)
	if e.isolation == bySlot && e.Kind != Stdio {
		r.problems.Wrong(x.At("isolation"), "", "\"slot\" is for servers that are programs")
	}
	if e.isolation == bySlot { // a process for each call
		e.Instances, e.Calls = e.Calls*e.Instances, 1
	}
	if e.Private && e.Kind == Stdio {
		r.problems.Wrong(x.At("allow_private"), "leave it out", "a program is not reached by an address")
	}
}

// selector reads a list as one text or as an array.
func (r *reader) selector(x jsonfile.Fields, name string) selector.Selector {
	if !x.Has(name) {
		return selector.Selector{}
	}
	var list string
	var several []string
	if json.Unmarshal(x.Values[name], &list) != nil {
		if !x.Read(name, &several, "a list of selectors, as a string or an array") {
			return selector.Selector{}
		}
		for i, one := range several {
			if i > 0 {
				list += ","
			}
			list += one
		}
	}
	s, err := selector.Parse(list)
	if err != nil {
		r.problems.Wrong(x.At(name), "write a name, prefix*, /regex/ or hint:readOnly, with ! before what is not meant",
			"%v", err)
	}
	if groups := s.Groups(); len(groups) > 0 { // which are of the registry, and these names are a server's
		r.problems.Wrong(x.At(name), "write the tools' names, as the server has them",
			"tools of a server are in no group: group:%s", text.Cut(groups[0], 40))
	}
	return s
}

func (r *reader) connectTimeout(x jsonfile.Fields, e *Entry) {
	s, ok := x.Text("connect_timeout")
	if !ok {
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 10*time.Minute {
		r.problems.Wrong(x.At("connect_timeout"), `for example "30s"`, "it must be a time up to 10m, not %q", text.Cut(s, 40))
		return
	}
	e.connect = d
}

func (r *reader) retryErrors(x jsonfile.Fields, e *Entry) {
	s, ok := x.Text("retry_errors")
	if !ok {
		return
	}
	re, err := regexp.Compile(s)
	if err != nil {
		r.problems.Wrong(x.At("retry_errors"), "write it in the syntax of RE2", "it is no regular expression: %v", err)
		return
	}
	e.RetryErrors = re
}

// contextRule reads which keys of the run's context a server is told: "none", "pass-through" (all that are no secrets),
// {"allow-keys": […]} (secrets too), {"deny-keys": […]} (all others that are no secrets).
func (r *reader) contextRule(x jsonfile.Fields, e *Entry) {
	if !x.Has("context") {
		return
	}
	if raw := x.Values["context"]; raw[0] == '"' {
		if x.Choice("context", "none", "pass-through") == "pass-through" {
			e.Context = passOthers(nil)
		}
		return
	}
	c, ok := r.problems.Object(x.At("context"), x.Values["context"], "allow-keys", "deny-keys")
	if !ok {
		return
	}
	if c.Has("allow-keys") == c.Has("deny-keys") {
		r.problems.Wrong(c.Path, `for example {"allow-keys": ["user"]}`, "it has either \"allow-keys\" or \"deny-keys\"")
		return
	}
	allow, deny := c.Texts("allow-keys"), c.Texts("deny-keys")
	for _, key := range slices.Concat(allow, deny) {
		if !wire.ValidContextKey(key) {
			r.problems.Wrong(c.Path, "", "%q is no key of a run's context", text.Cut(key, 80))
		}
	}
	e.Context = passOthers(deny)
	if c.Has("allow-keys") {
		e.Context = func(of wire.Context) wire.Context {
			return of.Only(func(key string) bool { return slices.Contains(allow, key) })
		}
	}
}

func passNone(wire.Context) wire.Context { return wire.Context{} }

func passOthers(than []string) func(wire.Context) wire.Context {
	return func(c wire.Context) wire.Context {
		return c.Only(func(key string) bool { return !c.Secret(key) && !slices.Contains(than, key) })
	}
}

// tools reads what is said of single tools, by the names that their server has for them.
func (r *reader) tools(x jsonfile.Fields, e *Entry) {
	var all map[string]json.RawMessage
	if !x.Read("tools", &all, "an object of tools") {
		return
	}
	e.tools = map[string]settings{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := jsonfile.Under(x.At("tools"), name)
		f, ok := r.problems.Object(path, all[name], "title", "description", "tenants", "x-orchestration")
		if !ok {
			continue
		}
		var s settings
		s.title, _ = f.Text("title")
		s.description, _ = f.Text("description")
		s.tenants = f.Texts("tenants")
		s.orchestration = f.Values["x-orchestration"]
		e.tools[name] = s
		r.contract(f, s)
	}
}

// contract checks what the settings of a tool would make of one that has nothing of its own.
func (r *reader) contract(f jsonfile.Fields, s settings) {
	raw, err := json.Marshal(map[string]any{"name": "x", "inputSchema": map[string]string{"type": "object"},
		"tenants": s.tenants, "x-orchestration": s.orchestration})
	if err != nil {
		r.problems.Wrong(f.Path, "", "%v", err)
		return
	}
	def, err := tool.ParseDefinition(raw)
	for _, flaw := range tool.FlawsOf(err) {
		r.problems.Add(flaw.Code, f.Path+flaw.Path, flaw.Hint, "%s", flaw.Message)
	}
	if err == nil && def.Orchestration != nil && def.Orchestration.Batch != nil {
		r.problems.Wrong(f.At("x-orchestration"), "leave \"batch\" out", "a tool of an MCP server takes no batches")
	}
}
