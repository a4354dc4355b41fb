package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	product "github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/agentbench"
	"github.com/stepjet/stepjet/internal/version"
)

func agentsCommand() *cobra.Command {
	var figures, report string
	var scale float64
	c := &cobra.Command{
		Use:   "agents [PART...]",
		Short: "Measure agents, kill what runs them, and talk to them",
		Long: `Measures loops of agents whose planner and tools answer at once, in processes of their own. Data goes to a
temporary folder. Parts; without any, all are measured:
` + agentbench.Help(),
		Example: `  lab agents rounds
  lab agents --scale 0.1
  lab agents --figures bench --report docs/performance.md`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return agents(cmd.Context(), names, scale, figures, report)
		},
	}
	c.Flags().Float64Var(&scale, "scale", 1, "a `factor` for how much is measured")
	c.Flags().StringVar(&figures, "figures", "", "keep the figures in a `folder`, one JSON file for each part")
	c.Flags().StringVar(&report, "report", "", "write the kept figures between their marks in a Markdown `file`")
	c.AddCommand(agentPeersCommand(), &cobra.Command{
		Use: "role DESCRIPTION", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := product.ParseRole(args[0])
			if err != nil {
				return err
			}
			return r.Run(cmd.Context(), logger(false), agentbench.Extra())
		},
	})
	return c
}

func agents(ctx context.Context, names []string, scale float64, figures, report string) error {
	parts, err := agentbench.Choose(names)
	if err != nil {
		return err
	}
	if report != "" && figures == "" {
		return fault.New(fault.InvalidConfig, "--report needs --figures, the folder of what it reports")
	}
	if figures != "" { // before anything is measured: what can't be kept was measured for nothing
		if err := os.MkdirAll(figures, 0o755); err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "making the folder of --figures")
		}
	}
	dir, err := os.MkdirTemp("", "stepjet-agents-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env, err := agentEnv(dir)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range parts {
		say(p.Name)
		stamp := product.Stamp{Time: time.Now().UTC(), Version: version.String(), Machine: product.Machine()}
		if err := p.Measure(ctx, env, scale, stamp, figures); err != nil {
			if ctx.Err() != nil {
				return err
			}
			say(p.Name + ": " + err.Error())
			failed = append(failed, fault.Wrap(fault.CodeOf(err), err, "measuring "+p.Name))
		}
	}
	if report != "" {
		failed = append(failed, agentbench.WriteReport(figures, report))
	}
	return errors.Join(failed...)
}

// agentEnv is what measuring agents needs; data goes to a folder.
func agentEnv(dir string) (env agentbench.Env, err error) {
	self, err := os.Executable()
	env.Env = product.Env{Command: []string{self, "agents", "role"}, Dir: dir, Log: logger(false)}
	env.Progress = func(line string) { say("  " + line) }
	return env, err
}
