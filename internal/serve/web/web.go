// Package web is the command "stepjet ui": the page, on an address.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/serve/files"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/internal/version"
)

// DefaultListen is where the page is served unless another address is named.
const DefaultListen = "127.0.0.1:4280"

// Surroundings are what the command gets from the program that it is part of.
type Surroundings struct {
	// Connect opens the connection that is read with, or one as another user of a file of tenants; end closes it.
	Connect func(ctx context.Context, as files.Tenant) (nc *nats.Conn, end func(), err error)
	// Open opens the client of a tenant, as the user of a file of tenants; end closes it.
	Open func(ctx context.Context, tenant string, as files.Tenant) (c *client.Client, end func(), err error)
	// Logger takes what happens, Say tells a person something, Work wraps what the command does.
	Logger func() *slog.Logger
	Say    func(format string, args ...any)
	Work   func(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error
}

type flags struct {
	listen, auth, tenants string
	hosts                 []string
}

// Command returns the command.
func Command(s Surroundings) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows runs, tools and dead letters in a browser",
		Long: `Serves a page: what runs there are and which need attention, what became of each step and what it
waits for, what tools are wanted, which calls used up their attempts. Any number of it may run.

It reads the runs of all tenants, as the role observer ("stepjet acl observer"). On loopback everybody
who can open it may do everything; elsewhere it asks who calls:

--auth token=FILE: {"tokens": [{"sha256", "name", "role", "tenants", "expires"}]}, role viewer, operator
  or approver (several with commas), tenants ["*"] for all. Make one: openssl rand -hex 32;
  its SHA-256: printf %s TOKEN | sha256sum
--auth proxy=FILE: {"sha256"} of a secret that a proxy shows in X-Stepjet-Secret, which says who calls in
  X-Stepjet-User, X-Stepjet-Role and X-Stepjet-Tenants, and takes these headers out of what it is sent.
--tenants FILE: {"acme": {"nkey": "agent-acme.nk", "inbox_prefix": "_INBOX.agent-acme"}}, or "creds": what
  runs of each tenant are submitted, cancelled and tried again with, and "approver_nkey" with
  "approver_inbox_prefix", or "approver" for credentials, of who approves; under "*",
  an operator of the cluster, who overrides tools; the command's own user otherwise.`,
		Example: `  stepjet ui
  stepjet ui --server nats://host --listen :4280 --host stepjet.example.com --auth token=tokens.json`,
		Args: cobra.NoArgs,
		RunE: s.Work(func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), s, f) }),
	}
	p := c.Flags()
	p.SortFlags = false
	p.StringVar(&f.listen, "listen", DefaultListen, "`address` to serve on; port 0 picks a free one")
	p.StringVar(&f.auth, "auth", "", "`token=FILE|proxy=FILE`: who may see and do what; needed elsewhere than on loopback")
	p.StringArrayVar(&f.hosts, "host", nil,
		"`name` that browsers open the page by, besides those of loopback; may be repeated")
	p.StringVar(&f.tenants, "tenants", "", "`file` of the users that act for tenants")
	return c
}

// gcPercent has the collector run often: nearly all that the process holds is its index, which changes little, and what
// it reads to make one is soon of no use.
const gcPercent = 20

// serve serves the page until ctx ends.
func serve(ctx context.Context, s Surroundings, f flags) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	cfg := ui.Config{Hosts: f.hosts, Version: version.String(), Logger: s.Logger()}
	var err error
	if cfg.Auth, err = readAuth(f.auth); err != nil {
		return err
	}
	users, err := files.Tenants(f.tenants)
	if err != nil {
		return err
	}
	if f.tenants != "" {
		as := func(user func(files.Tenant) files.Tenant) func(context.Context, string) (*client.Client, func(), error) {
			return func(ctx context.Context, tenant string) (*client.Client, func(), error) {
				of, there := users[tenant]
				if !there {
					return nil, nil, files.NoTenant(tenant)
				}
				return s.Open(ctx, tenant, user(of))
			}
		}
		cfg.Actor = as(func(t files.Tenant) files.Tenant { return t })
		cfg.Approver = as(files.Tenant.Approving)
		cfg.Operator = func(ctx context.Context) (*nats.Conn, func(), error) {
			of, there := users[everyTenant]
			if !there {
				return nil, nil, fault.New(fault.Permission, "nobody overrides tools from here").
					WithHint(`an operator of the cluster stands under "*" in the file of --tenants`)
			}
			return s.Connect(ctx, of)
		}
	}
	nc, end, err := s.Connect(ctx, files.Tenant{})
	if err != nil {
		return err
	}
	defer end()
	cfg.Conn = nc
	server, err := ui.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	l, err := server.Listen(ctx, f.listen)
	if err != nil {
		return err
	}
	s.Say("the page is on http://%s", l.Addr())
	return server.Serve(ctx, l)
}

// everyTenant names, in the file of tenants, who does what counts for all of them.
const everyTenant = "*"

// readAuth reads the file that --auth names.
func readAuth(flag string) (auth *ui.Auth, err error) {
	if flag == "" {
		return nil, nil
	}
	kind, name, _ := strings.Cut(flag, "=")
	parse := map[string]func([]byte) (*ui.Auth, error){"token": ui.ParseTokens, "proxy": ui.ParseProxy}[kind]
	if parse == nil || name == "" {
		return nil, fault.New(fault.InvalidConfig, "--auth %q", flag).WithHint("token=FILE or proxy=FILE")
	}
	err = files.Read("--auth", name, func(b []byte) (err error) {
		auth, err = parse(b)
		return err
	})
	return auth, err
}

// Start serves the page on a loopback address, for everybody who reaches that, until end is called. Where the default
// address is taken it takes another one.
func Start(ctx context.Context, nc *nats.Conn, listen string, log *slog.Logger) (url string, end func(), err error) {
	server, err := ui.New(ctx, ui.Config{Conn: nc, Version: version.String(), Logger: log})
	if err != nil {
		return "", nil, err
	}
	l, err := server.Listen(ctx, listen)
	var taken *net.OpError
	if errors.As(err, &taken) && listen == DefaultListen {
		l, err = server.Listen(ctx, "127.0.0.1:0")
	}
	if err != nil {
		server.Close()
		return "", nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- server.Serve(life, l) }()
	return "http://" + l.Addr().String(), func() {
		stop()
		if err := <-served; err != nil {
			log.Error("the page", "error", err)
		}
		server.Close()
	}, nil
}
