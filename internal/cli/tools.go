package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/cli/screen"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/internal/toolgroups"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

func (a *app) toolsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "tools",
		Short: "List, show, call, register, override and export tools",
		Example: `  stepjet tools list
  stepjet tools show divide
  stepjet tools call divide '{"a": 1, "b": 3}'
  stepjet tools apply tools.json
  stepjet tools override divide --set max_concurrency=8
  stepjet tools export --form openai`,
		Args: knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.toolsListCommand(), a.toolsShowCommand(), a.toolsCallCommand(), a.toolsApplyCommand(), a.toolsOverrideCommand(),
		a.toolsRemoveCommand(), a.toolsExportCommand())
	return c
}

func (a *app) toolsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tools that plans of this tenant may call",
		Long: `Lists the registered tools with their contracts, and how much of each is wanted now: WANTED are
the steps that are ready and not done with, LEASED those that workers have of the tool's limit,
OLDEST is for how long the oldest waits that no worker has. The numbers are of all tenants
together. -o json prints the definitions in MCP form, which is what "validate --tools" reads.`,
		Example: `  stepjet tools list
  stepjet tools list -o json > tools.json`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			seen, err := a.look(cmd.Context(), func(string) bool { return !a.json() })
			if err != nil {
				return err
			}
			if a.json() {
				list := make([]any, len(seen.tools))
				for i := range seen.tools {
					list[i] = seen.tools[i].Definition
				}
				return a.printJSON(list)
			}
			return seen.list(a)
		}),
	}
}

func (a *app) registered(ctx context.Context) ([]tool.Registered, error) {
	seen, err := a.look(ctx, func(string) bool { return false })
	return seen.tools, err
}

// toolsSeen are the tools that plans of the tenant may call.
type toolsSeen struct {
	tools  []tool.Registered
	own    map[string]*tool.Override // what the tenant itself overrides of them
	demand *tool.Demands             // nil where it was not asked for, or can't be seen
}

// of returns the demand of a tool; nil where it is not known.
func (s *toolsSeen) of(name string) *tool.Demand {
	if s.demand == nil {
		return nil
	}
	return s.demand.Of(name)
}

// look returns the tools that plans of the tenant may call, and how much is wanted of those that demand picks.
func (a *app) look(ctx context.Context, demand func(name string) bool) (seen toolsSeen, err error) {
	s, err := a.open(ctx, place{start: always, temporary: true, bare: true})
	if err != nil {
		return seen, err
	}
	defer s.close()
	err = a.withStore(ctx, s, func(store *kv.Store) error {
		ctx, cancel := a.patience(ctx)
		defer cancel()
		tools, err := store.Registry.Tools(ctx)
		if err != nil {
			return why(ctx, err)
		}
		seen.tools = slices.DeleteFunc(tools, func(t tool.Registered) bool { return len(t.Tenants) > 0 && !slices.Contains(t.Tenants, a.flags.tenant) })
		others := func(t tool.Registered) bool { return !t.Hosted() || !demand(t.Name) }
		if picked := slices.DeleteFunc(slices.Clone(seen.tools), others); len(picked) > 0 {
			seen.demand = demandOf(ctx, a, store, picked)
		}
		seen.own, err = store.Registry.TenantOverrides(ctx, a.flags.tenant)
		if fault.CodeOf(err) == fault.Permission { // of a role of before, or of another tenant's
			err = nil
		}
		return why(ctx, err)
	})
	for i := range seen.tools {
		seen.tools[i].Contract = seen.own[seen.tools[i].Name].Narrow(seen.tools[i].Contract)
	}
	return seen, err
}

// list prints a line for each tool.
func (s *toolsSeen) list(a *app) error {
	if len(s.tools) == 0 {
		a.say("no tools; start a toolworker")
		return nil
	}
	st := a.style
	t := table{}
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	number := func(s string) cell { return cell{text: s, paint: st.dim, right: true} }
	t.add(head("TOOL"), head("MODE"), number("WANTED"), number("LEASED"), number("OLDEST"), number("ATTEMPTS"), head("DESCRIPTION"))
	for i := range s.tools {
		of := &s.tools[i]
		c := &of.Contract
		about := cell{text: oneLine(of.Definition.Description), paint: st.dim}
		if !of.Hosted() {
			kind := "plan"
			if of.Agent() {
				kind = "agent"
			}
			t.add(plain(of.Name), plain(kind), plain(""), plain(""), plain(""), plain(""), about)
			continue
		}
		wanted, leased, oldest := demandCells(s.of(of.Name), c.Limit)
		t.add(plain(of.Name), plain(fmt.Sprint(c.Mode)), wanted, leased, oldest,
			cell{text: fmt.Sprint(c.MaxAttempts), right: true}, about)
	}
	var b bytes.Buffer
	t.write(&b, "", a.width())
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) toolsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show TOOL",
		Short:   "Show a tool's schemas, its contract, and how much of it is wanted now",
		Example: "  stepjet tools show divide",
		Args:    exactly("TOOL"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			if args[0] == tool.AskTool {
				return a.showAsk()
			}
			seen, err := a.look(cmd.Context(), func(name string) bool { return name == args[0] })
			if err != nil {
				return err
			}
			for i := range seen.tools {
				if seen.tools[i].Name == args[0] {
					return a.showTool(&seen.tools[i], seen.own[args[0]], seen.of(args[0]))
				}
			}
			return noTool(args[0], seen.tools)
		}),
	}
}

