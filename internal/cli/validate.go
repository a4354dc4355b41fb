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
		Long: `Reports all problems of each plan at once, with a JSON pointer to the place and a hint how
to mend it, and what a valid plan will ask people. "-" is standard input. Nothing runs.

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
		if err := a.verdict(name, p, report, known.rules); err != nil {
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

// verdict says what is wrong with a plan, or what a valid one will ask people; rules are what contracts ask for, by tool.
func (a *app) verdict(name string, p *plan.Plan, r plan.Report, rules dryrun.Rules) error {
	var questions []dryrun.Foreseen
	if p != nil {
		questions = rules.Questions(p)
	}
	if a.json() {
		return a.printJSON(struct {
			File      string            `json:"file"`
			Valid     bool              `json:"valid"`
			Problems  []fault.Problem   `json:"problems"`
			Warnings  []fault.Problem   `json:"warnings"`
			Questions []dryrun.Foreseen `json:"questions,omitempty"`
		}{name, p != nil, list(r.Problems), list(r.Warnings), questions})
	}
	var b strings.Builder
	st := a.style
	if p != nil {
		fmt.Fprintf(&b, "%s  %s  %s\n", shown(name), st.green("valid"),
			st.dim(fmt.Sprintf("%s, %s", text.Count(len(p.Steps), "step"), text.Count(p.Depth, "wave"))))
	} else {
		fmt.Fprintf(&b, "%s  %s  %s\n", shown(name), st.red("invalid"), st.dim(text.Count(len(r.Problems), "problem")))
	}
	writeProblems(&b, r.Problems, st.red, st)
	writeProblems(&b, r.Warnings, func(s string) string { return st.yellow("warning " + s) }, st)
	writeForeseen(&b, st, questions)
	if len(r.Problems)+len(r.Warnings)+len(questions) > 0 {
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// list is never null in JSON.
func list(p []fault.Problem) []fault.Problem {
	if p == nil {
		return []fault.Problem{}
	}
	return p
}

// writeProblems prints problems one below the other: code and place, what is wrong, how to mend it.
func writeProblems(b *strings.Builder, problems []fault.Problem, paint func(string) string, st style) {
	for _, p := range problems {
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
		fmt.Fprintf(b, "\n  %s  %s\n    %s\n", paint(string(p.Code)), st.bold(oneLine(place)), oneLine(p.Message))
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
