package serve

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/serve/bridging"
	"github.com/stepjet/stepjet/internal/serve/hosting"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/worker"
)

// Worker returns the command that hosts tools until a signal ends it. program is what a user types to start it:
// "toolworker", "stepjet worker".
func Worker(program string) *cobra.Command {
	p, servers := &hosting.Program{Name: "toolworker"}, &bridging.Settings{}
	cmd := &cobra.Command{
		Use:         "toolworker",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:       "Host tools: the built-in ones, those of a file, those of MCP servers",
		Long: `Hosts tools: takes their steps from JetStream, executes them, and records what came of it.

Without --tools and --mcp it hosts the built-in tools: arithmetic, text and JSON. A tools file adds programs to execute
and HTTP requests to send; deploy/tools.json is an example. --mcp hosts the tools of MCP servers, in the form of Claude,
Cursor and VS Code; docs/mcp.md says how.

Start as many as you like. On SIGTERM or SIGINT a worker takes no more steps and finishes those it has.

Exit codes: 0 ok, 1 failed, 2 wrong flags, environment, tools file or file of MCP servers, 4 no connection.`,
		Example: "  " + program + ` --url nats://127.0.0.1:4222
  ` + program + ` --context prod --tools tools.json --slots 16 --health :8082
  ` + program + ` --mcp .mcp.json --trust-first-use`,
		Args:    cobra.NoArgs,
		Version: version.String(),
	}
	p.Flags(cmd.Flags(), hosting.Words{
		Flag: "tools", Env: "STEPJET_TOOLS", File: "tools file (env STEPJET_TOOLS; default: the built-in tools)",
		Slots: "executions of each tool", Calls: "executions",
	})
	servers.Flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return hostTools(cmd, p, servers) }
	return cmd
}

// hostTools hosts the tools until the command's context ends. Everything that can be wrong without a server of NATS is
// found first.
func hostTools(cmd *cobra.Command, p *hosting.Program, servers *bridging.Settings) error {
	log, err := p.FromEnvironment(cmd)
	if err == nil {
		err = servers.FromEnvironment(cmd.Flags(), nil)
	}
	if err != nil {
		return err
	}
	file, err := toolsOf(p, servers)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, warning := range file.Warnings() {
		log.Warn(warning, "file", p.File)
	}
	register := file.Register
	if servers.File != "" {
		servers.Logger = log
		b, err := bridge.Open(cmd.Context(), servers.Options)
		if err != nil {
			return err
		}
		defer b.Close()
		register = func(w *worker.Worker) error { return errors.Join(file.Register(w), b.Register(w)) }
	}
	return p.Run(cmd, log, func(_ *nats.Conn, w *worker.Worker) (daemon.Service, error) { return w, register(w) })
}

// toolsOf returns the tools file, and without one the built-in tools, unless tools of MCP servers were asked for.
func toolsOf(p *hosting.Program, servers *bridging.Settings) (*hosted.File, error) {
	switch {
	case p.File != "":
		return hosted.Load(p.File)
	case servers.File != "":
		return &hosted.File{}, nil
	}
	return hosted.Builtin(), nil
}
