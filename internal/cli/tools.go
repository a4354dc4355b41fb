package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
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
		Long: `Lists the registered tools with their contracts. -o json prints the definitions in MCP form,
which is what "validate --tools" reads.`,
		Example: `  stepjet tools list
  stepjet tools list -o json > tools.json`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			tools, err := a.registered(cmd.Context())
			if err != nil {
				return err
			}
			if a.json() {
				list := make([]any, len(tools))
				for i := range tools {
					list[i] = tools[i].Definition
				}
				return a.printJSON(list)
			}
			return a.listTools(tools)
		}),
	}
}

func (a *app) registered(ctx context.Context) ([]tool.Registered, error) {
	tools, _, err := a.registeredAs(ctx)
	return tools, err
}

// registeredAs returns the tools that plans of the tenant may call, and what the tenant itself overrides of them.
func (a *app) registeredAs(ctx context.Context) (tools []tool.Registered, own map[string]*tool.Override, err error) {
	s, err := a.open(ctx, place{start: always, temporary: true, bare: true})
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	err = a.withStore(ctx, s, func(store *kv.Store) error {
		ctx, cancel := a.patience(ctx)
		defer cancel()
		if tools, err = store.Registry.Tools(ctx); err != nil {
			return why(ctx, err)
		}
		tools = slices.DeleteFunc(tools, func(t tool.Registered) bool { return len(t.Tenants) > 0 && !slices.Contains(t.Tenants, a.flags.tenant) })
		own, err = store.Registry.TenantOverrides(ctx, a.flags.tenant)
		if fault.CodeOf(err) == fault.Permission { // of a role of before, or of another tenant's
			err = nil
		}
		return why(ctx, err)
	})
	for i := range tools {
		tools[i].Contract = own[tools[i].Name].Narrow(tools[i].Contract)
	}
	return tools, own, err
}

func (a *app) listTools(tools []tool.Registered) error {
	if len(tools) == 0 {
		a.say("no tools; start a toolworker")
		return nil
	}
	st := a.style
	t := table{}
	head := func(s string) cell { return cell{text: s, paint: st.dim} }
	t.add(head("TOOL"), head("MODE"), cell{text: "LIMIT", paint: st.dim, right: true}, cell{text: "ATTEMPTS", paint: st.dim, right: true}, head("DESCRIPTION"))
	for i := range tools {
		c := &tools[i].Contract
		t.add(plain(tools[i].Name), plain(fmt.Sprint(c.Mode)), cell{text: fmt.Sprint(c.Limit), right: true},
			cell{text: fmt.Sprint(c.MaxAttempts), right: true}, cell{text: oneLine(tools[i].Definition.Description), paint: st.dim})
	}
	var b bytes.Buffer
	t.write(&b, "", a.width())
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) toolsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show TOOL",
		Short:   "Show a tool's schemas and its contract, as declared and as overridden",
		Example: "  stepjet tools show divide",
		Args:    exactly("TOOL"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			tools, own, err := a.registeredAs(cmd.Context())
			if err != nil {
				return err
			}
			for i := range tools {
				if tools[i].Name == args[0] {
					return a.showTool(&tools[i], own[args[0]])
				}
			}
			return noTool(args[0], tools)
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

func (a *app) showTool(t *tool.Registered, own *tool.Override) error {
	if a.json() {
		return a.printTool(t, own)
	}
	var b bytes.Buffer
	st, d := a.style, t.Definition
	fmt.Fprintf(&b, "%s\n", st.bold(t.Name))
	if d.Description != "" {
		fmt.Fprintf(&b, "%s\n", oneLine(d.Description))
	}
	b.WriteByte('\n')
	rows := a.contractRows(t)
	if own != nil {
		a.tenantRow(rows, own)
	}
	rows.write(&b, "", 0)
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"input schema", d.InputSchema}, {"output schema", d.OutputSchema}} {
		if part.raw != nil {
			fmt.Fprintf(&b, "\n%s\n", st.dim(part.name))
			if json.Indent(&b, part.raw, "", "  ") != nil {
				b.Write(part.raw)
			}
			b.WriteByte('\n')
		}
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// printTool prints the registry's entry, with what the tenant overrides of it.
func (a *app) printTool(t *tool.Registered, own *tool.Override) error {
	if own == nil {
		return a.printJSON(t)
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	fields["tenant_override"] = own
	return a.printJSON(fields)
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
