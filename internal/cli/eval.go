package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/eval"
	"github.com/stepjet/stepjet/internal/graph"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

type evalFlags struct {
	inFlight int
	tools    string
	report   bool
}

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval FILE.jsonl",
		Short: "Run plans whose answers are known, and compare",
		Long: `Runs every {"name", "plan", "answer"} of a file, many at a time, and compares the result of
the plan's output step with the answer: numbers up to a relative error of 1e-6 or once
rounded as the answer was published, anything else as JSON. A result {"result": X} counts as X.

Where no server is given, everything starts in this process, as for "run", with its data in a
temporary folder. Exit code 0 if all answers are right, 1 otherwise.`,
		Example: `  stepjet eval --tools examples/nestful.json plans.jsonl
  stepjet eval --in-flight 256 -o json plans.jsonl | jq .differed`,
		Args: exactly("FILE.jsonl"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.eval(cmd.Context(), args[0], f) }),
	}
	c.Flags().IntVar(&f.inFlight, "in-flight", 64, "run this `number` of plans at a time")
	c.Flags().StringVar(&f.tools, "tools", "", "tools `file` for the toolworker here (env STEPJET_TOOLS; default: the built-in tools)")
	c.Flags().BoolVar(&f.report, "report", false, "also draw the deepest plan of the file")
	return c
}

// maxEvalFile bounds a file of cases, in bytes.
const maxEvalFile = 1 << 30

func (a *app) eval(ctx context.Context, file string, f evalFlags) error {
	raw, err := a.readFile(file, maxEvalFile)
	if err != nil {
		return err
	}
	cases, err := eval.Read(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := a.open(ctx, place{start: always, tools: f.tools, temporary: true})
	if err != nil {
		return err
	}
	defer s.close()
	up := time.Since(began)
	counter := a.counter(len(cases))
	report := eval.Run(ctx, cases, s.evaluate, eval.Options{InFlight: f.inFlight, Progress: counter.tell})
	counter.close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.json() {
		err = a.printJSON(report)
	} else {
		err = a.showReport(report, s, up, drawn(cases, f.report))
	}
	if err == nil && report.Right < report.Total {
		err = quietly(exitFailed)
	}
	return err
}

// evaluate runs one plan for package eval.
func (s *session) evaluate(ctx context.Context, body []byte) (*outcome.Outcome, error) {
	out, err := s.client.Run(ctx, body, client.SubmitOptions{})
	return out, why(ctx, err)
}

// drawn returns the plan of a file that is worth drawing: the one with the most steps among those with the most waves
// that fit on a screen.
func drawn(cases []eval.Case, wanted bool) *drawing {
	if !wanted {
		return nil
	}
	var best *drawing
	for _, c := range cases {
		p, _ := plan.Parse(c.Plan, nil)
		if p == nil || len(p.Steps) > 20 {
			continue
		}
		if best == nil || p.Depth*100+len(p.Steps) > best.plan.Depth*100+len(best.plan.Steps) {
			best = &drawing{c, p}
		}
	}
	return best
}

type drawing struct {
	c    eval.Case
	plan *plan.Plan
}

func (a *app) showReport(r *eval.Report, s *session, up time.Duration, d *drawing) error {
	var b bytes.Buffer
	st := a.style
	where := "at " + s.where
	if s.local != nil {
		where = fmt.Sprintf("server, orchestrator and toolworker in this process, up in %s", took(up))
	}
	fmt.Fprintf(&b, "%s  %s\n\n", st.bold("Stepjet"), st.dim(where))
	var t table
	row := func(name, value, note string) {
		t.add(cell{text: name, paint: st.dim}, cell{text: value, right: true, paint: st.bold}, cell{text: note, paint: st.dim})
	}
	row("plans", graph.Thousands(r.Total), fmt.Sprintf("in %s", took(r.Elapsed)))
	row("steps", graph.Thousands(r.Steps), succeededNote(r))
	row("answers right", graph.Thousands(r.Right), fmt.Sprintf("of %s", graph.Thousands(r.Total)))
	row("steps per second", graph.Thousands(int(r.StepsPerSecond())), "a message, a call and a record each")
	row("plan, submit to outcome", took(r.P50), fmt.Sprintf("p50, %s p99", took(r.P99)))
	t.write(&b, "  ", 0)
	a.writeDiffered(&b, r)
	if d != nil {
		a.writeDrawing(&b, d)
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func succeededNote(r *eval.Report) string {
	if r.Succeeded == r.Steps {
		return "all succeeded"
	}
	return fmt.Sprintf("%s did not succeed", graph.Thousands(r.Steps-r.Succeeded))
}

// maxDiffered bounds the wrong answers that are listed; -o json has them all.
const maxDiffered = 20

func (a *app) writeDiffered(b *bytes.Buffer, r *eval.Report) {
	wrong := r.Wrong()
	if len(wrong) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", a.style.red(text.Count(len(wrong), "answer")+" differed"))
	var t table
	for _, v := range wrong[:min(len(wrong), maxDiffered)] {
		t.add(plain(oneLine(v.Name)), cell{text: oneLine(v.Why), paint: a.style.dim})
	}
	t.write(b, "  ", a.width())
	if n := len(wrong) - maxDiffered; n > 0 {
		fmt.Fprintf(b, "  … and %d more (-o json lists all)\n", n)
	}
}

func (a *app) writeDrawing(b *bytes.Buffer, d *drawing) {
	text, err := graph.Draw(d.plan, graph.Text, graph.Options{Width: 76, Paint: a.paintGraph})
	if err != nil { // the format is our own
		return
	}
	fmt.Fprintf(b, "\n%s  %s\n", a.style.bold("One of the plans"), a.style.dim(oneLine(d.c.Name)))
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			b.WriteString(line)
			continue
		}
		b.WriteString("  " + line)
	}
}

// counter shows on a terminal how far an evaluation is.
type counter struct {
	a     *app
	shown time.Time
}

func (a *app) counter(total int) *counter {
	if a.terminal && !a.flags.quiet {
		_, _ = fmt.Fprintf(a.stderr, "0 of %d plans", total)
	}
	return &counter{a: a}
}

// tell is called by one goroutine at a time.
func (c *counter) tell(done, total int, _ eval.Verdict) {
	if now := time.Now(); c.a.terminal && !c.a.flags.quiet && (now.Sub(c.shown) > redrawEvery || done == total) {
		c.shown = now
		_, _ = fmt.Fprintf(c.a.stderr, "\r\x1b[2K%d of %d plans", done, total)
	}
}

func (c *counter) close() {
	if c.a.terminal && !c.a.flags.quiet {
		_, _ = fmt.Fprint(c.a.stderr, "\r\x1b[2K")
	}
}