func noTool(name string, tools []tool.Registered) error {
	f := fault.New(fault.NotFound, "no tool %q", name)
	for i := range tools {
		if strings.EqualFold(tools[i].Name, name) {
			return f.WithHint("did you mean %s?", tools[i].Name)
		}
	}
	return f.WithHint("stepjet tools list names all")
}

func (a *app) showTool(t *tool.Registered, own *tool.Override, demand *tool.Demand) error {
	if a.json() {
		return a.printJSON(printed(t, own, demand))
	}
	var b bytes.Buffer
	st, d := a.style, t.Definition
	fmt.Fprintf(&b, "%s\n", st.bold(t.Name))
	if d.Description != "" {
		fmt.Fprintf(&b, "%s\n", folded(d, oneLine(d.Description), cmp.Or(a.width(), 80)))
	}
	b.WriteByte('\n')
	rows := a.contractRows(t)
	if own != nil {
		a.tenantRow(rows, own)
	}
	rows.demand(st, demand)
	rows.write(&b, "", 0)
	writeSchemas(&b, st, d, cmp.Or(a.width(), 80))
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// showAsk shows the tool that is in no registry, since no worker hosts it.
func (a *app) showAsk() error {
	d := tool.AskDefinition()
	if a.json() {
		return a.printJSON(d)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s\n", a.style.bold(d.Name), d.Description)
	writeSchemas(&b, a.style, d, 0)
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// folded breaks the lines of what is said of an agent: its texts are long. Those of other tools stay as they are.
func folded(d *tool.Definition, s string, width int) string {
	if len(d.Agent) == 0 {
		return s
	}
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if indent != "" {
			indent += "    "
		}
		lines = append(lines, text.Wrap(line, width, indent)...)
	}
	return strings.Join(lines, "\n")
}

// writeSchemas writes the schemas that a tool declares; those of an agent in lines of a width.
func writeSchemas(b *bytes.Buffer, st style, d *tool.Definition, width int) {
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"input schema", d.InputSchema}, {"output schema", d.OutputSchema}, {"plan", readable(d.Plan)}, {"agent", readable(d.Agent)}} {
		if len(part.raw) > 0 {
			fmt.Fprintf(b, "\n%s\n%s\n", st.dim(part.name), folded(d, screen.Readable(part.raw), width))
		}
	}
}

// printed is the registry's entry, with what the tenant overrides of it and how much of it is wanted.
func printed(t *tool.Registered, own *tool.Override, demand *tool.Demand) map[string]any {
	raw, _ := json.Marshal(t) // it was read from JSON
	fields := map[string]any{}
	_ = json.Unmarshal(raw, &fields)
	if own != nil {
		fields["tenant_override"] = own
	}
	if demand != nil {
		fields["demand"] = demand
	}
	return fields
}

func (a *app) toolsCallCommand() *cobra.Command {
	var tools string
	var wait time.Duration
	c := &cobra.Command{
		Use:   "call TOOL [ARGUMENTS]",
		Short: "Call one tool and print its result",
		Long: `Runs a plan of one step: the tool with the arguments, a JSON object ("-" reads standard input,
absent means {}), and prints the step's result.`,
		Example: `  stepjet tools call divide '{"a": 1, "b": 3}'`,
		Args:    atLeast("TOOL"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage(errors.New("one argument too many: " + args[2]))
			}
			given := "{}"
			if len(args) == 2 {
				given = args[1]
			}
			return a.call(cmd.Context(), args[0], given, place{start: always, tools: tools, temporary: true}, wait)
		}),
	}
	c.Flags().StringVar(&tools, "tools", "", "tools `file` for the toolworker in this process; default: the built-in tools")
	c.Flags().DurationVar(&wait, "wait", 0, "wait for this `duration` at most")
	return c
}

