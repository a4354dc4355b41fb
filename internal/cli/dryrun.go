package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/internal/graph"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// dryRun is "stepjet run --dry-run".
type dryRun struct {
	*app
	file, tools string
	may         []string // nil: everything
}

// print prints what the plan would come to.
func (r dryRun) print(ctx context.Context) error {
	body, err := r.readFile(r.file, maxPlanFile)
	if err != nil {
		return err
	}
	d, err := r.of(ctx, body)
	if err != nil {
		return err
	}
	switch {
	case r.json():
		err = r.printJSON(struct {
			File  string `json:"file"`
			Valid bool   `json:"valid"`
			*outcome.DryRun
		}{r.file, d.Valid(), d})
	case !d.Valid():
		err = r.verdict(judged{file: r.file, body: body, report: plan.Report{Problems: d.Problems, Warnings: d.Warnings}})
	default:
		err = r.page(body, d)
	}
	if err == nil && !d.Valid() {
		return quietly(exitInvalid)
	}
	return err
}

// of asks the registry of a server that was named or of a "stepjet dev" that runs, unless a file has the tools. Without
// both, the tools are those that "stepjet run" would have in this process.
func (r dryRun) of(ctx context.Context, body []byte) (*outcome.DryRun, error) {
	dir, _ := r.flags.dir()
	if _, running := dev.Running(dir); r.tools == "" && (running || r.flags.given()) {
		s, err := r.open(ctx, remoteOnly)
		if err != nil {
			return nil, err
		}
		defer s.close()
		ctx, cancel := r.patience(ctx)
		defer cancel()
		d, err := s.client.DryRun(ctx, body, client.DryRunPermissions(r.may))
		return d, why(ctx, err)
	}
	definitions, err := r.definitionsHere(cmp.Or(r.tools, r.hostedTools()))
	if err != nil {
		return nil, err
	}
	all := make([]dryrun.Tool, len(definitions))
	for i, d := range definitions {
		all[i].Definition = d
		if all[i].Contract, err = d.Contract(); err != nil {
			return nil, err
		}
	}
	return dryrun.Of(body, all, nil) // nobody has said here which groups there are
}

// dryPage writes a dry run for people.
type dryPage struct {
	*outcome.DryRun
	strings.Builder
	st    style
	width int
}

func (r dryRun) page(body []byte, d *outcome.DryRun) error {
	p := dryPage{DryRun: d, st: r.style, width: r.width()}
	fmt.Fprintf(&p, "%s  %s  %s\n", shown(r.file), p.st.green("valid"), p.st.dim(p.figures()))
	writeProblems(&p.Builder, d.Warnings, func(s string) string { return p.st.yellow("warning " + s) }, p.st)
	p.head("Dry run", "no tool was called, and nothing was stored; what tools return is made up of their output schemas")
	if read, _ := plan.Parse(body, nil); read != nil {
		drawn, err := graph.Draw(read, graph.Text, graph.Options{Width: cmp.Or(p.width, 100), Paint: r.paintGraph})
		if err != nil {
			return err
		}
		_, waves, _ := strings.Cut(drawn, "\n\n") // the figures stand above
		p.waves(waves)
	}
	p.tools()
	p.notices()
	p.run()
	_, err := fmt.Fprint(r.stdout, p.String())
	return err
}

func (p *dryPage) head(name, note string) {
	fmt.Fprintf(p, "\n%s  %s\n\n", p.st.bold(name), p.st.dim(note))
}

func (p *dryPage) dim(s string) cell { return cell{text: s, paint: p.st.dim} }

// maxWaveLines bounds what is drawn of a plan with many waves.
const maxWaveLines = 60

func (p *dryPage) waves(drawn string) {
	lines := strings.SplitAfter(drawn, "\n")
	p.WriteString(strings.Join(lines[:min(len(lines), maxWaveLines)], ""))
	if n := len(lines) - 1 - maxWaveLines; n > 0 {
		fmt.Fprintf(p, "… and %d more lines (stepjet graph draws all)\n", n)
	}
}

func (p *dryPage) figures() string {
	calls := text.Count(p.Calls, "call")
	if p.Guessed {
		calls = "about " + calls
	}
	return fmt.Sprintf("%s, %s, %s", text.Count(len(p.Steps), "step"), text.Count(len(p.Waves), "wave"), calls)
}

// origins say what made-up values are made of.
var origins = map[outcome.Origin]string{
	outcome.FromExample: "an example of its schema",
	outcome.FromSchema:  "the least that its schema accepts",
	outcome.FromNothing: "nothing says what it returns",
}

func (p *dryPage) tools() {
	p.head("Tools", "what the plan asks of them")
	var t table
	var titles []cell
	for _, title := range []string{"TOOL", "CALLS", "AT ONCE", "LIMIT", "ATTEMPTS", "TIMEOUT", "MADE UP", "RETURNS"} {
		titles = append(titles, p.dim(title))
	}
	t.add(titles...)
	right := func(x any) cell { return cell{text: fmt.Sprint(x), right: true} }
	for _, x := range p.Tools {
		timeout := time.Duration(x.TimeoutMS) * time.Millisecond
		t.add(plain(x.Tool), right(x.Calls), right(x.AtOnce), right(x.Limit), right(x.MaxAttempts), right(timeout),
			p.dim(origins[x.From]), plain(brief(x.Returns)))
	}
	t.write(p, "  ", p.width)
}

