package serve

import (
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/serve/hosting"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/worker"
)

// Worker returns the command that hosts tools until a signal ends it. program is what a user types to start it:
// "toolworker", "stepjet worker".
func Worker(program string) *cobra.Command {
	p := &hosting.Program{Name: "toolworker"}
	cmd := &cobra.Command{
		Use:         "toolworker",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:       "Hosts tools: the built-in ones, or those of a file",
		Long: `Hosts tools: takes their steps from JetStream, executes them, and records what came of it.

Without --tools it hosts the built-in tools: arithmetic, text and JSON. A tools file adds programs to execute and HTTP
requests to send; deploy/tools.json is an example.

Start as many as you like. On SIGTERM or SIGINT a worker takes no more steps and finishes those it has.

Exit codes: 0 ok, 1 failed, 2 wrong flags, environment or tools file, 4 no connection.`,
		Example: "  " + program + ` --url nats://127.0.0.1:4222
  ` + program + ` --context prod --tools tools.json --slots 16 --health :8082`,
		Args:    cobra.NoArgs,
		Version: version.String(),
	}
	p.Flags(cmd.Flags(), hosting.Words{
		Flag: "tools", Env: "STEPJET_TOOLS", File: "tools file (env STEPJET_TOOLS; default: the built-in tools)",
		Slots: "executions of each tool", Calls: "executions",
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return hostTools(cmd, p) }
	return cmd
}

// hostTools hosts the tools until the command's context ends. Everything that can be wrong without a server is found
// first.
func hostTools(cmd *cobra.Command, p *hosting.Program) error {
	log, err := p.FromEnvironment(cmd)
	if err != nil {
		return err
	}
	file := hosted.Builtin()
	if p.File != "" {
		if file, err = hosted.Load(p.File); err != nil {
			return err
		}
	}
	defer file.Close()
	for _, warning := range file.Warnings() {
		log.Warn(warning, "file", p.File)
	}
	return p.Run(cmd, log, func(_ *nats.Conn, w *worker.Worker) (daemon.Service, error) { return w, file.Register(w) })
}
