// Package exampletest holds the worked examples to the outcomes that lie beside their plans: a Stepjet for each test, a
// count of how often each tool is called, and outcomes compared byte by byte.
package exampletest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

var rewrite = flag.Bool("rewrite", false, "write the outcomes instead of comparing them; then look at the diff")

// patience bounds what a test waits for; it is never reached where all is well.
const patience = 60 * time.Second

// Options say what a World is made of.
type Options struct {
	// Host adds the tools to a worker, under their definitions. It is called for each worker.
	Host func(*worker.Worker, []*tool.Definition)
	// Tools are the definitions.
	Tools Tools
	// Workers is how many of them host the tools; default 2, so that limits are seen to hold over several.
	Workers int
	// Around wraps every tool; nil for nothing. Gate makes one that holds calls back.
	Around func(worker.Handler) worker.Handler
	// Logger takes what orchestrator and workers log; nil: the test's output.
	Logger *slog.Logger
}

// World is a Stepjet for one test, with workers that host the tools of an example.
type World struct {
	Client *client.Client
	Meter  *Meter

	t     testing.TB
	stack *stepjettest.Stack
}

// Start runs a World until the test ends. It returns when plans can be submitted.
func Start(t testing.TB, o Options) *World {
	t.Helper()
	var options []stepjettest.Option
	if o.Logger != nil {
		options = append(options, stepjettest.Logger(o.Logger))
	}
	s := stepjettest.New(t, options...)
	w := &World{Client: s.Client(), Meter: newMeter(), t: t, stack: s}
	if o.Workers == 0 {
		o.Workers = 2
	}
	for range o.Workers {
		s.Host(func(k *worker.Worker) {
			k.Use(w.Meter.wrap)
			if o.Around != nil {
				k.Use(o.Around)
			}
			o.Host(k, o.Tools)
		})
	}
	return w
}

// Connect opens one more connection to the server, until the test ends.
func (w *World) Connect() *nats.Conn {
	w.t.Helper()
	nc, err := nats.Connect(w.stack.URL())
	require.NoError(w.t, err)
	w.t.Cleanup(nc.Close)
	return nc
}

// Context ends when a test has taken far too long.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Tools are the definitions of an example, which a test may change.
type Tools []*tool.Definition

// ReadTools reads the definitions of an example anew.
func ReadTools(t testing.TB, raw []byte) Tools {
	t.Helper()
	list, err := tool.ParseDefinitions(raw)
	require.NoError(t, err)
	return list
}

// Of returns the definition of a name; the test ends where there is none.
func (all Tools) Of(t testing.TB, name string) *tool.Definition {
	t.Helper()
	for _, d := range all {
		if d.Name == name {
			return d
		}
	}
	require.Fail(t, "the example defines no tool "+name)
	return nil
}

// Plan reads a file of the example's folder.
func Plan(t testing.TB, file string) []byte {
	t.Helper()
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	return body
}

// Submit starts the plan of a file.
func (w *World) Submit(file string, o client.SubmitOptions) *client.Run {
	w.t.Helper()
	r, err := w.Client.Submit(Context(w.t), Plan(w.t, file), o)
	require.NoError(w.t, err)
	return r
}

// Wait returns the outcome of a run.
func (w *World) Wait(r *client.Run) *outcome.Outcome {
	w.t.Helper()
	out, err := r.Wait(Context(w.t))
	require.NoError(w.t, err)
	return out
}

// Run runs the plan of a file.
func (w *World) Run(file string, o client.SubmitOptions) *outcome.Outcome {
	w.t.Helper()
	return w.Wait(w.Submit(file, o))
}

// Check holds an outcome to the last byte against the one in a file. What differs from run to run is left out:
// elapsed_ms and the generation count as 0 in both. With -rewrite it writes the file.
func Check(t testing.TB, out *outcome.Outcome, file string) {
	t.Helper()
	same := *out
	same.Stats.ElapsedMS, same.Generation = 0, 0
	got := string(Pretty(same.JSON()))
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want := strings.ReplaceAll(string(Plan(t, file)), "\r\n", "\n")
	require.Equal(t, want, got, "the outcome is not that of %s; -rewrite writes it anew", file)
}

// CheckText holds a text against a file. With -rewrite it writes the file.
func CheckText(t testing.TB, got, file string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	require.Equal(t, strings.ReplaceAll(string(Plan(t, file)), "\r\n", "\n"), got, "it is not what %s says; -rewrite writes it anew", file)
}

// Gate returns something to set around tools that holds the calls of one of them back until open is called. To be held
// back is a part of the execution, so the tool's timeout has to be long.
func Gate(tool string) (around func(worker.Handler) worker.Handler, open func()) {
	gate := make(chan struct{})
	around = func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			if info, _ := worker.InfoFrom(ctx); info.Tool == tool {
				<-gate
			}
			return next(ctx, args)
		}
	}
	return around, sync.OnceFunc(func() { close(gate) })
}

// Waiting tells, for each step and item of some runs that is not over, what it waits for.
func (w *World) Waiting(runs ...*client.Run) (all []string) {
	w.t.Helper()
	for _, r := range runs {
		doc, err := w.Client.Get(Context(w.t), r.ID())
		require.NoError(w.t, err)
		for _, s := range doc.Steps {
			for _, item := range append(s.Items, s) {
				if item.Waiting != "" {
					all = append(all, item.Waiting)
				}
			}
		}
	}
	return all
}

// ByHand calls what an example's main calls, on a Stepjet without workers as "stepjet dev" may be one, and returns the
// lines that it prints.
func ByHand(t testing.TB, run func(ctx context.Context, url string, out io.Writer) error) (lines []string) {
	t.Helper()
	var printed bytes.Buffer
	require.NoError(t, run(Context(t), stepjettest.New(t).URL(), &printed))
	return strings.Split(strings.TrimSuffix(printed.String(), "\n"), "\n")
}

// CheckLine holds an outcome as it was printed against the one in a file, but for the id of the run, which is another
// one each time.
func CheckLine(t testing.TB, line, file string) {
	t.Helper()
	var got, want outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(line), &got), line)
	require.NoError(t, json.Unmarshal(Plan(t, file), &want))
	require.NotEmpty(t, got.Run)
	got.Run = want.Run
	Check(t, &got, file)
}
