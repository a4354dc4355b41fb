// Package mcp is the command "stepjet mcp": Stepjet as a server of the Model Context Protocol, on standard input and
// output or on an address. It is apart from the other commands for the size of the SDK.
package mcp

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/serve/files"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/mcp/server"
)

// Surroundings are what the command gets from the program that it is part of.
type Surroundings struct {
	Stdin  io.Reader
	Stdout io.Writer
	// Open opens the client of a tenant, as the user of a file of tenants or, where that names none, of the command line;
	// end closes it.
	Open func(ctx context.Context, tenant string, as files.Tenant) (c *client.Client, end func(), err error)
	// Tenant is that of callers who show no token; Logger takes what happens, Say tells a person something.
	Tenant func() string
	Logger func() *slog.Logger
	Say    func(format string, args ...any)
	// Work wraps what the command does, as all commands' work is.
	Work func(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error
	// Arguments repeats the flags of the command line that lead to the same place, and their values.
	Arguments func() []string
	// Quote makes a word fit for a shell.
	Quote func(string) string
}

type flags struct {
	listen, auth, tenants, keys, expose             string
	origins, context, contextClaims, contextHeaders []string
	taskAfter, hold, retention                      time.Duration
	maxResult                                       string
}

// Command returns the command.
func Command(s Surroundings) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve plans and tools to clients of the Model Context Protocol",
		Long: `Serves execute_tool_plan, search_tools, get_plan_result and cancel_plan to any client of the Model
Context Protocol, and the registered tools that --expose selects. A call is a run: it outlives this
process, and a client that knows tasks polls for it anywhere.

Without --listen it speaks on standard input and output, as a client's configuration starts it
("stepjet mcp install"). With --listen it serves Streamable HTTP, to clients with sessions and without.

--auth FILE: {"tokens": [{"sha256", "tenant", "name", "scopes", "expires"}],
              "oauth": {"issuer", "audience", "tenant_claim", "resource"}}
  scopes: plans:run, plans:read, approvals:decide. Without it, HTTP is on loopback addresses alone.
--tenants FILE: {"acme": {"creds": "agent.creds", "approver": "approver.creds"}}: what each tenant's
  runs are submitted with, and what approvals are given with (stepjet acl agent, stepjet acl approver).
--key-file FILE: keys that sign handles of tasks, one a line in base64; the first one signs.
--expose: name, prefix*, /regex/, hint:readOnly, with ! before what is not meant; commas between.`,
		Example: `  stepjet mcp
  stepjet mcp --expose 'web_*,!web_delete' --listen 127.0.0.1:8787
  stepjet mcp --listen :8787 --auth auth.json --tenants tenants.json --key-file keys
  stepjet mcp install claude-desktop`,
		Args: cobra.NoArgs,
		RunE: s.Work(func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), s, f) }),
	}
	p := c.Flags()
	p.SortFlags = false
	p.StringVar(&f.listen, "listen", "", "serve HTTP on this `address`; default: standard input and output")
	p.StringVar(&f.auth, "auth", "", "`file` that says whose tokens are taken")
	p.StringVar(&f.tenants, "tenants", "", "`file` of the tenants' NATS credentials")
	p.StringVar(&f.keys, "key-file", "", "`file` of keys that sign what clients keep")
	p.StringArrayVar(&f.origins, "allow-origin", nil, "let web pages of this `origin` call; may be repeated")
	p.StringVar(&f.expose, "expose", "", "registered tools to offer as tools of their own: a `selector`")
	p.DurationVar(&f.taskAfter, "task-after", server.DefaultTaskAfter,
		"answer with a task after this `duration`, where the client knows tasks")
	p.DurationVar(&f.hold, "hold", server.DefaultHold, "wait for a result for this `duration`, where it does not")
	p.StringVar(&f.maxResult, "max-result", "48KiB", "replace the largest values of a result over this `size` by links")
	p.StringSliceVar(&f.context, "context", nil, "`keys` of _meta that become out-of-band context")
	p.StringArrayVar(&f.contextClaims, "context-claim", nil,
		"a token's claim that becomes context: `claim=key`; may be repeated")
	p.StringArrayVar(&f.contextHeaders, "context-header", nil,
		"a header that becomes context: `Header=key[:secret]`; may be repeated")
	p.DurationVar(&f.retention, "retention", server.DefaultRetention,
		"how long finished runs are kept: that of the orchestrators")
	c.AddCommand(installCommand(s))
	return c
}

// serve runs the server until ctx ends or, on standard input, the client closes it.
func serve(ctx context.Context, s Surroundings, f flags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	creds, err := files.Tenants(f.tenants)
	if err != nil {
		return err
	}
	open := &opener{s: s, creds: creds, strict: f.tenants != ""}
	defer open.close()
	cfg.Approver = open.approver
	cfg.Client, cfg.Tenant, cfg.Logger, cfg.Version = open.client, s.Tenant(), s.Logger(), version.String()
	srv, err := server.New(cfg)
	if err != nil {
		return err
	}
	defer srv.Close()
	if f.listen == "" {
		return srv.Serve(ctx, io.NopCloser(s.Stdin), unclosed{s.Stdout})
	}
	l, err := srv.Listen(ctx, f.listen)
	if err != nil {
		return err
	}
	s.Say("serving the Model Context Protocol on http://%s%s", l.Addr(), server.Path)
	return srv.ServeHTTP(ctx, l)
}

// unclosed is a writer that stays open when the client is gone.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// opener opens clients of tenants and closes them at the end.
type opener struct {
	s      Surroundings
	creds  map[string]files.Tenant
	strict bool // only tenants with credentials are served

	mu   sync.Mutex
	ends []func()
}

func (o *opener) client(ctx context.Context, tenant string) (*client.Client, error) {
	entry, there := o.creds[tenant]
	if o.strict && !there {
		return nil, files.NoTenant(tenant)
	}
	return o.open(ctx, tenant, entry)
}

// approver opens the client that approves for a tenant: another than the one of its plans where the file says so.
func (o *opener) approver(ctx context.Context, tenant string) (*client.Client, error) {
	entry := o.creds[tenant]
	if entry.Approving() == entry {
		return o.client(ctx, tenant)
	}
	return o.open(ctx, tenant, entry.Approving())
}

func (o *opener) open(ctx context.Context, tenant string, as files.Tenant) (*client.Client, error) {
	c, end, err := o.s.Open(ctx, tenant, as)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends = append(o.ends, end)
	return c, nil
}

func (o *opener) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, end := range o.ends {
		end()
	}
}
