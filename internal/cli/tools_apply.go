package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

func (a *app) toolsApplyCommand() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Register the tools of one or more files, without a worker",
		Long: `Registers definitions: a JSON array, {"tools": [...]}, one definition alone, or the tools
file of a toolworker; "-" is standard input. Steps of a tool wait until a worker hosts it.

Every tool is registered by itself: what is wrong with one holds up no other. All that is
wrong with all of them is said at once; an output schema that can't be used is a warning, the
tool is registered without it. Exit code 2 if any was refused.`,
		Example: `  stepjet tools apply tools.json
  stepjet tools apply --dry-run tools/*.json`,
		Args: atLeast("FILE"),
		RunE: a.work(func(cmd *cobra.Command, files []string) error { return a.apply(cmd.Context(), files, dry) }),
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what is wrong; no server is needed")
	return c
}

// applied is what came of one definition.
type applied struct {
	Name    string       `json:"name,omitempty"`
	Status  string       `json:"status"`          // registered, unchanged, changed, refused; valid under --dry-run
	Place   string       `json:"place,omitempty"` // of a refused one: its file, and where it stands there
	Changes []string     `json:"changes,omitempty"`
	Error   *fault.Error `json:"error,omitempty"`
	// Problems are all that is wrong with the definition, Warnings what of it is of no use.
	Problems []fault.Problem `json:"problems,omitempty"`
	Warnings []fault.Problem `json:"warnings,omitempty"`

	raw   json.RawMessage
	place string
	plan  bool // it is a template or an agent
}

func (a *app) apply(ctx context.Context, files []string, dry bool) error {
	list, err := a.definitionsIn(files)
	if err != nil {
		return err
	}
	if !dry {
		if err := a.applyAll(ctx, list); err != nil {
			return err
		}
	}
	return a.showApplied(list)
}

// definitionsIn takes files apart, and refuses what can be refused without a server.
func (a *app) definitionsIn(files []string) (list []*applied, err error) {
	var bad []*fault.Error
	for _, f := range files {
		more, err := a.definitionsOf(f)
		if err != nil {
			bad = append(bad, fault.As(err))
		}
		list = append(list, more...)
	}
	switch len(bad) {
	case 0:
	case 1:
		return nil, bad[0]
	default: // all at once
		said := make([]string, len(bad))
		for i, err := range bad {
			said[i] = err.Message
		}
		return nil, fault.New(bad[0].Code, "%d files can't be used: %s", len(bad), strings.Join(said, "; "))
	}
	checkApplied(list)
	return list, nil
}

// definitionsOf takes a file apart. The parts that a toolworker's file has of its own, such as the command line of a
// program, are no part of what is registered.
func (a *app) definitionsOf(file string) ([]*applied, error) {
	raw, err := a.readFile(file, maxToolsFile)
	if err != nil {
		return nil, err
	}
	parts, err := tool.SplitDefinitions(raw)
	if err != nil {
		return nil, named(file, err)
	}
	if len(parts) == 0 {
		return nil, named(file, fault.New(fault.InvalidTool, "there is no definition in it"))
	}
	list := make([]*applied, len(parts))
	for i := range parts {
		list[i] = &applied{raw: parts[i], place: shown(file) + "#" + tool.PlaceOf(raw, parts, i)}
	}
	if slices.ContainsFunc(parts, forToolworker) {
		f, err := a.toolworkerFile(file, raw)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		for i, d := range f.Definitions() { // all of the file's, in its order
			if list[i].raw, err = json.Marshal(d); err != nil {
				return nil, named(file, err)
			}
		}
	}
	return list, nil
}

// checkApplied refuses what can be refused without a server.
func checkApplied(list []*applied) {
	first, files := map[string]int{}, agentcheck.Files{}
	for i, x := range list {
		d, err := tool.ParseDefinition(x.raw)
		if err != nil {
			var name struct{ Name string }
			_ = json.Unmarshal(x.raw, &name) // for people to find it; there may be none
			x.refuse(name.Name, err)
			x.Problems = append(x.Problems, plan.CheckFlawed(x.raw)...)
			if r := checkAgent(x.raw); len(r.Problems) > 0 {
				x.Problems = r.Problems // those of the definition are among them
			}
			continue
		}
		x.Name, x.Status, x.Warnings, x.plan = d.Name, "valid", d.Warnings(), !d.Hosted()
		if before, twice := first[d.Name]; twice {
			x.refuse(d.Name, fault.New(fault.InvalidTool, "it is given twice: as number %d and %d", before+1, i+1))
			continue
		}
		first[d.Name], files[d.Name] = i, d
		var r plan.Report
		switch {
		case d.Plan != nil:
			r = plan.CheckTemplate(d, nil)
		case d.Agent != nil:
			r = checkAgent(x.raw)
			problems, warnings := agentcheck.Texts(d)
			r.Problems, r.Warnings = append(r.Problems, problems...), append(r.Warnings, warnings...)
		}
		if x.Warnings = append(x.Warnings, r.Warnings...); len(r.Problems) > 0 {
			x.refuse(d.Name, tool.PlanRefusal(d.Name, r.Problems))
		}
	}
	for _, x := range list {
		if p := files.Circle(x.Name); x.Status == "valid" && p != nil {
			x.refuse(x.Name, tool.PlanRefusal(x.Name, []fault.Problem{*p}))
		}
	}
}

