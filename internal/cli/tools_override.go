package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// overriding is what the flags of "tools override" say.
type overriding struct {
	set              []string
	context, tenants string
	file, by         string
	clear, only      bool
}

func (a *app) toolsOverrideCommand() *cobra.Command {
	o := &overriding{}
	c := &cobra.Command{
		Use:   "override TOOL",
		Short: "Set what counts in place of what a tool's worker declares",
		Long: `Sets an operator's override: it beats the declared x-orchestration field by field, at once and
whenever the tool is registered again, and runs that have started keep what they started with.
The tool need not be registered yet. The flags replace an override that was set before.

--set takes a field of x-orchestration and a JSON value or a word, nested fields with dots;
null takes a declared field away. --context-filter says which keys of a run's context leave
for the tool's workers: pass-through, none, allow-keys=a,b or deny-keys=a,b. An empty --tenants
opens the tool to all.

What contradicts the declared contract is refused, and changes nothing.

With --tenant-only it counts for the runs of --tenant alone, and may only take away: fewer attempts
(retry.max_attempts), shorter times (timeout_ms, wait_timeout_ms), fewer keys of the context.
Everything else is shared by all tenants. Such an override stands beside one for all.`,
		Example: `  stepjet tools override search --set max_concurrency=8 --set retry.max_attempts=5
  stepjet tools override crm.write --tenants acme --context-filter allow-keys=tenantId,locale
  stepjet tools override search --tenant acme --tenant-only --set timeout_ms=5000
  stepjet tools override search --clear`,
		Args: exactly("TOOL"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			raw, err := a.overrideBody(o, cmd.Flags())
			if err != nil {
				return err
			}
			return a.override(cmd.Context(), args[0], raw, o.only)
		}),
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.set, "set", nil, "`FIELD=VALUE` of x-orchestration; may be given several times")
	f.StringVar(&o.context, "context-filter", "", "`filter` of a run's context")
	f.StringVar(&o.tenants, "tenants", "", "`tenants` that may use the tool, separated by commas")
	f.StringVar(&o.file, "file", "", "`file` that holds the override as JSON; - is standard input")
	f.StringVar(&o.by, "by", "", "`who` sets it, for others to read (default: the user's name)")
	f.BoolVar(&o.only, "tenant-only", false, "for the runs of --tenant alone")
	f.BoolVar(&o.clear, "clear", false, "go back to what the worker declares")
	return c
}

// overrideBody returns the body of the request; nothing for --clear.
func (a *app) overrideBody(o *overriding, f *pflag.FlagSet) ([]byte, error) {
	fields := len(o.set) > 0 || o.context != "" || f.Changed("tenants")
	if howMany(o.clear, o.file != "", fields) != 1 {
		return nil, usage(fmt.Errorf("give one of --set (with --context-filter and --tenants), --file and --clear"))
	}
	if o.clear {
		return nil, nil
	}
	var v tool.Override
	if o.file != "" {
		raw, err := a.readFile(o.file, tool.MaxOverride+1)
		if err != nil {
			return nil, err
		}
		read, err := tool.ParseOverride(raw)
		if err != nil {
			return nil, named(o.file, err)
		}
		v = *read
	} else if err := o.read(&v, f.Changed("tenants")); err != nil {
		return nil, err
	}
	if o.by != "" || v.By == "" {
		v.By = o.by
	}
	if v.By == "" {
		v.By = userName(a.env.Getenv)
	}
	return json.Marshal(v)
}

func howMany(all ...bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// read makes an override of single fields.
func (o *overriding) read(v *tool.Override, tenants bool) error {
	x := map[string]any{}
	for _, s := range o.set {
		if err := setField(x, s); err != nil {
			return usage(err)
		}
	}
	if len(x) > 0 {
		v.Orchestration, _ = json.Marshal(x) // maps of what was read as JSON can't fail
	}
	if o.context != "" {
		filter, keys, _ := strings.Cut(o.context, "=")
		v.Context = &tool.ContextFilter{Filter: tool.FilterMode(filter), Keys: commaList(keys)}
		if err := v.Context.Validate(); err != nil {
			return usage(fmt.Errorf("--context-filter: %w", err))
		}
	}
	if tenants {
		v.Tenants = append([]string{}, commaList(o.tenants)...)
	}
	return nil
}

func commaList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// setField puts a value into an object at a.b.c=value. What is no JSON is a word.
func setField(x map[string]any, s string) error {
	path, text, ok := strings.Cut(s, "=")
	if !ok || path == "" {
		return fmt.Errorf("--set %s: write FIELD=VALUE, such as max_concurrency=8", s)
	}
	var value any = text
	if json.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := x[name].(map[string]any)
		if !ok {
			if x[name] != nil {
				return fmt.Errorf("--set %s: %s is set to a value as well", s, name)
			}
			inner = map[string]any{}
			x[name] = inner
		}
		x = inner
	}
	x[names[len(names)-1]] = value
	return nil
}

func (a *app) override(ctx context.Context, name string, raw []byte, only bool) error {
	s, err := a.open(ctx, registry)
	if err != nil {
		return err
	}
	defer s.close()
	var o kv.Overridden
	err = a.withStore(ctx, s, func(store *kv.Store) error {
		asking, cancel := a.patience(ctx)
		defer cancel()
		if only {
			o, err = store.Requests.RequestTenantOverride(asking, a.flags.tenant, name, raw)
		} else {
			o, err = store.Requests.RequestOverride(asking, name, raw)
		}
		return why(asking, err)
	})
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(o)
	}
	if o.Tool == nil {
		a.say("%s is not registered yet; the override counts as soon as it is", name)
		return nil
	}
	rows := a.contractRows(o.Tool)
	if only && o.Override != nil {
		a.tenantRow(rows, o.Override)
	}
	rows.write(a.stdout, "", 0)
	return nil
}

func (a *app) toolsRemoveCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "remove TOOL",
		Short: "Take a tool out of the registry",
		Long: `Removes a tool and its consumer. New plans that name it are refused then. Stop its workers
first, or they register it again. An override stays.

It is refused while steps of the tool are pending. With --force they stay in the stream, and
so do the steps that runs under way still dispatch: they wait until the tool is registered
again, or until their timeout or that of their run.`,
		Example: `  stepjet tools remove search
  stepjet tools remove search --force`,
		Args: exactly("TOOL"),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.remove(cmd.Context(), args[0], force) }),
	}
	c.Flags().BoolVar(&force, "force", false, "remove it although steps of it are pending")
	return c
}

func (a *app) remove(ctx context.Context, name string, force bool) error {
	if !subjects.ValidTool(name) {
		return fault.New(fault.InvalidID, "%q is no tool name", name)
	}
	s, err := a.open(ctx, registry)
	if err != nil {
		return err
	}
	defer s.close()
	var r kv.Removed
	err = a.withStore(ctx, s, func(store *kv.Store) error {
		asking, cancel := a.patience(ctx)
		defer cancel()
		r, err = store.Requests.RequestRemove(asking, name, force)
		return why(asking, err)
	})
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(r)
	}
	a.say("removed %s", name)
	if r.Pending > 0 {
		a.say("%d of its steps wait until it is registered again, or their time is over", r.Pending)
	}
	if r.Waiting > 0 {
		a.say("%s a worker still takes its steps and will register it again: stop it first", a.errStyle.yellow("note:"))
	}
	return nil
}
