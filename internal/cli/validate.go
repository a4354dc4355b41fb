package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

func (a *app) validateCommand() *cobra.Command {
	var tools string
	c := &cobra.Command{
		Use:   "validate PLAN…",
		Short: "Find every problem of one or more plans",
		Long: `Reports all problems of each plan at once, with a JSON pointer, line and column of the place,
and a hint how to mend it, and what a valid plan will ask people. "-" is standard input.
Nothing runs.

Tools and their arguments are checked against --tools, a JSON array of definitions in MCP
form, or against the registry where a server is given or a "stepjet dev" is running; with
neither against the built-in tools, which are those that "stepjet run" has then.

Exit code 2 if any plan is invalid.`,
		Example: `  stepjet validate plan.json
  stepjet validate --tools tools.json plans/*.json
  llm "plan a trip" | stepjet validate -o json -`,
		Args: atLeast("PLAN"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args, tools) }),
	}
	c.Flags().StringVar(&tools, "tools", "", "`file` with tool definitions to check against")
	return c
}

func (a *app) validate(ctx context.Context, files []string, tools string) error {
	known, err := a.knownTools(ctx, tools)
	if err != nil {
		return err
	}
	bad := 0
	for _, name := range files {
		body, err := a.readFile(name, maxPlanFile)
		if err != nil {
			return err
		}
		p, report := plan.Parse(body, asCatalog(known))
		if p == nil {
			bad++
		}
		if err := a.verdict(judged{name, body, p, report, known.rules}); err != nil {
			return err
		}
	}
	if len(files) > 1 && !a.json() {
		a.say("%s, %d invalid", text.Count(len(files), "plan"), bad)
	}
	if bad > 0 {
		return quietly(exitInvalid)
	}
	return nil
}

// knownTools returns what to check against: a file, else the registry of a server that was named or of a "stepjet dev"
// that runs, else the tools that "stepjet run" would have in this process.
func (a *app) knownTools(ctx context.Context, file string) (*catalog, error) {
	dir, _ := a.flags.dir()
	if _, running := dev.Running(dir); file != "" || !running && !a.flags.given() {
		d, err := a.definitionsHere(file)
		if err != nil {
			return nil, err
		}
		return newCatalog(d)
	}
	s, err := a.open(ctx, remoteOnly)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ctx, cancel := a.patience(ctx)
	defer cancel()
	registered, err := s.client.Tools(ctx)
	if err != nil {
		return nil, err
	}
	d := make([]*tool.Definition, len(registered))
	for i := range registered {
		d[i] = registered[i].Effective()
	}
	return newCatalog(d)
}

// definitionsHere returns the tools of a file, or the built-in ones where none is named.
func (a *app) definitionsHere(file string) ([]*tool.Definition, error) {
	if file != "" {
		return a.toolsFile(file)
	}
	a.say("%s", a.errStyle.dim("no server given: checked against the built-in tools; --tools FILE names others"))
	return hosted.Builtin().Definitions(), nil
}

// judged is what was found of one plan.
type judged struct {
	file   string
	body   []byte     // as it was read
	plan   *plan.Plan // nil for one that is invalid
	report plan.Report
	rules  dryrun.Rules
}

// located is a problem, and where it is in the text of the plan.
type located struct {
	fault.Problem
	Place *plan.Place `json:"place,omitempty"` // nil where there is no text
}

// locate finds the places of problems in a text, which is nil for none. It never returns nil.
func locate(body []byte, problems []fault.Problem) []located {
	all, paths := make([]located, len(problems)), make([]string, len(problems))
	for i := range problems {
		all[i].Problem, paths[i] = problems[i], problems[i].Path
	}
	if body == nil {
		return all
	}
	for i, at := range plan.Locate(body, paths...) {
		all[i].Place = &at
	}
	return all
}

// verdict says what is wrong with a plan, or what a valid one will ask people.
func (a *app) verdict(j judged) error {
	var questions []dryrun.Foreseen
	if j.plan != nil {
		questions = j.rules.Questions(j.plan)
	}
	problems, warnings := locate(j.body, j.report.Problems), locate(j.body, j.report.Warnings)
	if a.json() {
		return a.printJSON(struct {
			File      string            `json:"file"`
			Valid     bool              `json:"valid"`
			Problems  []located         `json:"problems"`
			Warnings  []located         `json:"warnings"`
			Questions []dryrun.Foreseen `json:"questions,omitempty"`
		}{j.file, j.plan != nil, problems, warnings, questions})
	}
	var b strings.Builder
	st := a.style
	if j.plan != nil {
		fmt.Fprintf(&b, "%s  %s  %s\n", shown(j.file), st.green("valid"),
			st.dim(fmt.Sprintf("%s, %s", text.Count(len(j.plan.Steps), "step"), text.Count(j.plan.Depth, "wave"))))
	} else {
		fmt.Fprintf(&b, "%s  %s  %s\n", shown(j.file), st.red("invalid"), st.dim(text.Count(len(problems), "problem")))
	}
	writeLocated(&b, problems, st.red, st)
	writeLocated(&b, warnings, func(s string) string { return st.yellow("warning " + s) }, st)
	writeForeseen(&b, st, questions)
	if len(problems)+len(warnings)+len(questions) > 0 {
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// writeProblems prints problems one below the other: code and place, what is wrong, how to mend it.
func writeProblems(b *strings.Builder, problems []fault.Problem, paint func(string) string, st style) {
	writeLocated(b, locate(nil, problems), paint, st)
}

// writeLocated prints problems with the lines and columns where they are.
func writeLocated(b *strings.Builder, problems []located, paint func(string) string, st style) {
	for i := range problems {
		p := &problems[i]
		place := p.Path
		if place == "" {
			place = "(the whole plan)"
		}
		if p.Step != "" {
			place += " (" + p.Step + ")"
		}
		if n := p.Places() - 1; n > 0 && p.Path != "" {
			place += fmt.Sprintf(" and %s", text.Count(n, "more place"))
		}
		place = st.bold(oneLine(place))
		if p.Place != nil && p.Path != "" {
			place += st.dim(fmt.Sprintf("  line %d, column %d", p.Place.Line, p.Place.Column))
		}
		fmt.Fprintf(b, "\n  %s  %s\n    %s\n", paint(string(p.Code)), place, oneLine(p.Message))
		if p.Hint != "" {
			fmt.Fprintf(b, "    %s %s\n", st.dim("hint:"), oneLine(p.Hint))
		}
	}
}

// writeForeseen lists the questions of a plan below its verdict.
func writeForeseen(b *strings.Builder, st style, all []dryrun.Foreseen) {
	if len(all) == 0 {
		return
	}
	b.WriteByte('\n')
	var t table
	for _, q := range all {
		step := q.Step
		if step == subjects.RootScope {
			step = "the plan"
		}
		t.add(cell{text: "question", paint: st.yellow}, cell{text: oneLine(step), paint: st.bold}, plain(oneLine(q.String())))
	}
	t.write(b, "  ", 0)
}