func (a *app) call(ctx context.Context, name, arguments string, where place, wait time.Duration) error {
	raw := []byte(arguments)
	if arguments == "-" {
		var err error
		if raw, err = a.readFile("-", maxPlanFile); err != nil {
			return err
		}
	}
	if !json.Valid(raw) {
		return fault.New(fault.InvalidConfig, "the arguments are no JSON").WithHint("a JSON object in single quotes: '{\"location\": \"Tokyo\"}'")
	}
	called, _ := json.Marshal(name) // strings can't fail
	body := fmt.Appendf(nil, `{"steps":[{"id":"call","tool":%s,"arguments":%s}]}`, called, raw)
	s, err := a.open(ctx, where)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := waitFor(ctx, wait)
	defer cancel()
	id := nuid.Next()
	r, err := a.submit(ctx, s, body, id)
	if err != nil {
		return err
	}
	out, err := r.Wait(ctx)
	if err != nil {
		a.tellLater(s, id, err)
		return why(ctx, err)
	}
	return a.called(out)
}

// called prints the result of the one step, or what was wrong with it.
func (a *app) called(out *outcome.Outcome) error {
	if raw, ok := out.Results.Get("call"); ok {
		return a.printDocument(raw)
	}
	for _, p := range out.Problems {
		a.show(&fault.Error{Code: p.Code, Message: strings.TrimPrefix(p.Path, "/steps/0") + " " + p.Message, Hint: p.Hint}, "")
	}
	for _, e := range out.Errors {
		a.show(&fault.Error{Code: e.Code, Message: e.Message, Hint: e.Hint}, "")
	}
	return quietly(codeOfRun(out.Status))
}

// demandOf asks how much of tools is wanted now. nil, and a line that says why, where that can't be seen: all else of
// them can be shown.
func demandOf(ctx context.Context, a *app, store *kv.Store, tools []tool.Registered) *tool.Demands {
	d, err := store.Requests.Demand(ctx, tools)
	if err != nil {
		a.say("how much of them is wanted can't be seen: %s", fault.As(kv.Fault(err)).Message)
		return nil
	}
	if len(d.Unsure) > 0 {
		a.say("what orchestrators hold back is not known for the runs in %s of 64: no orchestrator, or two, answered for them",
			text.Count(len(d.Unsure), "partition"))
	}
	return d
}

// demandCells are the columns of a tool's demand: how many steps, how many of the limit workers have, and for how long
// the oldest waits.
func demandCells(d *tool.Demand, limit int) (wanted, leased, oldest cell) {
	wanted, leased, oldest = cell{text: "?", right: true}, cell{text: strconv.Itoa(limit), right: true}, cell{right: true}
	if d == nil {
		return wanted, leased, oldest
	}
	if !d.NoConsumer {
		wanted.text, leased.text = strconv.Itoa(d.Steps), fmt.Sprintf("%d of %d", d.Leased, d.Limit)
	}
	if d.OldestMS > 0 {
		oldest.text = took(d.Oldest())
	}
	return wanted, leased, oldest
}

// demand says of one tool where the steps are that are wanted.
func (rows *table) demand(st style, d *tool.Demand) {
	if d == nil {
		return
	}
	row := func(name, value string) { rows.add(cell{text: name, paint: st.dim}, plain(value)) }
	if d.NoConsumer {
		row("wanted", "not known: the consumer of the tool is gone (stepjet doctor)")
		return
	}
	row("wanted", fmt.Sprintf("%s: %d leased of %d, %d queued, %d held back", text.Count(d.Steps, "step"), d.Leased, d.Limit, d.Queued, d.Held))
	if d.OldestMS > 0 {
		row("oldest waits", took(d.Oldest()))
	}
}

// groupsCommand is about groups of tools.
func groupsCommand(a *app) *cobra.Command {
	return toolgroups.Command(toolgroups.Terminal{
		Work: a.work, Read: a.readFile, Say: a.say, JSON: a.json, Document: a.printJSON, Invalid: quietly(exitInvalid),
		Open: a.onStore,
		Text: a.texts(a.stdout),
	})
}

// texts writes lines of cells, in columns.
func (a *app) texts(w io.Writer) func([][]string) {
	return func(lines [][]string) {
		var t table
		for _, line := range lines {
			var cells []cell
			for _, text := range line {
				cells = append(cells, plain(text))
			}
			t.add(cells...)
		}
		t.write(w, "", a.width())
	}
}

// permitFlag is what --permissions says.
type permitFlag struct{ list string }

func (p *permitFlag) add(f *pflag.FlagSet) {
	f.StringVar(&p.list, "permissions", "",
		"`names` of what the run may use (group:NAME: its tools alone), or none; default: all")
}

// permissions returns what the run may use; nil for everything.
func (p *permitFlag) permissions() []string {
	if p.list == group.None {
		return []string{}
	}
	return commaList(p.list)
}
