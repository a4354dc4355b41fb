package serve

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/worker"
)

// workerSettings are those that have an environment variable beside their flag.
var workerSettings = []config.Setting{
	{Flag: "name", Env: "STEPJET_NAME"},
	{Flag: "tools", Env: "STEPJET_TOOLS"},
	{Flag: "slots", Env: "STEPJET_SLOTS"},
	{Flag: "drain-timeout", Env: "STEPJET_DRAIN_TIMEOUT"},
	{Flag: "health", Env: "STEPJET_HEALTH"},
	config.SecretsKeySetting,
}

// toolworker is what flags and environment say.
type toolworker struct {
	nats          config.NATS
	logging       config.Logging
	worker        worker.Config
	secrets       config.SecretsKey
	tools, health string
}

// Worker returns the command that hosts tools until a signal ends it. program is what a user types to start it:
// "toolworker", "stepjet worker".
func Worker(program string) *cobra.Command {
	t := &toolworker{}
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
	fs := cmd.Flags()
	t.nats.Flags(fs)
	t.nats.WaitFlag(fs)
	t.logging.Flags(fs)
	t.secrets.Flag(fs)
	fs.StringVar(&t.worker.Name, "name", "",
		"name in logs and records (env STEPJET_NAME; default: the host's and a random part)")
	fs.StringVar(&t.tools, "tools", "", "tools file (env STEPJET_TOOLS; default: the built-in tools)")
	fs.IntVar(&t.worker.Slots, "slots", worker.DefaultSlots, "most executions of each tool at a time (env STEPJET_SLOTS)")
	fs.DurationVar(&t.worker.DrainTimeout, "drain-timeout", worker.DefaultDrainTimeout,
		"how long a stop waits for executions (env STEPJET_DRAIN_TIMEOUT)")
	fs.StringVar(&t.health, "health", "", "address of /healthz and /readyz (env STEPJET_HEALTH; default: none)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := t.nats.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := t.logging.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := config.FromEnvironment(fs, nil, workerSettings...); err != nil {
			return err
		}
		return t.run(cmd)
	}
	return cmd
}

// run hosts the tools until the command's context ends. Everything that can be wrong without a server is found first.
func (t *toolworker) run(cmd *cobra.Command) error {
	log := daemon.Logger(cmd.ErrOrStderr(), t.logging.Format, t.logging.Level)
	if t.worker.Slots < 1 { // the zero of worker.Config means its default
		return fault.New(fault.InvalidConfig, "--slots is %d", t.worker.Slots).
			WithHint("a worker has at least one slot for each tool")
	}
	file := hosted.Builtin()
	if t.tools != "" {
		var err error
		if file, err = hosted.Load(t.tools); err != nil {
			return err
		}
	}
	defer file.Close()
	for _, warning := range file.Warnings() {
		log.Warn(warning, "file", t.tools)
	}
	keys, err := t.secrets.Load()
	if err != nil {
		return err
	}
	t.worker.SecretsKey = keys
	t.worker.Logger = log
	s := daemon.NewRemote(
		func(ctx context.Context) (*nats.Conn, error) {
			return kv.Connect(ctx, t.nats.Options("stepjet toolworker", log))
		},
		func(nc *nats.Conn) (daemon.Service, error) {
			w, err := worker.New(nc, t.worker)
			if err != nil {
				return nil, err
			}
			return w, file.Register(w)
		})
	return daemon.Run(cmd.Context(), daemon.Options{Name: "toolworker", Health: t.health, Check: s.Check, Logger: log}, s)
}
