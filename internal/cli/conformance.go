package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/conformance"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
)

type conformanceFlags struct {
	tool            string
	only            []string
	lease, patience time.Duration
	list            bool
}

func (a *app) conformanceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "conformance",
		Short:   "Test a worker in any language against the protocol",
		Example: "  stepjet conformance worker -- node dist/worker.js",
		Args:    knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.conformanceWorkerCommand())
	return c
}

func (a *app) conformanceWorkerCommand() *cobra.Command {
	var f conformanceFlags
	c := &cobra.Command{
		Use:   "worker [-- COMMAND ARGUMENT...]",
		Short: "Drive a worker through the protocol and say what it gets wrong",
		Long: `Starts a NATS server, plays the orchestrator, starts COMMAND with NATS_URL and STEPJET_TOOL in its
environment, and sends it steps of every kind, good and bad. The worker hosts the tool
"conformance", which docs/protocol.md describes. Without COMMAND it drives a worker that is
connected to the server given with --url, which must have no orchestrator.

✓ as it must be   ! conforms, could do better   ✗ wrong   - not checked
The exit code is 1 if anything is wrong.`,
		Example: `  stepjet conformance worker -- node dist/worker.js
  stepjet conformance worker --only heartbeat,cancel -- python worker.py
  stepjet conformance worker --url nats://127.0.0.1:4222 -o json`,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			if f.list {
				_, err := fmt.Fprintln(a.stdout, strings.Join(conformance.Names(), "\n"))
				return err
			}
			return a.conform(cmd.Context(), f, args)
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.tool, "tool", conformance.DefaultTool, "`name` of the tool that the worker hosts")
	fl.StringSliceVar(&f.only, "only", nil, "make only these `checks`, separated by commas")
	fl.BoolVar(&f.list, "list", false, "print the names of the checks and do nothing")
	fl.DurationVar(&f.lease, "lease", 2*time.Second, "lease of the steps, a `duration`: what a heartbeat has to renew")
	fl.DurationVar(&f.patience, "patience", 15*time.Second, "wait for this `duration` for what a worker should do at once")
	return c
}

func (a *app) conform(ctx context.Context, f conformanceFlags, command []string) error {
	o := conformance.Options{Tool: f.tool, Only: f.only, Lease: f.lease, Patience: f.patience, Logger: a.log()}
	if len(command) == 0 && !a.flags.given() {
		return usage(errors.New("missing COMMAND after --, or --url of a server that the worker is connected to"))
	}
	connect := a.flags.Options("stepjet conformance", a.log())
	if !a.flags.given() {
		srv, err := embedded.Start(embedded.Options{Listen: "127.0.0.1:0", Logger: a.log()})
		if err != nil {
			return err
		}
		defer srv.Shutdown()
		connect.URL = srv.URL()
	}
	nc, err := kv.Connect(ctx, connect)
	if err != nil {
		return err
	}
	defer nc.Close()
	o.Conn = nc
	if len(command) > 0 {
		host := conformance.Command{Args: command, Env: []string{"NATS_URL=" + nc.ConnectedUrl(), "STEPJET_TOOL=" + f.tool}}
		if a.flags.verbose {
			host.Output = a.stderr
		}
		o.Host = host
	}
	if !a.json() {
		o.Each = a.showCheck
	}
	r, err := conformance.Run(ctx, o)
	if err != nil {
		return err
	}
	return a.showConformance(r)
}

// showCheck prints a check as soon as it is over.
func (a *app) showCheck(c conformance.Check) {
	var b bytes.Buffer
	st := a.style
	switch c.Status {
	case conformance.Passed:
		fmt.Fprintf(&b, "%s %-16s %s\n", st.green("✓"), c.Name, st.dim(c.Expected))
	case conformance.Warned:
		fmt.Fprintf(&b, "%s %-16s %s\n", st.yellow("!"), c.Name, st.dim(c.Expected))
	case conformance.Failed:
		fmt.Fprintf(&b, "%s %-16s %s\n", st.red("✗"), c.Name, st.dim(c.Expected))
	default:
		if c.Why == "not asked for" {
			return
		}
		fmt.Fprintf(&b, "%s %-16s %s\n", st.dim("-"), c.Name, st.dim("not checked: "+c.Why))
	}
	const indent = "\n                   "
	for _, f := range c.Findings {
		paint := st.yellow
		if f.Level == conformance.Must {
			paint = st.red
		}
		fmt.Fprintf(&b, "  %-16s %s %s\n", "", paint(string(f.Level)+":"), strings.ReplaceAll(f.Seen, "\n", indent))
		fmt.Fprintf(&b, "  %-16s %s %s\n", "", st.dim("→"), f.Advice)
	}
	_, _ = a.stdout.Write(b.Bytes()) // what can't be printed shows at the end
}

// showConformance prints what it comes to, and gives the exit code.
func (a *app) showConformance(r *conformance.Report) error {
	if a.json() {
		if err := a.printJSON(r); err != nil {
			return err
		}
		return quietly(codeOfReport(r))
	}
	count := map[conformance.Status]int{}
	var wrong []string
	for _, c := range r.Checks {
		count[c.Status]++
		if c.Status == conformance.Failed {
			wrong = append(wrong, c.Name)
		}
	}
	verdict := a.style.green("conforms")
	if !r.Conforms {
		verdict = a.style.red("does not conform") + ": " + strings.Join(wrong, ", ")
	}
	_, err := fmt.Fprintf(a.stdout, "\n%s (%d passed, %d could be better, %d wrong, %d not checked)\n",
		verdict, count[conformance.Passed], count[conformance.Warned], count[conformance.Failed], count[conformance.Skipped])
	if err != nil {
		return err
	}
	return quietly(codeOfReport(r))
}

func codeOfReport(r *conformance.Report) int {
	if r.Conforms {
		return exitOK
	}
	return exitFailed
}
