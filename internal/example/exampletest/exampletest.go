// Package exampletest holds the worked examples to the outcomes that lie beside their plans.
package exampletest

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/example"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

var rewrite = flag.Bool("rewrite", false, "write the outcomes instead of comparing them; then look at the diff")

// patience bounds what a test waits for; it is never reached where all is well.
const patience = 60 * time.Second

// World is a Stepjet for one test.
type World struct {
	*example.World
	t testing.TB
}

// Start runs a World until the test ends.
func Start(t testing.TB, o example.Options) *World {
	t.Helper()
	w, err := example.Start(Context(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Stop()) })
	return &World{w, t}
}

// Context ends when a test has taken far too long.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
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

// Wait gives the outcome of a run.
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

// Check holds an outcome to the last byte against the one in a file. What differs from run to run is left out: elapsed_ms
// and the generation count as 0 in both. With -rewrite it writes the file.
func Check(t testing.TB, out *outcome.Outcome, file string) {
	t.Helper()
	same := *out
	same.Stats.ElapsedMS, same.Generation = 0, 0
	got := string(example.Pretty(same.JSON()))
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want := strings.ReplaceAll(string(Plan(t, file)), "\r\n", "\n")
	require.Equal(t, want, got, "the outcome is not that of %s; -rewrite writes it anew", file)
}

// Gate gives something to set around tools that holds the calls of one of them back until open is called. To be held back
// is a part of the execution, so the tool's timeout has to be long.
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

// ByHand runs an example as its program does, and looks for what it prints.
func ByHand(t testing.TB, e example.Example, says ...string) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, e.Run(Context(t), &out))
	require.Contains(t, out.String(), `"run": "`+e.Name)
	for _, s := range says {
		require.Contains(t, out.String(), s)
	}
}
