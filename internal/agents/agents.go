// Package agents is "stepjet agents": what the commands print of tools that are agents, and of the rounds of their runs.
package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Terminal is what the commands need of the program that they belong to.
type Terminal struct {
	// Work wraps what a command does: its errors are shown, and end it with their exit codes.
	Work func(func(*cobra.Command, []string) error) func(*cobra.Command, []string) error
	// Tools returns the tools that plans of the tenant may call.
	Tools func(context.Context) ([]tool.Registered, error)
	// Show prints a tool's description, contract, schemas and loop, or its entry of the registry as JSON.
	Show func(*tool.Registered) error
	// Apply registers the definitions of files; dry only says what is wrong with them.
	Apply func(ctx context.Context, files []string, dry bool) error
	// Read reads a file, or standard input for "-", up to a number of bytes.
	Read func(name string, most int64) ([]byte, error)
	// Say tells a person something, beside the output.
	Say func(format string, args ...any)
	// JSON says that a document is wanted, and Document writes it; Text writes lines of cells otherwise.
	JSON     func() bool
	Document func(any) error
	Text     func(lines [][]string)
	// Width is how many columns a line may have.
	Width func() int
	// Speak says something to an agent of a run.
	Speak func(ctx context.Context, run string, w client.Word) (*client.Heard, error)
	// Run is the command that runs a plan of one step, Step, and follows it.
	Run func(plan func(args []string) ([]byte, error)) *cobra.Command
}

