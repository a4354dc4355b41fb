package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/tool"
)

// The defaults of Config.
const (
	DefaultTaskAfter = 2 * time.Second
	DefaultHold      = 45 * time.Second // clients give up after 60 s
	DefaultMaxResult = 48 << 10         // about 12,000 tokens
	DefaultRetention = 7 * 24 * time.Hour
)

// quietest is the longest that a client which wants progress hears nothing.
const quietest = 15 * time.Second

// sessionFor is how long a session of a client older than 2026-07-28 is kept that says nothing.
const sessionFor = 30 * time.Minute

// submitWithin bounds the wait for the acknowledgement of a plan.
const submitWithin = 10 * time.Second

// Config is what a server needs. All but Client may be left at zero.
type Config struct {
	// Client opens the client of a tenant; the server closes none. It is called once for each tenant that comes, and
	// again after an error.
	Client func(ctx context.Context, tenant string) (*client.Client, error)
	// Approver opens the client that gives and refuses approvals for a tenant, where the one of Client may not; nil: that
	// one does.
	Approver func(ctx context.Context, tenant string) (*client.Client, error)
	// Tenant is that of callers who show no token; empty: "default".
	Tenant string
	// Expose are the registered tools that are offered as tools of their own, besides those that are always there;
	// nil: none.
	Expose *selector.Selector
	// TaskAfter is how long a call waits for its result before it answers with a task, where the client knows tasks;
	// 0: DefaultTaskAfter.
	TaskAfter time.Duration
	// Hold is how long a call waits for its result otherwise; 0: DefaultHold.
	Hold time.Duration
	// MaxResult is the most that a result may be before its largest values are replaced by links, in bytes; 0:
	// DefaultMaxResult.
	MaxResult int
	// Keys sign what clients keep. Without them handles of tasks are not signed, and what a call has asked its client is
	// void after a restart: so they are needed where callers show tokens, and where there are several servers.
	Keys task.Keys
	// Context says what of a call becomes out-of-band context of its run.
	Context ContextRules
	// Auth says who may call over HTTP; nil: everybody, as Tenant, with all scopes.
	Auth *Auth
	// Origins are those of web pages that may call, besides the server's own: "https://app.example.com".
	Origins []string
	// Retention is how long finished runs are kept; 0: DefaultRetention, as in orchestrators.
	Retention time.Duration
	// Version is the server's own, which clients show.
	Version string
	// Logger takes what happens unasked; nil: nothing is logged.
	Logger *slog.Logger

	quiet      time.Duration // the longest without progress; 0: quietest
	sessionFor time.Duration // 0: sessionFor
	submit     time.Duration // 0: submitWithin
}

func (c *Config) defaults() {
	if c.TaskAfter == 0 {
		c.TaskAfter = DefaultTaskAfter
	}
	if c.Hold == 0 {
		c.Hold = DefaultHold
	}
	if c.MaxResult == 0 {
		c.MaxResult = DefaultMaxResult
	}
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.quiet == 0 {
		c.quiet = quietest
	}
	if c.sessionFor == 0 {
		c.sessionFor = sessionFor
	}
	if c.submit == 0 {
		c.submit = submitWithin
	}
	if c.Tenant == "" {
		c.Tenant = "default"
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	switch {
	case c.Client == nil:
		return fault.New(fault.InvalidConfig, "there is no way to open a client")
	case c.TaskAfter < 0 || c.Hold < time.Second || c.MaxResult < 1<<10 || c.Retention < time.Second:
		return fault.New(fault.InvalidConfig, "task-after %v, hold %v, max-result %d bytes, retention %v", c.TaskAfter, c.Hold, c.MaxResult, c.Retention).
			WithHint("task-after 0s or more, hold and retention 1s or more, max-result 1024 or more")
	case c.Auth != nil && len(c.Keys) == 0:
		return fault.New(fault.InvalidConfig, "callers show tokens, and there is no key to sign what they keep").
			WithHint("--key-file FILE; make a key: openssl rand -base64 32 > FILE")
	}
	return c.Context.validate()
}

// local is who calls without a token.
func (c *Config) local() Principal { return Principal{Tenant: c.Tenant, Scopes: Scopes()} }

// exposes reports whether a tool of some groups is offered as one of its own.
func (c *Config) exposes(d *tool.Definition, groups []string) bool {
	return c.Expose != nil && c.Expose.Picks(selector.Tool{Name: d.Name, Groups: groups, Annotations: d.Annotations})
}
