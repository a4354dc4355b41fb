package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	product "github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/bench"
	"github.com/stepjet/stepjet/internal/version"
)

// benchFlags are those of "lab bench".
type benchFlags struct {
	figures, report string
	json, verbose   bool
	cfg             bench.Config
	profiles        bench.Profiles
}

func benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [PART...]",
		Short: "Measure Stepjet against JetStream alone, on this machine",
		Long: `Measures the same shapes of load with JetStream alone and with Stepjet, in turns on one server:
chains, fan-outs with a join, many small plans at once, failures with retries, large results.
Tools do nothing, so what is measured is Stepjet and JetStream. Data goes to a temporary folder.

` + bench.PartsHelp(),
		Example: `  lab bench                                  the layouts, every shape
  lab bench embedded --only chain            one shape
  lab bench scale                            what is large; takes a while
  lab bench separate --no-floor --cpu-profile profiles
  lab bench report --figures bench --report docs/performance.md`,
		ValidArgs: bench.PartNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.figures, "figures", "", "keep the figures in a `folder`, one JSON file for each part")
	fl.StringVar(&f.report, "report", "", "write the kept figures between their marks in a Markdown `file`")
	fl.BoolVar(&f.json, "json", false, "print the figures on standard output")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log on standard error what happens inside")
	fl.IntVar(&f.cfg.Rounds, "rounds", 5, "rounds of each shape, a `number`; medians count")
	fl.Float64Var(&f.cfg.Scale, "scale", 1, "a `factor` for the runs of a round, and the size of what is large")
	fl.DurationVar(&f.cfg.Sustain, "sustain", time.Minute, "`duration` of the sustained load; 0 leaves it out")
	fl.StringVar(
		&f.cfg.Only,
		"only",
		"",
		"measure only `shapes` whose names begin so: chain, fan-out, diamonds, sustained",
	)
	fl.BoolVar(&f.cfg.NoFloor, "no-floor", false, "leave JetStream alone out; for profiles")
	profileFlags(c, &f.profiles)
	c.AddCommand(roleCommand())
	return c
}

func profileFlags(c *cobra.Command, p *bench.Profiles) {
	c.Flags().StringVar(&p.CPU, bench.CPUProfileFlag, "", "write a CPU profile of each process to a `folder`")
	c.Flags().StringVar(
		&p.Memory,
		bench.MemoryProfileFlag,
		"",
		"write a profile of allocations of each process to a `folder`",
	)
}

// roleCommand is what "lab bench" starts as processes of their own.
func roleCommand() *cobra.Command {
	var p bench.Profiles
	c := &cobra.Command{
		Use: "role DESCRIPTION", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.Role(cmd.Context(), args[0], p, logger(false))
		},
	}
	profileFlags(c, &p)
	return c
}

func logger(verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (f benchFlags) run(ctx context.Context, names []string) error {
	parts, err := bench.Choose(names)
	switch {
	case err != nil:
		return err
	case f.report != "" && f.figures == "":
		return fault.New(fault.InvalidConfig, "--report needs --figures, the folder of what it reports")
	case f.figures != "" && (f.cfg.Only != "" || f.cfg.NoFloor):
		return fault.New(
			fault.InvalidConfig,
			"--only and --no-floor measure less than a part, whose figures --figures would replace",
		)
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
		Env:      product.Env{Command: []string{self, "bench", "role"}, Dir: dir, Log: logger(f.verbose)},
		Profiles: f.profiles, Stdin: os.Stdin, Progress: func(line string) { say("  " + line) },
	}
	var failed []error
	for _, p := range parts {
		say(p.Name)
		if err := f.measure(ctx, env, p); err != nil {
			if ctx.Err() != nil {
				return err
			}
			say(p.Name + ": " + err.Error()) // the others are measured all the same
			failed = append(failed, fault.Wrap(fault.CodeOf(err), err, "measuring "+p.Name))
		}
	}
	if f.report != "" {
		failed = append(failed, bench.WriteReport(f.figures, f.report))
	}
	return errors.Join(failed...)
}

// measure measures one part and keeps its figures.
func (f benchFlags) measure(ctx context.Context, env bench.Env, p bench.Part) error {
	stamp := bench.Stamp{Time: time.Now().UTC(), Version: version.String(), Machine: product.Machine()}
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		p.Within,
		fault.New(fault.Timeout, "measuring %s took more than %s", p.Name, p.Within),
	)
	defer cancel()
	figures, err := p.Measure(ctx, env, f.cfg, stamp)
	if err != nil {
		return err
	}
	if f.json {
		if err := json.NewEncoder(os.Stdout).Encode(figures); err != nil {
			return err
		}
	}
	if f.figures == "" {
		return nil
	}
	return bench.Keep(f.figures, p.Name, figures)
}

// say tells how far it is.
func say(line string) { fmt.Fprintln(os.Stderr, line) }
