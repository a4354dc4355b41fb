package servers

import (
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// reader makes a config of a file's content and notes all problems on the way.
type reader struct {
	dir      string
	lookup   func(string) (string, bool)
	config   *Config
	problems jsonfile.Problems
}

// read takes the forms of Claude Desktop and Claude Code ("mcpServers") and of VS Code ("servers"). What else stands
// beside these is of their own, and left alone.
func (r *reader) read(raw []byte) {
	raw = jsonfile.Uncommented(raw) // VS Code's may have comments
	if !r.problems.WellFormed(raw) {
		return
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || top == nil {
		r.problems.Wrong("", `write {"mcpServers": {"NAME": {"command": "…"}}}`, "it must be an object")
		return
	}
	name := "mcpServers"
	switch {
	case top["mcpServers"] != nil && top["servers"] != nil:
		r.problems.Wrong("/servers", "keep one of them", "\"mcpServers\" is there as well")
		return
	case top["servers"] != nil:
		name = "servers"
	}
	var servers map[string]json.RawMessage
	if json.Unmarshal(top[name], &servers) != nil || len(servers) == 0 {
		r.problems.Wrong("/"+name, `write {"mcpServers": {"NAME": {"command": "…"}}}`, "there are no MCP servers")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(servers)) {
		if e := r.entry(jsonfile.Under("/"+name, key), key, servers[key]); e != nil {
			r.config.Servers = append(r.config.Servers, e)
		}
	}
}

// What an entry may hold. Others are of the programs that the file is written for.
var (
	entryFields = []string{"type", "command", "args", "env", "cwd", "url", "headers", "x-stepjet"}
	otherFields = []string{"disabled", "autoApprove", "alwaysAllow", "timeout", "envFile", "dev", "gallery", "version",
		"description", "name", "trust", "tools", "oauth"}
)

// entry reads one server; nil where it is switched off or has problems.
func (r *reader) entry(path, name string, raw json.RawMessage) *Entry {
	before := len(r.problems)
	f, ok := r.problems.Object(path, raw, slices.Concat(entryFields, otherFields)...)
	if !ok {
		return nil
	}
	if f.Flag("disabled") {
		return nil
	}
	for _, key := range otherFields {
		if f.Has(key) {
			r.config.Warnings = append(r.config.Warnings, f.At(key)+": it has no meaning here")
		}
	}
	e := &Entry{Name: name}
	if !subjects.ValidTool(name + "_x") {
		r.problems.Wrong(path, "rename it: its tools are named NAME_TOOL", "%q can't begin the name of a tool",
			text.Cut(name, 80))
	}
	switch e.Kind = r.kind(f); e.Kind {
	case Stdio:
		r.program(f, e)
	case HTTP, SSE:
		r.address(f, e)
	}
	r.extension(f, e)
	if len(r.problems) > before {
		return nil
	}
	return e
}

// kind reads how a server is reached: by "type", or else by what is there.
func (r *reader) kind(f jsonfile.Fields) Kind {
	switch {
	case f.Has("command") == f.Has("url"):
		r.problems.Wrong(f.Path, "\"command\" starts a program, \"url\" names a server",
			"an MCP server has either \"command\" or \"url\"")
		return ""
	case !f.Has("type") && f.Has("command"):
		return Stdio
	case !f.Has("type"):
		return HTTP
	}
	switch t := f.Choice("type", "stdio", "http", "sse", "streamable-http", "streamableHttp"); {
	case (t == "stdio") != f.Has("command"):
		r.problems.Wrong(f.At("type"), "leave it out", "\"type\" is %q, which goes with another field than the one there", t)
		return ""
	case t == "stdio":
		return Stdio
	case t == "sse":
		r.config.Warnings = append(r.config.Warnings, f.At("type")+
			": the transport sse is of the past, and a connection that breaks loses its calls; use the server's http address if it has one")
		return SSE
	}
	return HTTP
}

// program reads what starts a stdio server.
func (r *reader) program(f jsonfile.Fields, e *Entry) {
	e.Command = r.text(f, "command")
	if e.Command == "" {
		r.problems.Wrong(f.At("command"), "", "it names no program")
	}
	for i, arg := range f.Texts("args") {
		e.Args = append(e.Args, r.expand(jsonfile.Under(f.At("args"), itoa(i)), arg))
	}
	e.Dir = r.dir
	if cwd := r.text(f, "cwd"); filepath.IsAbs(cwd) {
		e.Dir = cwd
	} else if cwd != "" {
		e.Dir = filepath.Join(r.dir, cwd)
	}
	e.Env = hosted.Inherited(r.lookup)
	if home, ok := r.lookup("HOME"); ok {
		e.Env = append(e.Env, "HOME="+home)
	}
	values := f.TextMap("env")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := jsonfile.Under(f.At("env"), name)
		if name == "" || strings.ContainsAny(name, "=\x00") {
			r.problems.Wrong(at, "", "%q names no variable", name)
			continue
		}
		e.Env = append(e.Env, name+"="+r.expand(at, values[name]))
	}
	for _, name := range []string{"url", "headers"} {
		if f.Has(name) {
			r.problems.Wrong(f.At(name), "", "it goes with \"url\", and this server is a program")
		}
	}
}

// address reads where an http or sse server is.
func (r *reader) address(f jsonfile.Fields, e *Entry) {
	for _, name := range []string{"args", "env", "cwd"} {
		if f.Has(name) {
			r.problems.Wrong(f.At(name), "", "it goes with \"command\", and this server has a \"url\"")
		}
	}
	r.headers(f, e)
	raw := r.text(f, "url")
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return // noted, or empty by a variable, which is noted too
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		r.problems.Wrong(f.At("url"), "for example https://mcp.example.com/mcp", "it is no address of an http server")
		return
	case u.User != nil:
		r.problems.Wrong(f.At("url"), "send them in a header, from the environment: ${NAME}",
			"credentials don't belong into the url")
	}
	e.URL = u
}

// guarded says so where an address that is not public is written down and not allowed; of a name it shows when it is
// connected to.
func (r *reader) guarded(f jsonfile.Fields, e *Entry) {
	if e.URL == nil || e.Private {
		return
	}
	a, err := netip.ParseAddr(e.URL.Hostname())
	if err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()) || e.URL.Hostname() == "localhost" {
		r.problems.Wrong(f.At("url"), `allow it: "x-stepjet": {"allow_private": true}`, "%s is not a public address",
			e.URL.Hostname())
	}
}