// checkAgent reports what is wrong with an agent, as far as that is known without the tools; nothing for other tools.
func checkAgent(raw []byte) plan.Report {
	var d struct{ Agent json.RawMessage }
	if json.Unmarshal(raw, &d) != nil || d.Agent == nil {
		return plan.Report{}
	}
	a, r := agent.Parse(raw, nil)
	if a != nil {
		r.Problems = append(r.Problems, agentcheck.Sinks(a)...)
	}
	return r
}

func (x *applied) refuse(name string, err error) {
	x.Name, x.Status, x.Place, x.Error, x.Problems = name, "refused", x.place, fault.As(err), tool.FlawsOf(err)
}

// applying bounds how many tools are registered at once.
const applying = 8

// applyAll registers what is valid.
func (a *app) applyAll(ctx context.Context, list []*applied) error {
	s, err := a.open(ctx, registry)
	if err != nil {
		return err
	}
	defer s.close()
	return a.applyOn(ctx, s, list)
}

// applyOn is applyAll in a session that is open.
func (a *app) applyOn(ctx context.Context, s *session, list []*applied) error {
	return a.withStore(ctx, s, func(store *kv.Store) error {
		group, each := errgroup.WithContext(ctx)
		group.SetLimit(applying)
		var plans []*applied
		for _, x := range list {
			switch {
			case x.Status == "refused":
			case x.plan:
				plans = append(plans, x)
			default:
				group.Go(func() error { return a.applyOne(each, store, x) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
		return applyPlans(ctx, a, store, plans)
	})
}

// applyPlans registers templates, those that call others after those: as long as one more is taken.
func applyPlans(ctx context.Context, a *app, store *kv.Store, list []*applied) error {
	for before := len(list) + 1; len(list) > 0 && len(list) < before; {
		before = len(list)
		for _, x := range list {
			if err := a.applyOne(ctx, store, x); err != nil {
				return err
			}
		}
		list = slices.DeleteFunc(list, func(x *applied) bool { return x.Status != "refused" })
	}
	return nil
}

// withStore opens the store on a session's connection.
func (a *app) withStore(ctx context.Context, s *session, do func(*kv.Store) error) error {
	opening, cancel := a.patience(ctx)
	defer cancel()
	store, err := kv.Open(opening, s.nc)
	if err != nil {
		return why(opening, err)
	}
	defer store.Close()
	return do(store)
}

func (a *app) applyOne(ctx context.Context, store *kv.Store, x *applied) error {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	before, err := store.Registry.Tool(ctx, x.Name)
	fresh := fault.CodeOf(err) == fault.NotFound
	if err != nil && !fresh {
		return why(ctx, err)
	}
	register := store.Requests.RequestRegister
	if x.plan {
		register = store.Requests.RequestTemplate
	}
	after, err := register(ctx, x.raw)
	x.Warnings, x.Error, x.Problems, x.Place = after.Warnings, nil, nil, ""
	switch {
	case errors.Is(err, &fault.Error{Code: fault.InvalidTool}):
		x.refuse(x.Name, err)
	case err != nil:
		return why(ctx, err)
	case fresh:
		x.Status = "registered"
	case after.Revision == before.Revision:
		x.Status = "unchanged"
	default:
		x.Status, x.Changes = "changed", changes(&before, &after)
	}
	return nil
}

func (a *app) showApplied(list []*applied) error {
	refused := slices.ContainsFunc(list, func(x *applied) bool { return x.Status == "refused" })
	if a.json() {
		if err := a.printJSON(list); err != nil {
			return err
		}
	} else {
		a.printApplied(list)
	}
	if refused {
		return quietly(exitInvalid)
	}
	return nil
}

func (a *app) printApplied(list []*applied) {
	var t table
	for _, x := range list {
		paint, about := a.style.green, []string{strings.Join(x.Changes, "; ")}
		switch x.Status {
		case "refused":
			paint, about = a.style.red, x.refusal()
		case "unchanged":
			paint = a.style.dim
		}
		t.add(cell{text: x.Status, paint: paint}, plain(oneLine(cmp.Or(x.Name, x.Place))), plain(oneLine(about[0])))
		for _, more := range about[1:] {
			t.add(plain(""), plain(""), plain(oneLine(more)))
		}
		for _, w := range x.Warnings {
			t.add(cell{text: "warning", paint: a.style.yellow}, plain(""), plain(oneLine(warningText(x.Name, w))))
		}
	}
	t.write(a.stdout, "", 0)
}

// refusal says why a definition was refused, one flaw a line where there are several.
func (x *applied) refusal() []string {
	flaws := x.Problems
	if len(flaws) < 2 {
		flaws = []fault.Problem{{Message: strings.TrimPrefix(x.Error.Message, fmt.Sprintf("tool %q: ", x.Name)), Hint: x.Error.Hint}}
	}
	lines := make([]string, len(flaws))
	for i, f := range flaws {
		lines[i] = f.Message
		if f.Path != "" {
			lines[i] = f.Path + ": " + f.Message
		}
		if f.Hint != "" {
			lines[i] += "; " + f.Hint
		}
	}
	return lines
}
