package cli

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/serve"
	"github.com/stepjet/stepjet/internal/serve/files"
	"github.com/stepjet/stepjet/internal/serve/mcp"
	"github.com/stepjet/stepjet/internal/serve/web"
)

// mcpCommand serves the Model Context Protocol, as any other command reaches Stepjet: on a server that was named, with a
// Stepjet that runs here, or with one of its own. Beneath it are the commands about tools of MCP servers.
func mcpCommand(a *app) *cobra.Command {
	c := mcp.Command(mcp.Surroundings{
		Stdin: a.env.Stdin, Stdout: a.stdout, Work: a.work, Say: a.say, Logger: a.log,
		Tenant:    func() string { return a.flags.tenant },
		Arguments: func() []string { return argumentsOf(a) }, Quote: quote,
		Open: tenants(a),
	})
	c.AddCommand(pinCommands(a)...)
	return c
}

// as returns what a command is run with, as another user where one is named.
func as(a *app, user files.Tenant) *app {
	of := *a
	if user.Creds != "" || user.NKey != "" {
		of.flags.Creds, of.flags.NKey = user.Creds, user.NKey
	}
	if user.Inbox != "" {
		of.flags.InboxPrefix = user.Inbox
	}
	return &of
}

// tenants opens clients of tenants for what serves several.
func tenants(a *app) func(ctx context.Context, tenant string, as files.Tenant) (*client.Client, func(), error) {
	return func(ctx context.Context, tenant string, user files.Tenant) (*client.Client, func(), error) {
		of := as(a, user)
		of.flags.tenant = tenant
		s, err := of.open(ctx, place{start: always})
		if err != nil {
			return nil, nil, err
		}
		return s.client, s.close, nil
	}
}

// uiCommand serves the page, as any other command reaches Stepjet.
func uiCommand(a *app) *cobra.Command {
	return web.Command(web.Surroundings{
		Work: a.work, Say: a.say, Logger: a.log, Open: tenants(a),
		Connect: func(ctx context.Context, user files.Tenant) (*nats.Conn, func(), error) {
			s, err := as(a, user).open(ctx, place{start: always, bare: true})
			if err != nil {
				return nil, nil, err
			}
			return s.nc, s.close, nil
		},
	})
}

func (a *app) orchestratorCommand() *cobra.Command {
	return a.serving("orchestrator", serve.Orchestrator)
}

func (a *app) workerCommand() *cobra.Command { return a.serving("worker", serve.Worker) }

// serving makes a command of a program that serves. It is that program: with its own flags, signals, log and exit
// codes, and with none of the flags that the other commands have.
func (a *app) serving(name string, program func(program string) *cobra.Command) *cobra.Command {
	own := program("stepjet " + name)
	own.SetIn(a.env.Stdin)
	own.SetOut(a.stdout)
	own.SetErr(a.stderr)
	c := &cobra.Command{
		Use: name, Short: own.Short, Long: own.Long, Example: own.Example, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			own.SetArgs(args)
			if code := daemon.Execute(own); code != daemon.ExitOK {
				return &failure{quietly(code)}
			}
			return nil
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) {
		own.InitDefaultHelpFlag()
		own.InitDefaultVersionFlag()
		_ = own.Help() // it can't fail
	})
	return c
}
