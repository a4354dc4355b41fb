// Package models holds the program that hosts language models as tools, as a command. It is apart from the other
// programs, so that the SDKs of the providers are in no program that asks none.
package models

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/worker"
)

// settings are those that have an environment variable beside their flag.
var settings = []config.Setting{
	{Flag: "name", Env: "STEPJET_NAME"},
	{Flag: "models", Env: "STEPJET_MODELS"},
	{Flag: "slots", Env: "STEPJET_SLOTS"},
	{Flag: "drain-timeout", Env: "STEPJET_DRAIN_TIMEOUT"},
	{Flag: "health", Env: "STEPJET_HEALTH"},
	config.SecretsKeySetting,
}

// modelworker is what flags and environment say.
type modelworker struct {
	nats           config.NATS
	logging        config.Logging
	worker         worker.Config
	secrets        config.SecretsKey
	models, health string
}

// Worker returns the command that hosts models until a signal ends it. program is what a user types to start it:
// "modelworker", "stepjet modelworker".
func Worker(program string) *cobra.Command {
	m := &modelworker{}
	cmd := &cobra.Command{
		Use:         "modelworker",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:       "Hosts language models as tools",
		Long: `Hosts language models as tools: takes their steps from JetStream, asks the model, and records the answer.

A models file says which models there are, where, and which variable holds the key; docs/models.md describes it.
Every endpoint of OpenAI's or Anthropic's form can be asked: vLLM, Ollama, llama.cpp and gateways among them.

Start as many as you like. On SIGTERM or SIGINT a worker takes no more steps and finishes those it has.

Exit codes: 0 ok, 1 failed, 2 wrong flags, environment or models file, 4 no connection.`,
		Example: "  " + program + ` --models models.json --url nats://127.0.0.1:4222
  ` + program + ` --context prod --models models.json --health :8083`,
		Args:    cobra.NoArgs,
		Version: version.String(),
	}
	fs := cmd.Flags()
	m.nats.Flags(fs)
	m.nats.WaitFlag(fs)
	m.logging.Flags(fs)
	m.secrets.Flag(fs)
	fs.StringVar(&m.worker.Name, "name", "",
		"name in logs and records (env STEPJET_NAME; default: the host's and a random part)")
	fs.StringVar(&m.models, "models", "", "models file (env STEPJET_MODELS)")
	fs.IntVar(&m.worker.Slots, "slots", worker.DefaultSlots, "most calls of each model tool at a time (env STEPJET_SLOTS)")
	fs.DurationVar(&m.worker.DrainTimeout, "drain-timeout", worker.DefaultDrainTimeout,
		"how long a stop waits for calls (env STEPJET_DRAIN_TIMEOUT)")
	fs.StringVar(&m.health, "health", "", "address of /healthz and /readyz (env STEPJET_HEALTH; default: none)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := m.nats.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := m.logging.FromEnvironment(fs, nil); err != nil {
			return err
		}
		if err := config.FromEnvironment(fs, nil, settings...); err != nil {
			return err
		}
		return m.run(cmd)
	}
	return cmd
}

// run hosts the models until the command's context ends. Everything that can be wrong without a server is found first.
func (m *modelworker) run(cmd *cobra.Command) error {
	log := daemon.Logger(cmd.ErrOrStderr(), m.logging.Format, m.logging.Level)
	if m.worker.Slots < 1 { // the zero of worker.Config means its default
		return fault.New(fault.InvalidConfig, "--slots is %d", m.worker.Slots).
			WithHint("a worker has at least one slot for each tool")
	}
	if m.models == "" {
		return fault.New(fault.InvalidConfig, "--models is missing").
			WithHint("it names a models file; docs/models.md describes one")
	}
	file, err := load(m.models)
	if err != nil {
		return err
	}
	defer file.close()
	if m.worker.SecretsKey, err = m.secrets.Load(); err != nil {
		return err
	}
	m.worker.Logger = log
	s := daemon.NewRemote(
		func(ctx context.Context) (*nats.Conn, error) {
			return kv.Connect(ctx, m.nats.Options("stepjet modelworker", log))
		},
		func(nc *nats.Conn) (daemon.Service, error) {
			w, err := worker.New(nc, m.worker)
			if err != nil {
				return nil, err
			}
			if !file.limited() {
				return w, file.register(w, nil, log)
			}
			rates := &shared{nc: nc}
			return &sharing{w, rates}, file.register(w, rates, log)
		})
	return daemon.Run(cmd.Context(), daemon.Options{Name: "modelworker", Health: m.health, Check: s.Check, Logger: log}, s)
}
