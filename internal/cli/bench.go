package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/bench"
)

type benchFlags struct {
	json, report string
	rounds       int
	sustain      time.Duration
	syncAlways   bool
	embeddedOnly bool
	cpuProfile   string
	only         string
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure chains, fan-outs and many small plans on this machine",
		Long: `Measures a chain of 20 steps, fan-outs of 100 and of 2,000 with a join, and 3,000 plans of seven
steps with 16, 64 and 256 in flight: first with everything in this process, then with server,
orchestrator and worker as processes of their own over TCP. Tools do nothing, so what is
measured is Stepjet and JetStream. Data goes to a temporary folder.`,
		Example: `  stepjet bench --sustain 0
  stepjet bench --json results.json --report performance.md`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error { return a.bench(cmd.Context(), f) }),
	}
	fl := c.Flags()
	fl.StringVar(&f.json, "json", "", "write the figures to a JSON `file`")
	fl.StringVar(&f.report, "report", "", "write the figures to a Markdown `file`")
	fl.IntVar(&f.rounds, "rounds", 5, "rounds of each shape, a `number`; the median counts")
	fl.DurationVar(&f.sustain, "sustain", time.Minute, "`duration` of the sustained load; 0 leaves it out")
	fl.BoolVar(&f.syncAlways, "sync-always", false, "flush to disk before every acknowledgement")
	fl.BoolVar(&f.embeddedOnly, "embedded-only", false, "leave the separate processes out")
	fl.StringVar(&f.only, "only", "", "measure only `shapes` whose names begin so: chain, fan-out, diamonds, sustained")
	fl.StringVar(&f.cpuProfile, "cpu-profile", "", "write a CPU profile of this process to a `file`")
	c.AddCommand(a.benchRoleCommand(), a.benchContractsCommand())
	return c
}

func (a *app) benchContractsCommand() *cobra.Command {
	var report string
	c := &cobra.Command{
		Use:   "contracts",
		Short: "Measure tool contracts at work: limits, fairness, retries, batches, a large registry",
		Example: `  stepjet bench contracts
  stepjet bench contracts --report docs/contracts.md`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error { return a.benchContracts(cmd.Context(), report) }),
	}
	c.Flags().StringVar(&report, "report", "", "write the figures between their marks in a Markdown `file`")
	return c
}

func (a *app) benchContracts(ctx context.Context, report string) error {
	dir, err := os.MkdirTemp("", "stepjet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	figures, err := bench.MeasureContracts(ctx, dir, a.log(), func(part string) { a.say("  %s", part) })
	if err != nil {
		return err
	}
	version, commit := buildOf(a.env.Version)
	figures.Time, figures.Version = a.now(), strings.TrimSpace(version+" "+commit)
	if a.json() {
		err = a.printJSON(figures)
	} else {
		_, err = fmt.Fprint(a.stdout, figures.Markdown())
	}
	if err != nil || report == "" {
		return err
	}
	return figures.Insert(report)
}

// benchRoleCommand is what "stepjet bench" starts as processes of their own.
func (a *app) benchRoleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "role ROLE URL FOLDER", Hidden: true, Args: exactly("ROLE", "URL", "FOLDER"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return bench.Role(cmd.Context(), args[0], args[1], args[2], a.log())
		}),
	}
}

func (a *app) bench(ctx context.Context, f benchFlags) error {
	dir, err := os.MkdirTemp("", "stepjet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	version, commit := buildOf(a.env.Version)
	if f.cpuProfile != "" {
		out, err := os.Create(f.cpuProfile)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	report := bench.Report{Time: a.now(), Version: strings.TrimSpace(version + " " + commit), Machine: bench.Machine()}
	cfg := bench.Config{Rounds: f.rounds, Sustain: f.sustain, Only: f.only, Progress: func(line string) { a.say("  %s", line) }}
	a.say("%s", a.errStyle.bold("one process"))
	mode, err := bench.Embedded(ctx, filepath.Join(dir, "embedded"), f.syncAlways, cfg, a.log())
	if err != nil {
		return err
	}
	report.Modes = append(report.Modes, mode)
	if !f.embeddedOnly {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		a.say("%s", a.errStyle.bold("separate processes over TCP"))
		mode, err := bench.Processes(ctx, []string{self, "bench", "role"}, dir, f.syncAlways, cfg, a.log())
		if err != nil {
			return err
		}
		report.Modes = append(report.Modes, mode)
	}
	if a.json() {
		err = a.printJSON(report)
	} else {
		_, err = fmt.Fprint(a.stdout, report.Markdown())
	}
	if err != nil {
		return err
	}
	return report.Write(f.json, f.report)
}
