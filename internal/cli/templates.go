package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/saved"
	"github.com/stepjet/stepjet/tool"
)

// templates are the commands of tools that are plans.
type templates struct{ *app }

func templatesCommand(a *app) *cobra.Command {
	t := templates{a}
	c := &cobra.Command{
		Use:   "templates",
		Short: "List, show, apply and save tools that are plans",
		Long: `A template is a tool that is a plan: {"name", "description", "inputSchema", "plan"}. A step calls
it as any tool, and a run may be one call of it: {"template": "refund", "input": {…}}.`,
		Example: `  stepjet templates apply refund.json
  stepjet templates show refund
  stepjet templates save refund --from order-42 --input pay.amount=amount`,
		Args: knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(t.listCommand(), t.showCommand(), t.applyCommand(), t.saveCommand())
	return c
}

func (t templates) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the templates that plans of this tenant may call",
		Example: "  stepjet templates list",
		Args:    exactly(),
		RunE:    t.work(func(cmd *cobra.Command, _ []string) error { return t.list(cmd.Context()) }),
	}
}

// there returns the templates that plans of the tenant may call.
func (t templates) there(ctx context.Context) ([]tool.Registered, error) {
	all, err := t.registered(ctx)
	return slices.DeleteFunc(all, func(x tool.Registered) bool { return !x.Template() }), err
}

func (t templates) list(ctx context.Context) error {
	all, err := t.there(ctx)
	if err != nil {
		return err
	}
	if t.json() {
		list := make([]any, len(all))
		for i := range all {
			list[i] = all[i].Definition
		}
		return t.printJSON(list)
	}
	if len(all) == 0 {
		t.say("no templates; stepjet templates apply FILE registers some")
		return nil
	}
	rows := table{}
	head := func(s string) cell { return cell{text: s, paint: t.style.dim} }
	rows.add(head("TEMPLATE"), head("STEPS"), head("DESCRIPTION"))
	for i := range all {
		d := all[i].Definition
		rows.add(plain(d.Name), cell{text: fmt.Sprint(stepsOf(d)), right: true}, cell{text: oneLine(d.Description), paint: t.style.dim})
	}
	var b bytes.Buffer
	rows.write(&b, "", t.width())
	_, err = t.stdout.Write(b.Bytes())
	return err
}

// stepsOf counts the steps of a template's plan, without those within them.
func stepsOf(d *tool.Definition) int {
	var p struct {
		Steps []json.RawMessage `json:"steps"`
	}
	_ = json.Unmarshal(d.Plan, &p) // the registry holds none that can't be read
	return len(p.Steps)
}

func (t templates) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show TEMPLATE",
		Short:   "Show a template's schemas, its contract and its plan",
		Example: "  stepjet templates show refund",
		Args:    exactly("TEMPLATE"),
		RunE: t.work(func(cmd *cobra.Command, args []string) error {
			all, err := t.there(cmd.Context())
			if err != nil {
				return err
			}
			for i := range all {
				if all[i].Name == args[0] {
					return t.showTool(&all[i], nil, nil)
				}
			}
			return fault.New(fault.NotFound, "no template %q", args[0]).WithHint("stepjet templates list names all")
		}),
	}
}

// readable writes a plan of the registry with the characters that are escaped there.
func readable(plan []byte) []byte {
	return []byte(strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(plan)))
}

func (t templates) applyCommand() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Register the templates of one or more files",
		Long: `Registers definitions with a plan: a JSON array, {"tools": [...]}, or one alone; "-" is standard
input. A file may hold tools without a plan, too, which are registered first. Every plan is checked
against the tools that are registered then, as it is again when a run that calls it begins; all that
is wrong is said at once. Exit code 2 if any was refused.

Runs that began before keep the plan that they began with.`,
		Example: `  stepjet templates apply refund.json
  stepjet templates apply --dry-run templates/*.json`,
		Args: atLeast("FILE"),
		RunE: t.work(func(cmd *cobra.Command, files []string) error { return t.apply(cmd.Context(), files, dry) }),
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what is wrong with the plans themselves; no server is needed")
	return c
}

// saving are the flags of templates save.
type saving struct {
	from, description string
	inputs            []string
	print             bool
}

func (t templates) saveCommand() *cobra.Command {
	var f saving
	c := &cobra.Command{
		Use:   "save NAME --from RUN",
		Short: "Make a template of the plan of a run",
		Long: `Registers the plan of a run as a template. Each --input PATH=NAME makes an input of a constant in
the arguments of a step: "pay.amount=amount" that of the step "pay" at "amount". An approval of the
plan becomes one of each call; its timeout is left to the steps that call it.

It looks at the run and registers the template. Where permissions have a role for each, who looks at
the tenant's runs adds --print, and an operator of the cluster applies that.`,
		Example: `  stepjet templates save refund --from order-42 --input pay.amount=amount --input pay.customer=customer
  stepjet templates save refund --from order-42 --input pay.amount=amount --print > refund.json`,
		Args: exactly("NAME"),
		RunE: t.work(func(cmd *cobra.Command, args []string) error { return t.save(cmd.Context(), args[0], f) }),
	}
	c.Flags().StringVar(&f.from, "from", "", "the `run` whose plan it is")
	c.Flags().StringArrayVar(&f.inputs, "input", nil, "`path=name` of a constant that becomes an input; may be given several times")
	c.Flags().StringVar(&f.description, "description", "", "what it does, for whoever calls it")
	c.Flags().BoolVar(&f.print, "print", false, "print the definition, and register nothing")
	return c
}

func (t templates) save(ctx context.Context, name string, f saving) error {
	if f.from == "" {
		return usage(fmt.Errorf("name the run whose plan it is: --from RUN"))
	}
	inputs := make([]saved.Input, len(f.inputs))
	for i, in := range f.inputs {
		path, name, ok := strings.Cut(in, "=")
		if !ok {
			return usage(fmt.Errorf("--input %s: write PATH=NAME, as in pay.amount=amount", in))
		}
		inputs[i] = saved.Input{Path: path, Name: name}
	}
	body, err := t.planOfRun(ctx, f.from)
	if err != nil {
		return apart(err)
	}
	raw, err := saved.Template(name, f.description, body, inputs)
	if err != nil {
		return err
	}
	if f.print {
		return t.printDocument(raw)
	}
	list := []*applied{{raw: raw, place: name}}
	checkApplied(list)
	if err := t.applyAll(ctx, list); err != nil {
		return apart(err)
	}
	return t.showApplied(list)
}

// apart says how a run's plan becomes a template where who may look at runs is not who may apply templates.
func apart(err error) error {
	return forRole(err, "who sees the run writes the template: add --print > FILE; an operator of the cluster applies it: stepjet templates apply FILE")
}

// planOfRun returns the plan that a run was submitted with.
func (t templates) planOfRun(ctx context.Context, run string) (json.RawMessage, error) {
	s, err := t.open(ctx, place{start: ifKept})
	if err != nil {
		return nil, err
	}
	defer s.close()
	ctx, cancel := t.patience(ctx)
	defer cancel()
	doc, err := s.client.Get(ctx, run)
	if err != nil {
		return nil, why(ctx, err)
	}
	return doc.Plan, nil
}