// brief returns JSON, as far as it fits into a line.
func brief(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) == nil {
		raw = b.Bytes()
	}
	if len(raw) <= maxResultLine {
		return oneLine(string(raw))
	}
	return oneLine(text.Clip(string(raw), maxResultLine)) + " (" + size(int64(len(raw))) + ")"
}

func (p *dryPage) notices() {
	if len(p.Notices) == 0 {
		return
	}
	p.head("To know before", "limits that the run meets, and what may surprise")
	var t table
	for _, n := range p.Notices[:min(len(p.Notices), maxListed)] {
		kind := cell{text: string(n.Kind), paint: p.st.yellow}
		t.add(kind, plain(cmp.Or(n.Tool, n.Step, "the run")), plain(oneLine(n.Message)))
	}
	t.write(p, "  ", 0)
	p.more(len(p.Notices))
}

// maxListed bounds what is listed of steps, notices, errors and doubts; -o json has them all.
const maxListed = 20

func (p *dryPage) more(all int) {
	if n := all - maxListed; n > 0 {
		fmt.Fprintf(p, "  … and %d more (-o json lists all)\n", n)
	}
}

func (p *dryPage) run() {
	came := p.st.run(p.Status, string(p.Status))
	if p.Cut != "" {
		came = p.st.yellow("cut, for " + p.Cut)
	}
	if n := len(p.Doubts) + p.DoubtsLeftOut; n > 0 {
		came += ", with " + text.Count(n, "doubt")
	}
	fmt.Fprintf(p, "\n%s  %s\n\n", p.st.bold("With made-up results"), came)
	var t table
	t.add(p.dim(" "), p.dim("STEP"), p.dim("CALLS"), p.dim("ARGUMENTS"))
	all := withInner(p.Steps, nil)
	for _, s := range all[:min(len(all), maxListed)] {
		color := func(text string) string { return p.st.step(s.Status, text) }
		calls := cell{text: fmt.Sprint(s.Calls), right: true}
		t.add(cell{text: mark(s.Status), paint: color}, plain(s.ID), calls, plain(argumentsLine(&s)))
	}
	t.write(p, "  ", p.width)
	p.more(len(all))
	p.errors()
	p.doubts()
	p.results()
}

// withInner lists steps, each before those of its own plan.
func withInner(steps, all []outcome.DryStep) []outcome.DryStep {
	for _, s := range steps {
		all = withInner(s.Steps, append(all, s))
	}
	return all
}

// argumentsLine shows the arguments of a step in one line, or why there are none.
func argumentsLine(s *outcome.DryStep) string {
	switch {
	case s.ArgumentBytes > 0:
		return size(int64(s.ArgumentBytes))
	case s.Arguments != nil:
		return brief(s.Arguments)
	case s.Value != nil:
		return "= " + brief(s.Value)
	case len(s.Steps) > 0:
		return "a plan: " + text.Count(len(s.Steps), "step")
	case s.Calls > 0:
		return "could not be made up"
	case s.Status == outcome.StepSucceeded:
		return "no items"
	case s.Status == outcome.StepNotTaken:
		return "not taken"
	}
	return string(s.Status)
}

func (p *dryPage) errors() {
	if len(p.Errors) == 0 {
		return
	}
	p.head("Errors", "certain, as far as tools return what their examples say")
	for _, e := range p.Errors[:min(len(p.Errors), maxListed)] {
		fmt.Fprintf(p, "  %s  %s\n    %s\n", p.st.red(string(e.Code)), p.st.bold(e.Step), oneLine(e.Message))
		if e.Hint != "" {
			fmt.Fprintf(p, "    %s %s\n", p.st.dim("hint:"), oneLine(e.Hint))
		}
	}
	p.more(len(p.Errors))
}

func (p *dryPage) doubts() {
	if len(p.Doubts) == 0 {
		return
	}
	note := "wrong with these made-up values, and perhaps right with real ones"
	fmt.Fprintf(p, "\n%s  %s\n", p.st.bold("Doubts"), p.st.dim(note))
	writeProblems(&p.Builder, p.Doubts[:min(len(p.Doubts), maxListed)], p.st.yellow, p.st)
	p.more(len(p.Doubts) + p.DoubtsLeftOut)
}

func (p *dryPage) results() {
	if len(p.Output) > 0 {
		p.head("Output", "made up")
		fmt.Fprintf(p, "  %s\n", brief(p.Output))
		return
	}
	if len(p.Results) == 0 {
		return
	}
	p.head("Results", "made up")
	var t table
	for _, r := range p.Results[:min(len(p.Results), maxListed)] {
		t.add(cell{text: r.Step, paint: p.st.green}, plain(brief(r.JSON)))
	}
	t.write(p, "  ", p.width)
	p.more(len(p.Results))
}
