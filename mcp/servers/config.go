package servers

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/wire"
)

// MaxFile is the largest file of MCP servers, in bytes.
const MaxFile = 1 << 20

// Defaults of x-stepjet.
const (
	defaultCalls   = 16
	defaultConnect = 30 * time.Second
)

// Config is a file of MCP servers, read and checked.
type Config struct {
	Servers  []*Entry // sorted by name
	Warnings []string
}

// Entry is one server of the file.
type Entry struct {
	Name string
	Kind Kind

	// of stdio
	Command string
	Args    []string
	Env     []string
	Dir     string

	// of http and sse
	URL     *url.URL
	headers []header

	include   selector.Selector
	exclude   *selector.Selector // nil: none
	tools     map[string]settings
	isolation isolation
	connect   time.Duration

	// Calls may be under way at a time in each of so many Instances.
	Calls, Instances int
	// Context returns what of a run's context goes into _meta.
	Context func(wire.Context) wire.Context
	// RetryErrors fits what a tool says of an error that is worth another attempt; nil: none is.
	RetryErrors *regexp.Regexp
	// Private allows an address that is not public.
	Private bool
}

// Lazy reports whether nothing can be asked of the server but on behalf of a run, whose credentials it wants.
func (e *Entry) Lazy() bool {
	for _, h := range e.headers {
		if h.personal() {
			return true
		}
	}
	return false
}

// Kind is how a server is reached.
type Kind string

// The kinds.
const (
	Stdio Kind = "stdio"
	HTTP  Kind = "http"
	SSE   Kind = "sse"
)

// isolation says which calls share a process or connection.
type isolation string

const (
	shared   isolation = "shared" // all
	bySlot   isolation = "slot"   // none at a time
	byTenant isolation = "tenant" // those of one tenant
)

// settings are what the file says of one tool, over what its server says.
type settings struct {
	title, description string
	tenants            []string
	orchestration      json.RawMessage
}

// Load reads a file of MCP servers. The error has code invalid_config and names the file and everything that is wrong
// with it.
func Load(path string, lookup func(string) (string, bool)) (*Config, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > MaxFile {
		err = fault.New(fault.InvalidConfig, "it has %d bytes, at most %d are allowed", info.Size(), MaxFile)
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the file of MCP servers")
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the file of MCP servers")
	}
	c, err := parse(raw, dir, lookup)
	var problems jsonfile.Problems
	if errors.As(err, &problems) {
		return nil, &fault.Error{
			Code:    fault.InvalidConfig,
			Message: "the file of MCP servers " + path + " is not valid:\n" + problems.Error(), Cause: problems,
		}
	}
	return c, err
}

// parse reads the content of a file; relative folders start at dir. The error is jsonfile.Problems.
func parse(raw []byte, dir string, lookup func(string) (string, bool)) (*Config, error) {
	r := &reader{dir: dir, lookup: lookup, config: &Config{}}
	r.read(raw)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return r.config, nil
}

// Allowed checks that every program which the file starts is one of a list; an empty list allows all.
func (c *Config) Allowed(commands []string) error {
	var problems jsonfile.Problems
	for _, e := range c.Servers {
		if e.Kind == Stdio && len(commands) > 0 && !contains(commands, e.Command) {
			problems.Wrong(jsonfile.Under("/mcpServers", e.Name), "allow it: --mcp-allow "+e.Command,
				"the command %q is not one of those that may be started", e.Command)
		}
	}
	if len(problems) > 0 {
		return &fault.Error{Code: fault.InvalidConfig, Message: problems.Error(), Cause: problems}
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// TenantKey returns what of a tenant tells its processes from those of others.
func (e *Entry) TenantKey(tenant string) string {
	if e.isolation == byTenant {
		return tenant
	}
	return ""
}

// ConnectWithin bounds the time in which a connection has to be made.
func (e *Entry) ConnectWithin(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.connect,
		fault.New(fault.ToolFailed, "the MCP server %s did not answer within %s", e.Name, e.connect).
			WithHint("connect_timeout of its x-stepjet is the limit"))
}
