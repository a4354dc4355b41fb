package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

type getFlags struct {
	wait    time.Duration
	step    string
	items   bool
	outcome bool
}

func (a *app) getCommand() *cobra.Command {
	var f getFlags
	c := &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run: every step, what it was given and what it returned",
		Long: `Shows an active or finished run. With -o json prints the full document: plan, status, timing,
attempts, worker, resolved arguments and result of every step.

Of a run that is not over, the table says what each step waits for: other steps, a worker, a
free place within the tool's limit, or the time of its next attempt.

--outcome prints the outcome alone, as "run" does, and ends with the exit code of its status.
--wait waits for the run to be over first; if it runs out, the exit code is 124.`,
		Example: `  stepjet get order-42
  stepjet get order-42 --step compare
  stepjet get order-42 --step notify=3
  stepjet get order-42 --wait 1m --outcome -o json`,
		Args: exactly("RUN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.get(cmd.Context(), args[0], f) }),
	}
	c.Flags().DurationVar(&f.wait, "wait", 0, "wait until the run is over, for this `duration` at most")
	c.Flags().StringVar(&f.step, "step", "", "show the step of this `id`, with all of its arguments and result; id=3 is an item of a for_each")
	c.Flags().BoolVar(&f.items, "items", false, "list every item of for_each steps")
	c.Flags().BoolVar(&f.outcome, "outcome", false, "print the outcome alone")
	return c
}

func (a *app) get(ctx context.Context, run string, f getFlags) error {
	s, err := a.open(ctx, existing)
	if err != nil {
		return err
	}
	defer s.close()
	if f.wait > 0 {
		if err := a.await(ctx, s, run, f.wait); err != nil {
			return err
		}
	}
	ctx, cancel := a.patience(ctx)
	defer cancel()
	doc, err := s.client.Get(ctx, run)
	switch {
	case err != nil:
		return why(ctx, err)
	case f.step != "":
		return a.showStep(ctx, s, doc, f.step)
	case f.outcome && doc.Outcome == nil:
		return fault.New(fault.NotReady, "run %s is not over: %s", run, doc.Status).WithHint("wait for it: --wait 1m")
	case f.outcome:
		return a.outcome(doc.Outcome)
	case a.json():
		return a.printDocument(doc.JSON())
	}
	return a.showRun(doc, f.items)
}

func (a *app) await(ctx context.Context, s *session, run string, wait time.Duration) error {
	ctx, cancel := waitFor(ctx, wait)
	defer cancel()
	r, err := s.client.Attach(run)
	if err != nil {
		return err
	}
	_, err = r.Wait(ctx)
	return why(ctx, err)
}

// printDocument prints a JSON document: as it is for programs, indented for people. Indenting changes no value's bytes.
func (a *app) printDocument(doc []byte) error {
	var b bytes.Buffer
	if a.json() || json.Indent(&b, doc, "", "  ") != nil {
		b.Reset()
		b.Write(doc)
	}
	b.WriteByte('\n')
	out := b.Bytes()
	if !a.json() {
		out = text.Escaped(out)
	}
	_, err := a.stdout.Write(out)
	return err
}

// amendmentLine tells what became of an amendment of a plan that was submitted for an approval.
func amendmentLine(x *outcome.Amendment) string {
	what := "in force"
	switch {
	case x.Waits:
		what = "waits for an approval"
	case x.Answer != nil && x.Error == nil && x.Answer.Decision == outcome.DecisionExpired: // "on_timeout": "approve"
		what = "in force, as nobody answered until " + x.Answer.At.UTC().Format(time.RFC3339)
	case x.Answer != nil && x.Error == nil:
		what = answeredLine(x.Answer)
	case x.Error != nil:
		what = "does nothing: " + oneLine(x.Error.Message)
	}
	by := ""
	if x.By != "" {
		by = ", asked for by " + oneLine(x.By)
	}
	return fmt.Sprintf("%s revision %d%s: %s", planOf(x.Step), x.Revision, by, what)
}

