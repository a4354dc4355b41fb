package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/graph"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
)

func (a *app) graphCommand() *cobra.Command {
	var format string
	var all bool
	c := &cobra.Command{
		Use:   "graph PLAN",
		Short: "Draw a plan: its waves, Mermaid or Graphviz",
		Long: `Draws the graph of a plan's steps. A wave holds steps of equal depth: all of them may run
at the same time. With -o json prints steps, edges and waves.`,
		Example: `  stepjet graph plan.json
  stepjet graph plan.json --format mermaid >> README.md
  stepjet graph plan.json --format dot | dot -Tsvg > plan.svg`,
		Args: exactly("PLAN"),
		RunE: a.work(func(_ *cobra.Command, args []string) error { return a.graph(args[0], graph.Format(format), all) }),
	}
	c.Flags().StringVarP(&format, "format", "f", string(graph.Text), "draw it as `text|mermaid|dot`")
	c.Flags().BoolVar(&all, "all", false, "show every step of a long wave")
	return c
}

func (a *app) graph(file string, format graph.Format, all bool) error {
	p, err := a.parsePlan(file)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(graph.Describe(p))
	}
	width := 80
	if isTerminal(a.stdout) {
		width, _ = sizeOf(a.stdout)
	}
	text, err := graph.Draw(p, format, graph.Options{Width: width, All: all, Paint: a.paintGraph})
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.stdout, text)
	return err
}

func (a *app) paintGraph(part graph.Part, text string) string {
	switch part {
	case graph.PartWave:
		return a.style.bold(text)
	case graph.PartTool, graph.PartNote:
		return a.style.dim(text)
	case graph.PartDeps:
		return a.style.cyan(text)
	case graph.PartOutput:
		return a.style.green(text)
	default:
		return text
	}
}

// parsePlan reads a plan without looking at its tools. An invalid one is printed with its problems and ends the
// command.
func (a *app) parsePlan(file string) (*plan.Plan, error) {
	body, err := a.readFile(file, maxPlanFile)
	if err != nil {
		return nil, err
	}
	p, report := plan.Parse(body, nil)
	if p != nil {
		return p, nil
	}
	a.tellProblems(judged{file: file, body: body, report: report})
	return nil, quietly(exitInvalid)
}

// tellProblems prints the problems of a plan that is not run: as talk, since there is no data.
func (a *app) tellProblems(j judged) {
	if a.json() {
		_ = a.verdict(j) // nothing more can be said if standard output is gone
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", shown(j.file), a.errStyle.red("invalid"), a.errStyle.dim(text.Count(len(j.report.Problems), "problem")))
	writeLocated(&b, locate(j.body, j.report.Problems), a.errStyle.red, a.errStyle)
	_, _ = io.WriteString(a.stderr, b.String())
}
