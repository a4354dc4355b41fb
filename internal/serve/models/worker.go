// Package models holds the program that hosts language models as tools, as a command. It is apart from the other
// programs, so that the SDKs of the providers are in no program that asks none.
package models

import (
	"os"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/serve/hosting"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/worker"
)

// Worker returns the command that hosts models until a signal ends it. program is what a user types to start it:
// "modelworker".
func Worker(program string) *cobra.Command {
	p := &hosting.Program{Name: "modelworker"}
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
	p.Flags(cmd.Flags(), hosting.Words{
		Flag: "models", Env: "STEPJET_MODELS", File: "models file (env STEPJET_MODELS)",
		Slots: "calls of each model tool", Calls: "calls",
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return hostModels(cmd, p) }
	return cmd
}

// hostModels hosts the models until the command's context ends. Everything that can be wrong without a server is found
// first.
func hostModels(cmd *cobra.Command, p *hosting.Program) error {
	log, err := p.FromEnvironment(cmd)
	if err != nil {
		return err
	}
	if p.File == "" {
		return fault.New(fault.InvalidConfig, "--models is missing").
			WithHint("it names a models file; docs/models.md describes one")
	}
	file, err := load(p.File, os.LookupEnv)
	if err != nil {
		return err
	}
	defer file.close()
	return p.Run(cmd, log, func(nc *nats.Conn, w *worker.Worker) (daemon.Service, error) {
		rates, err := file.host(nc, w, log)
		return &sharing{w, rates}, err
	})
}
