package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/bench"
)

// benchLasting is how long each shape goes on. With it, both layouts are measured in less than a minute.
const benchLasting = 4 * time.Second

func (a *app) benchCommand() *cobra.Command {
	var lasting time.Duration
	c := &cobra.Command{
		Use:   "bench [LAYOUT...]",
		Short: "Measure how fast Stepjet is on this machine, in less than a minute",
		Long: `Runs a chain, a fan-out with a join and many small plans at a time, once with server, orchestrator and
worker in this process (embedded) and once with each in a process of its own over TCP (separate).
Tools do nothing, so what is measured is Stepjet and JetStream. Data goes to a temporary folder.

The time of a run is what its client sees. The time of a step goes from the plan's record to the last
record, divided by how many steps wait for each other. CPU is that of all processes, client included.`,
		Example: `  stepjet bench
  stepjet bench separate --for 20s -o json`,
		ValidArgs: []string{bench.Embedded.Part, bench.Separate.Part},
		RunE:      a.work(func(cmd *cobra.Command, args []string) error { return a.bench(cmd.Context(), args, lasting) }),
	}
	c.Flags().DurationVar(&lasting, "for", benchLasting, "`duration` of each shape's load")
	c.AddCommand(a.benchRoleCommand())
	return c
}

// benchRoleCommand is what "stepjet bench" starts as processes of their own.
func (a *app) benchRoleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "role DESCRIPTION", Hidden: true, Args: exactly("DESCRIPTION"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			r, err := bench.ParseRole(args[0])
			if err != nil {
				return err
			}
			return r.Run(cmd.Context(), a.log(), bench.Extra{})
		}),
	}
}

func (a *app) bench(ctx context.Context, names []string, lasting time.Duration) error {
	layouts, err := bench.Layouts(names)
	switch {
	case err != nil:
		return usage(err)
	case lasting <= 0:
		return usage(fmt.Errorf("--for %s: a duration above zero", lasting))
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
	env := bench.Env{Command: []string{self, "bench", "role"}, Dir: dir, Log: a.log()}
	version, commit := a.version()
	all := struct {
		bench.Stamp
		Layouts []*bench.Report `json:"layouts"`
	}{Stamp: bench.Stamp{Time: a.now().UTC(), Version: strings.TrimSpace(version + " " + commit), Machine: bench.Machine()}}
	for _, l := range layouts {
		r, err := bench.Measure(ctx, env, l, lasting, func(shape string) { a.say("%s: %s", l.Part, shape) })
		if err != nil {
			return err
		}
		all.Layouts = append(all.Layouts, r)
	}
	if a.json() {
		return a.printJSON(all)
	}
	st := a.style
	right := func(s string) cell { return cell{text: s, paint: st.dim, right: true} }
	t := table{}
	t.add(cell{text: "LAYOUT", paint: st.dim}, cell{text: "SHAPE", paint: st.dim}, right("MS A RUN"), right("MS A STEP"), right("STEPS/S"),
		right("CPU S PER 1,000"))
	figure := func(format string, v float64) cell { return cell{text: fmt.Sprintf(format, v), right: true} }
	for _, r := range all.Layouts {
		for _, m := range r.Shapes {
			t.add(plain(r.Layout), plain(m.Shape), figure("%.3f", m.RunMS), figure("%.3f", m.StepMS), figure("%.0f", m.Rate), figure("%.3f", m.CPU))
		}
	}
	_, err = fmt.Fprintf(a.stdout, "%s, %s\n\n", all.Machine, all.Version)
	t.write(a.stdout, "", 0)
	return err
}
