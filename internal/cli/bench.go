package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/bench"
)

type benchFlags struct {
	figures, report string
	cfg             bench.Config
	profiles        bench.Profiles
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [PART...]",
		Short: "Measure Stepjet against JetStream alone, on this machine",
		Long: `Measures the same shapes of load with JetStream alone and with Stepjet, in turns on one server:
chains, fan-outs with a join, many small plans at once, failures with retries, large results.
Tools do nothing, so what is measured is Stepjet and JetStream. Data goes to a temporary folder.

` + bench.PartsHelp(),
		Example: `  stepjet bench                                  the layouts, every shape
  stepjet bench embedded --only chain            one shape
  stepjet bench scale                            what is large; takes a while
  stepjet bench separate --no-floor --cpu-profile profiles
  stepjet bench report --figures bench --report docs/performance.md`,
		ValidArgs: bench.PartNames(),
		RunE:      a.work(func(cmd *cobra.Command, args []string) error { return a.bench(cmd.Context(), f, args) }),
	}
	fl := c.Flags()
	fl.StringVar(&f.figures, "figures", "", "keep the figures in a `folder`, one JSON file for each part")
	fl.StringVar(&f.report, "report", "", "write the kept figures between their marks in a Markdown `file`")
	fl.IntVar(&f.cfg.Rounds, "rounds", 5, "rounds of each shape, a `number`; medians count")
	fl.Float64Var(&f.cfg.Scale, "scale", 1, "a `factor` for the runs of a round, and the size of what is large")
	fl.DurationVar(&f.cfg.Sustain, "sustain", time.Minute, "`duration` of the sustained load; 0 leaves it out")
	fl.StringVar(&f.cfg.Only, "only", "", "measure only `shapes` whose names begin so: chain, fan-out, diamonds, sustained")
	fl.BoolVar(&f.cfg.NoFloor, "no-floor", false, "leave JetStream alone out; for profiles")
	fl.StringVar(&f.profiles.CPU, "cpu-profile", "", "write a CPU profile of each process to a `folder`")
	fl.StringVar(&f.profiles.Memory, "mem-profile", "", "write a profile of allocations of each process to a `folder`")
	c.AddCommand(a.benchRoleCommand(), a.benchContractsCommand())
	return c
}

// benchRoleCommand is what "stepjet bench" starts as processes of their own.
func (a *app) benchRoleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "role DESCRIPTION", Hidden: true, Args: exactly("DESCRIPTION"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return bench.Role(cmd.Context(), args[0], a.log()) }),
	}
}

func (a *app) bench(ctx context.Context, f benchFlags, names []string) error {
	parts, err := bench.Choose(names)
	switch {
	case err != nil:
		return usage(err)
	case f.report != "" && f.figures == "":
		return usage(errors.New("--report needs --figures, the folder of what it reports"))
	case f.figures != "" && (f.cfg.Only != "" || f.cfg.NoFloor):
		return usage(errors.New("--only and --no-floor measure less than a part, whose figures --figures would replace"))
	}
	dir, err := os.MkdirTemp("", "stepjet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := bench.Env{
		Command: []string{self, "bench", "role"}, Dir: dir, Log: a.log(), Profiles: f.profiles, Stdin: a.env.Stdin,
		Progress: func(line string) { a.say("  %s", line) },
	}
	var failed []error
	for _, p := range parts {
		a.say("%s", a.errStyle.bold(p.Name))
		if err := a.benchPart(ctx, env, f, p); err != nil {
			if ctx.Err() != nil {
				return err
			}
			a.say("%s: %v", a.errStyle.bold(p.Name), err) // the others are measured all the same
			failed = append(failed, fault.Wrap(fault.CodeOf(err), err, "measuring "+p.Name))
		}
	}
	if f.report != "" {
		failed = append(failed, bench.WriteReport(f.figures, f.report))
	}
	return errors.Join(failed...)
}

// benchPart measures one part and keeps its figures.
func (a *app) benchPart(ctx context.Context, env bench.Env, f benchFlags, p bench.Part) error {
	version, commit := buildOf(a.env.Version)
	stamp := bench.Stamp{Time: a.now().UTC(), Version: strings.TrimSpace(version + " " + commit), Machine: bench.Machine()}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Within, fault.New(fault.Timeout, "measuring %s took more than %s", p.Name, p.Within))
	defer cancel()
	figures, err := p.Measure(ctx, env, f.cfg, stamp)
	if err != nil {
		return err
	}
	if a.json() {
		if err := a.printJSON(figures); err != nil {
			return err
		}
	}
	if f.figures == "" {
		return nil
	}
	return bench.Keep(f.figures, p.Name, figures)
}
