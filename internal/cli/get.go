package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

type getFlags struct {
	wait    time.Duration
	step    string
	outcome bool
}

func (a *app) getCommand() *cobra.Command {
	var f getFlags
	c := &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run: every step, what it was given and what it returned",
		Long: `Shows an active or finished run. With -o json prints the full document: plan, status, timing,
attempts, worker, resolved arguments and result of every step.

--outcome prints the outcome alone, as "run" does, and ends with the exit code of its status.
--wait waits for the run to be over first; if it runs out, the exit code is 124.`,
		Example: `  stepjet get order-42
  stepjet get order-42 --step compare
  stepjet get order-42 --wait 1m --outcome -o json`,
		Args: exactly("RUN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.get(cmd.Context(), args[0], f) }),
	}
	c.Flags().DurationVar(&f.wait, "wait", 0, "wait until the run is over, for this `duration` at most")
	c.Flags().StringVar(&f.step, "step", "", "show the step of this `id`, with all of its arguments and result")
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
	return a.showRun(doc)
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
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) showRun(doc *outcome.Run) error {
	var b bytes.Buffer
	st := a.style
	fmt.Fprintf(&b, "%s  %s\n\n", st.bold(oneLine(doc.Run)), st.run(doc.Status, string(doc.Status)))
	var t table
	line := func(name, format string, args ...any) {
		t.add(cell{text: name, paint: st.dim}, plain(fmt.Sprintf(format, args...)))
	}
	line("tenant", "%s", doc.Tenant)
	line("submitted", "%s", clock(doc.Submitted, a.now()))
	if !doc.Finished.IsZero() {
		line("finished", "%s, after %s", clock(doc.Finished, a.now()), tookMS(doc.Stats.ElapsedMS))
	}
	if doc.StoppedBy != "" {
		line("stopped by", "%s", oneLine(doc.StoppedBy))
	}
	line("steps", "%s", steps(doc.Stats, len(doc.Steps)))
	if doc.Outcome != nil && doc.Status != outcome.Rejected {
		line("returned", "%s; %s kept out of the context (~%d tokens)", size(doc.Stats.BytesReturned), size(doc.Stats.BytesKeptOut), doc.Stats.TokensKeptOut)
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
		a.stepTable(doc).write(&b, "", a.width())
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// steps counts a run's steps by what they came to.
func steps(s outcome.Stats, total int) string {
	text := fmt.Sprintf("%d", total)
	sep := ": "
	for _, n := range []struct {
		n    int
		what string
	}{{s.Succeeded, "succeeded"}, {s.Failed, "failed"}, {s.Skipped, "skipped"}, {s.Cancelled, "cancelled"}} {
		if n.n > 0 {
			text += fmt.Sprintf("%s%d %s", sep, n.n, n.what)
			sep = ", "
		}
	}
	return text
}

// width is how wide a table may be: the terminal, or without a bound where the output goes to a file.
func (a *app) width() int {
	if !isTerminal(a.stdout) {
		return 0
	}
	c, _ := sizeOf(a.stdout)
	return c
}

func (a *app) stepTable(doc *outcome.Run) *table {
	st := a.style
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	t := &table{}
	t.add(head(" "), head("STEP"), head("TOOL"), head("STATUS"), cell{text: "TRIES", paint: st.dim, right: true},
		cell{text: "TOOK", paint: st.dim, right: true}, head("WORKER"), head("RESULT"))
	for i := range doc.Steps {
		s := &doc.Steps[i]
		color := func(text string) string { return st.step(s.Status, text) }
		tries, spent := "", ""
		if s.Attempts > 0 {
			tries = fmt.Sprint(s.Attempts)
		}
		if s.Ended.After(s.Started) && !s.Started.IsZero() {
			spent = took(s.Ended.Sub(s.Started))
		}
		t.add(cell{text: mark(s.Status), paint: color}, plain(s.ID), plain(s.Tool), cell{text: string(s.Status), paint: color},
			cell{text: tries, right: true}, cell{text: spent, right: true}, plain(oneLine(s.Worker)), plain(resultLine(doc, s)))
	}
	return t
}

// maxResultLine bounds what a table shows of a result, in bytes.
const maxResultLine = 200

// resultLine says in one line what a step came to, or what it waits for.
func resultLine(doc *outcome.Run, s *outcome.Step) string {
	switch {
	case s.Error != nil:
		return oneLine(string(s.Error.Code) + ": " + s.Error.Message)
	case s.Waiting != "":
		return "waits for " + oneLine(s.Waiting)
	}
	raw := s.Result
	if raw == nil && doc.Outcome != nil {
		raw, _ = doc.Outcome.Results.Get(s.ID)
	}
	if raw == nil {
		if s.Bytes > 0 {
			return size(s.Bytes)
		}
		return ""
	}
	if len(raw) > maxResultLine {
		return oneLine(string(bytes.ToValidUTF8(raw[:maxResultLine], nil))) + "… (" + size(int64(len(raw))) + ")"
	}
	return oneLine(string(raw))
}

// showStep prints one step as a whole; a result that lies in a blob is fetched.
func (a *app) showStep(ctx context.Context, s *session, doc *outcome.Run, id string) error {
	for i := range doc.Steps {
		if step := &doc.Steps[i]; step.ID == id {
			if step.Result == nil && doc.Outcome != nil {
				step.Result, _ = doc.Outcome.Results.Get(id)
			}
			if step.Result == nil && step.Blob != nil {
				raw, err := s.client.Blob(ctx, step.Blob)
				if err != nil {
					return err
				}
				step.Result = raw
			}
			if a.json() {
				return a.printJSON(step)
			}
			return a.writeStep(a.stdout, step)
		}
	}
	return fault.New(fault.NotFound, "run %s has no step %q", doc.Run, id)
}

func (a *app) writeStep(w io.Writer, s *outcome.Step) error {
	var b bytes.Buffer
	st := a.style
	fmt.Fprintf(&b, "%s  %s  %s\n", st.bold(s.ID), st.dim(s.Tool), st.step(s.Status, string(s.Status)))
	if s.Attempts > 0 {
		fmt.Fprintf(&b, "%s by %s\n", count(s.Attempts, "attempt"), oneLine(s.Worker))
	}
	if s.Error != nil {
		fmt.Fprintf(&b, "\n%s %s\n", st.red(string(s.Error.Code)+":"), oneLine(s.Error.Message))
		if s.Error.Hint != "" {
			fmt.Fprintf(&b, "  %s %s\n", st.dim("hint:"), oneLine(s.Error.Hint))
		}
	}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"arguments", s.Arguments}, {"result", s.Result}} {
		if part.raw == nil {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", st.dim(part.name))
		if json.Indent(&b, part.raw, "", "  ") != nil {
			b.Write(part.raw)
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}
