package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/pins"
	"github.com/stepjet/stepjet/internal/serve/bridging"
	"github.com/stepjet/stepjet/internal/serve/web"
	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

type devFlags struct {
	listen string
	page   string
	tools  string
	slots  int
	store  config.Store
	mcp    bridging.Settings
	models modelFlags
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run a NATS server, an orchestrator and a toolworker in one process",
		Long: `Runs all of Stepjet until it is interrupted: a NATS server with JetStream, an orchestrator, and
a toolworker with the built-in tools or those of --tools, and with those of the MCP servers of --mcp.
Planners of agents are asked here with --model ollama:qwen3:4b, which is the tool "model", or --models
(env STEPJET_MODELS), a file as modelworker has it.
It serves the page of "stepjet ui", on any free port where the default one is taken.
Data stays in a folder, and runs that were not over go on with the next start. Any NATS client can connect.

While it runs, the other commands use it without being told, where they have the same
data folder: the default one, or the same --data (STEPJET_DATA). Others are told --url.`,
		Example: `  stepjet dev
  stepjet dev --tools tools.json --data ./data --listen 127.0.0.1:4333
  stepjet dev --mcp .mcp.json
  stepjet dev --model ollama:qwen3:4b`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if err := f.store.FromEnvironment(cmd.Flags(), a.lookup); err != nil {
				return err
			}
			if err := f.mcp.FromEnvironment(cmd.Flags(), a.lookup); err != nil {
				return err
			}
			if f.tools == "" {
				f.tools = a.hostedTools()
			}
			if file, set := a.lookup("STEPJET_MODELS"); set && !f.models.given() {
				f.models.file = file
			}
			return a.dev(cmd.Context(), f)
		}),
	}
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:4222", "`address` to take connections on; port 0 picks a free one")
	c.Flags().StringVar(&f.page, "ui", web.DefaultListen, "loopback `address` of the page; \"off\": no page")
	c.Flags().StringVar(&f.tools, "tools", "", "tools `file` for the toolworker (env STEPJET_TOOLS; default: the built-in tools)")
	c.Flags().IntVar(&f.slots, "slots", 0, "run each tool this `number` of times at once; default: 64")
	f.mcp.FileFlags(c.Flags())
	f.models.add(c.Flags(), `the tool "model"`)
	f.store.DurabilityFlag(c.Flags())
	return c
}

func (a *app) dev(ctx context.Context, f devFlags) error {
	dir, _ := a.flags.dir()
	if dir == "" {
		return fault.New(fault.InvalidConfig, "there is no home folder to keep data in").WithHint("name one: --data FOLDER")
	}
	if f.store.Durability == config.DurabilityReplicated {
		return fault.New(fault.InvalidConfig, "--durability replicated needs a cluster of three, and this is one server").WithHint("default, or always")
	}
	keys, err := a.keys()
	if err != nil {
		return err
	}
	more, end, err := bridged(ctx, a, f.mcp.Options)
	if err != nil {
		return err
	}
	defer end()
	var models Models // what is wrong with them is found before anything is started
	if f.models.given() {
		if models, err = f.models.open(a, "model"); err != nil {
			return err
		}
	}
	daemon.TuneGC()
	stack, err := dev.StartWhenFree(ctx, dev.Options{
		Dir: dir, Listen: f.listen, Tools: f.tools, Slots: f.slots, More: more, SecretsKey: keys, Logger: a.log(),
		Store: f.store.Config(), SyncAlways: f.store.Sync() == doctor.SyncAlways,
	}, func() { a.tellWaiting(dir) })
	if err != nil {
		if errors.Is(why(ctx, err), errInterrupt) {
			return nil
		}
		return err
	}
	defer stack.Stop()
	failed, endModels, err := devModels(ctx, a, stack, models)
	if err != nil {
		return err
	}
	defer endModels()
	page, endPage, err := devPage(ctx, a, stack, f.page)
	if err != nil {
		return err
	}
	defer endPage()
	if a.json() {
		up := map[string]string{"url": stack.URL(), "data": stack.Dir(), "ui": page}
		if err := a.printJSON(up); err != nil {
			return err
		}
	} else {
		a.welcome(stack, page)
	}
	select {
	case err := <-stack.Done():
		return err
	case err := <-failed:
		return err
	case <-ctx.Done():
		a.say("stopping; what is not over goes on with the next start")
		return nil
	}
}

// devModels hosts models beside a stack until they are ended. failed gets the error of their worker where it ends by itself.
func devModels(ctx context.Context, a *app, stack *dev.Stack, m Models) (failed <-chan error, end func(), err error) {
	if m == nil {
		return nil, func() {}, nil
	}
	nc, err := stack.Connect(ctx, "modelworker")
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	broken := make(chan error, 1)
	h, err := hostModels(ctx, a, nc, m, func(err error) { broken <- err })
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return broken, func() { h.close(); nc.Close() }, nil
}

// devPage serves the page of a stack until it is ended. Its address is empty where there is none.
func devPage(ctx context.Context, a *app, stack *dev.Stack, listen string) (url string, end func(), err error) {
	if listen == "off" {
		return "", func() {}, nil
	}
	nc, err := stack.Connect(ctx, "ui")
	if err != nil {
		return "", nil, err
	}
	url, stop, err := web.Start(ctx, nc, listen, a.log())
	if err != nil {
		nc.Close()
		return "", nil, err
	}
	return url, func() { stop(); nc.Close() }, nil
}

func (a *app) welcome(stack *dev.Stack, page string) {
	st := a.errStyle
	var t table
	row := func(name, value string) { t.add(cell{text: name, paint: st.dim}, plain(value)) }
	if page != "" {
		row("page", page)
	}
	row("server", stack.URL())
	row("data", stack.Dir())
	row("tools", "stepjet tools list")
	row("run a plan", "stepjet run plan.json")
	row("or", `nats --server `+stack.URL()+` pub plan.submit.default.order-42 "$(cat plan.json)"`)
	a.say("%s is up; Ctrl-C stops it", st.bold("Stepjet"))
	if !a.flags.quiet {
		t.write(a.stderr, "  ", 0)
		_, _ = fmt.Fprintln(a.stderr)
	}
}

// bridged opens the MCP servers of stepjet dev, if any. Whoever starts it has the file at hand, so first use is
// trusted. more hosts their tools, and end ends them.
func bridged(ctx context.Context, a *app, o bridge.Options) (more func(*worker.Worker) error, end func(), err error) {
	if o.File == "" {
		return nil, func() {}, nil
	}
	o.TrustFirstUse, o.Logger = true, a.warnings()
	b, err := bridge.Open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return b.Register, b.Close, nil
}

// pinCommands are about what somebody agrees to of the tools of MCP servers.
func pinCommands(a *app) []*cobra.Command {
	return pins.Commands(pins.Terminal{
		Work: a.work, Lookup: a.lookup, Logger: a.log, Say: a.say, JSON: a.json, Document: a.printJSON, Differs: quietly(1),
		Secrets: func(given []string) (wire.Context, error) {
			of, err := a.runContext(&contextFlags{secrets: given}, nil)
			return of.All, err
		},
		Text: func(lines [][]string) {
			var t table
			for _, line := range lines {
				t.add(plain(line[0]), plain(line[1]), plain(line[2]))
			}
			t.write(a.stdout, "", 0)
		},
	})
}