// Command returns the command.
func Command(t Terminal) *cobra.Command {
	c := &cobra.Command{
		Use:   "agents",
		Short: "Apply, list, show, run and steer agents: loops that a planner steers",
		Long: `An agent is a tool that is a loop: a planner, mostly a language model, is asked what to do next, what
it answers is run, and it is asked again with what came of it. A definition is {"name", "description",
"inputSchema", "agent": {"planner": {"tool": "model"}, "tools": ["search"]}}; a step calls it as any tool.`,
		Example: `  stepjet agents apply researcher.json
  stepjet agents show researcher
  stepjet agents run researcher --input '{"topic": "tides"}'
  stepjet agents say RUN "In German, please."`,
		Args: cobra.NoArgs, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(apply(t), list(t), show(t), run(t), say(t))
	return c
}

func apply(t Terminal) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "apply FILE…", Short: "Register the agents of one or more files",
		Long: `Registers definitions with a loop: a JSON array, {"tools": [...]}, or one alone; "-" is standard
input. What is wrong with a definition is said here, all at once; then it is checked against the tools
that are registered, so its planner and its tools have to be there. A file may hold other tools, too,
which are registered first. Exit code 2 if any was refused.

Runs that began before keep the agent that they began with.`,
		Example: `  stepjet agents apply researcher.json
  stepjet agents apply --dry-run agents/*.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: t.Work(func(cmd *cobra.Command, files []string) error { return t.Apply(cmd.Context(), files, dry) }),
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what is wrong with the definitions themselves; no server is needed")
	return c
}

// there returns the agents that plans of the tenant may call.
func (t Terminal) there(ctx context.Context) ([]tool.Registered, error) {
	all, err := t.Tools(ctx)
	return slices.DeleteFunc(all, func(x tool.Registered) bool { return !x.Agent() }), err
}

func list(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents that plans of this tenant may call",
		Example: "  stepjet agents list -o json", Args: cobra.NoArgs,
		RunE: t.Work(func(cmd *cobra.Command, _ []string) error {
			all, err := t.there(cmd.Context())
			if err != nil {
				return err
			}
			if t.JSON() {
				definitions := make([]*tool.Definition, len(all))
				for i := range all {
					definitions[i] = all[i].Definition
				}
				return t.Document(definitions)
			}
			if len(all) == 0 {
				t.Say("no agents; stepjet agents apply FILE registers some")
				return nil
			}
			lines := [][]string{{"AGENT", "PLANNER", "TOOLS", "ROUNDS", "BUDGET", "DESCRIPTION"}}
			for i := range all {
				lines = append(lines, line(all[i].Definition))
			}
			fit(lines, t.Width())
			t.Text(lines)
			return nil
		}),
	}
}

// leastAbout is how many columns of a list are for what an agent is for.
const leastAbout = 16

// fit shortens the cells of a list so that no line takes more columns: the widest columns first, but for the last, which
// gets what is left.
func fit(lines [][]string, width int) {
	last := len(lines[0]) - 1
	widths, used := make([]int, last), 0
	for i := range widths {
		for _, line := range lines {
			line[i] = text.OneLine(line[i])
			widths[i] = max(widths[i], text.Columns(line[i]))
		}
		used += widths[i] + 2
	}
	for ; used+leastAbout > width; used-- {
		widest := 0
		for i := range widths {
			if i > 0 && (widths[i] > widths[widest] || widest == 0 && 2*widths[i] > widths[0]) { // names are typed again
				widest = i
			}
		}
		if widths[widest] <= leastAbout/2 {
			break // there is no more to be taken away
		}
		widths[widest]--
	}
	for _, line := range lines {
		for i := range widths {
			line[i], _ = text.Fit(line[i], widths[i])
		}
		line[last], _ = text.Fit(text.OneLine(line[last]), max(width-used, leastAbout/2))
	}
}

// line is an agent in a list.
func line(d *tool.Definition) []string {
	about := text.Clip(strings.Join(strings.Fields(d.Description), " "), 100)
	body, err := json.Marshal(d)
	if err != nil {
		return []string{d.Name, "?", "?", "?", "?", about}
	}
	a, _ := agent.Parse(body, nil)
	if a == nil { // of a newer Stepjet
		return []string{d.Name, "?", "?", "?", "?", about}
	}
	planner := a.Planner.Tool
	if a.Planner.Model != "" {
		planner += " (" + a.Planner.Model + ")"
	}
	return []string{d.Name, planner, strconv.Itoa(len(a.Entries())), strconv.Itoa(a.MaxRounds), budget(a.Budget), about}
}

// budget says what an agent may use up.
func budget(b agent.Budget) string {
	var parts []string
	if b.Steps > 0 {
		parts = append(parts, text.Count(int(b.Steps), "step"))
	}
	if b.Tokens > 0 {
		parts = append(parts, text.Count(int(b.Tokens), "token"))
	}
	if b.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%g", b.CostUSD))
	}
	if b.Time > 0 {
		parts = append(parts, b.Time.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

func show(t Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "show AGENT", Short: "Show an agent's schemas, its contract and its loop",
		Example: "  stepjet agents show researcher", Args: cobra.ExactArgs(1),
		RunE: t.Work(func(cmd *cobra.Command, args []string) error {
			all, err := t.there(cmd.Context())
			if err != nil {
				return err
			}
			for i := range all {
				if all[i].Name == args[0] {
					return t.Show(&all[i])
				}
			}
			return fault.New(fault.NotFound, "no agent %q", args[0]).WithHint("stepjet agents list names all")
		}),
	}
}

// Step is the step that calls the agent, in the plan that "agents run" submits.
const Step = client.AgentStep

// maxInput is the most that is read of a file of input, in bytes: more than a plan may have.
const maxInput = 1 << 20

func run(t Terminal) *cobra.Command {
	var input string
	c := t.Run(func(args []string) ([]byte, error) { return planOf(t, args[0], input) })
	c.Use, c.Short, c.Args = "run AGENT", "Run an agent, and print its outcome", cobra.ExactArgs(1)
	c.Long = `Submits a plan of one step, "` + Step + `", which calls the agent, and follows its rounds on standard error:
the call of the planner, then the calls that it answered with. Standard output gets the outcome, with
the agent's output as the result of that step. Once it is over, a line for each round says what its
planner's call took, in tokens too where the planner tells, and how its calls went. A terminal shows
the rounds in place while they form, unless NO_COLOR is set.

What plans for the agent has to be hosted by a worker: a program of yours, modelworker, or this command
itself, with --model ollama:qwen3:4b, openai:ID or anthropic:ID (whose key is in OPENAI_API_KEY or
ANTHROPIC_API_KEY; OLLAMA_HOST, OPENAI_BASE_URL and ANTHROPIC_BASE_URL say where they are), or with --models
and a file as modelworker has it. A model that is named in a word plans for agents below this one, too.

An interrupt leaves the run, which goes on without this command, and says how to come back to it; at a
terminal a second one within 3 s cancels it.

Everything else is as "stepjet run" has it: --run, --wait, where it runs, what is asked at a terminal,
and the exit codes.`
	c.Example = `  stepjet agents run researcher --input '{"topic": "tides"}'
  stepjet agents run researcher --input @topic.json -o json | jq .results.agent
  stepjet agents run researcher --apply researcher.json --model ollama:qwen3:4b --input @topic.json
  stepjet agents run researcher --run tides-1 --input @- < topic.json`
	c.Flags().StringVar(&input, "input", "{}", "what the agent is called with: `JSON`, @FILE, or @- for standard input")
	return c
}

// planOf is the plan of one call of an agent.
func planOf(t Terminal, name, input string) ([]byte, error) {
	raw, from := []byte(input), "--input"
	if file, is := strings.CutPrefix(input, "@"); is {
		var err error
		if raw, err = t.Read(file, maxInput); err != nil {
			return nil, err
		}
		raw = text.Unmarked(raw)
		from = "the input in " + file
	}
	if len(raw) >= maxInput {
		return nil, fault.New(fault.InvalidConfig, "%s has %d bytes or more, and the plan that it goes into has at most %d", from, maxInput, plan.MaxBytes).
			WithHint("put what is large where the agent's tools find it, and name it in the input")
	}
	body, err := client.AgentPlan(name, bytes.TrimSpace(raw))
	if fault.CodeOf(err) == fault.InvalidArguments {
		return nil, fault.New(fault.InvalidConfig, "%s is no JSON object", from).
			WithHint(`an object in single quotes, or a file: --input '{"topic": "tides"}', --input @topic.json`)
	}
	return body, err
}