func (a *app) showRun(doc *outcome.Run, items bool) error {
	var b bytes.Buffer
	st := a.style
	fmt.Fprintf(&b, "%s  %s\n\n", st.bold(oneLine(doc.Run)), st.run(doc.Status, string(doc.Status)))
	var t table
	line := func(name, format string, args ...any) {
		t.add(cell{text: name, paint: st.dim}, plain(fmt.Sprintf(format, args...)))
	}
	line("tenant", "%s", doc.Tenant)
	if doc.RetryOf != "" {
		line("retry of", "%s", oneLine(retriedFrom(doc)))
	}
	line("submitted", "%s", clock(doc.Submitted, a.now()))
	if !doc.Finished.IsZero() {
		line("finished", "%s, after %s", clock(doc.Finished, a.now()), tookMS(doc.Stats.ElapsedMS))
	}
	if doc.StoppedBy != "" {
		line("stopped by", "%s", oneLine(doc.StoppedBy))
	}
	if doc.Revision > 0 {
		line("amended", "revision %d", doc.Revision)
	}
	for i := range doc.Amendments {
		line("", "%s", amendmentLine(&doc.Amendments[i]))
	}
	line("steps", "%s", stepsLine(doc))
	if doc.Status == outcome.Running && len(doc.Steps) > 0 {
		line("progress", "%s", progressLine(doc, st))
	}
	tellAgents(doc, asTyped(argumentsOf(a)), line)
	if doc.Outcome != nil && doc.Status != outcome.Rejected {
		line("returned", "%s; %s kept out of the context (~%d tokens)", size(doc.Stats.BytesReturned), size(doc.Stats.BytesKeptOut), doc.Stats.TokensKeptOut)
	}
	if doc.Outcome != nil && len(doc.Outcome.Output) > 0 {
		line("output", "%s", brief(doc.Outcome.Output))
	}
	line("plan", "sha256 %s", doc.Digest)
	t.write(&b, "", 0)
	if doc.Outcome != nil && len(doc.Outcome.Problems) > 0 {
		var p strings.Builder
		writeProblems(&p, doc.Outcome.Problems, st.red, st)
		b.WriteString(p.String())
	}
	if len(doc.Steps) > 0 {
		b.WriteByte('\n')
		a.stepTable(doc, items).write(&b, "", a.width())
	}
	writeMessages(&b, st, doc)
	writeAnswers(&b, st, doc, items, a.width())
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// tellAgents tells of the agents of a run: of those of its plan what their rounds came to, and of all what people said to them and which
// of their answers came to nothing. where are the arguments that lead to the run.
func tellAgents(doc *outcome.Run, where string, line func(name, format string, args ...any)) {
	for _, of := range agents.Steps(doc) {
		line("agent", "%s: %s", oneLine(of.ID), agents.Whole(of, agents.RoundsOf(of, agents.NoBlob), agents.NoBlob))
		for _, why := range agents.Refusals(of) {
			line("", "%s", oneLine(why))
		}
		for _, x := range []struct {
			what string
			all  []string
		}{{"wrong with the last answer", agents.LastProblems(of)}, {"the last round came to", agents.LastResults(of)}} {
			for _, one := range x.all[:min(len(x.all), agents.MostTold)] {
				line("", "%s: %s", x.what, oneLine(one))
			}
			if more := len(x.all) - agents.MostTold; more > 0 {
				line("", "and %d more: stepjet get %s --step %s%s", more, quote(doc.Run), quote(of.ID), where)
			}
		}
		for _, said := range agents.Said(of) {
			line("", "%s", oneLine(said))
		}
	}
	others, name := agents.Others(doc), "other agents"
	for _, x := range others[:min(len(others), agents.MostTold)] {
		line(name, "%s: %s", oneLine(x.Agent), oneLine(x.Text))
		name = ""
	}
	if more := len(others) - agents.MostTold; more > 0 {
		line("", "and %d more: stepjet get %s --step %s%s", more, quote(doc.Run), quote(others[agents.MostTold].Agent), where)
	}
}

// writeMessages writes what the agents of a run have told people, below its steps.
func writeMessages(b *bytes.Buffer, st style, doc *outcome.Run) {
	var t table
	for _, x := range agents.Messages(doc) {
		who := fmt.Sprintf("%s, round %d", oneLine(x.Agent), x.Round)
		if x.LeftOut > 0 {
			t.add(cell{text: oneLine(x.Agent), paint: st.bold}, plain(st.dim("… "+text.Count(x.LeftOut, "message")+" before")))
		}
		t.add(cell{text: who, paint: st.bold}, plain(agents.Brief(x.Message, agents.MostOfMessage)))
	}
	if len(t.rows) > 0 {
		b.WriteString("\n" + st.dim("told people") + "\n")
		t.write(b, "", 0)
	}
}

// width is how wide a table may be: the terminal, or without a bound where the output goes to a file.
func (a *app) width() int {
	if !isTerminal(a.stdout) {
		return 0
	}
	c, _ := sizeOf(a.stdout)
	return c
}
