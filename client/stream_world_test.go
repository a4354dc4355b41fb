package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// author writes the text of a plan that is streamed, piece by piece, and sees what comes of it meanwhile.
type author struct {
	t      testing.TB
	ctx    context.Context
	client *client.Client
	run    string
	text   *io.PipeWriter
	done   chan struct{}
	begun  chan *client.Run
	handle *client.Run
	err    error
}

// stream begins to stream a plan.
func stream(ctx context.Context, t testing.TB, c *client.Client, o client.StreamOptions) *author {
	t.Helper()
	reader, text := io.Pipe()
	a := &author{t: t, ctx: ctx, client: c, run: o.Run, text: text, done: make(chan struct{}), begun: make(chan *client.Run, 1)}
	o.Begun = func(r *client.Run) { a.begun <- r }
	go func() {
		defer close(a.done)
		a.handle, a.err = c.Stream(ctx, reader, o)
		_ = reader.Close()
	}()
	t.Cleanup(func() {
		_ = text.CloseWithError(errors.New("the test is over"))
		<-a.done
	})
	return a
}

func (a *author) write(text string) {
	a.t.Helper()
	_, err := io.WriteString(a.text, text)
	require.NoError(a.t, err)
}

// end ends the text.
func (a *author) end() (*client.Run, error) {
	a.t.Helper()
	require.NoError(a.t, a.text.Close())
	<-a.done
	return a.handle, a.err
}

// outcome ends the text and waits for what comes of the plan.
func (a *author) outcome() *outcome.Outcome {
	a.t.Helper()
	r, err := a.end()
	require.NoError(a.t, err)
	out, err := r.Wait(a.ctx)
	require.NoError(a.t, err)
	return out
}

// sees waits until some steps of the run have succeeded, of those that are there.
func (a *author) sees(ids ...string) *outcome.Run {
	a.t.Helper()
	var doc *outcome.Run
	require.Eventually(a.t, func() bool {
		var err error
		if doc, err = a.client.Get(a.ctx, a.run); err != nil {
			return false
		}
		for _, id := range ids {
			if statusOf(doc, id) != outcome.StepSucceeded {
				return false
			}
		}
		return true
	}, patience, 5*time.Millisecond, "%v", ids)
	return doc
}

func statusOf(doc *outcome.Run, id string) outcome.StepStatus {
	for i := range doc.Steps {
		if doc.Steps[i].ID == id {
			return doc.Steps[i].Status
		}
	}
	return ""
}

// broken ends the text and returns the error with its details.
func (a *author) broken(code fault.Code) (*fault.Error, wire.StreamDetails) {
	a.t.Helper()
	_ = a.text.Close()
	<-a.done
	require.Equal(a.t, code, fault.CodeOf(a.err), "%v", a.err)
	require.Nil(a.t, a.handle)
	var d wire.StreamDetails
	f := fault.As(a.err)
	if f.Details != nil {
		require.NoError(a.t, json.Unmarshal(f.Details, &d), "%s", f.Details)
	}
	return f, d
}

// cancelled says that the run was cancelled once some steps had begun.
func (a *author) cancelled(d wire.StreamDetails, began ...string) {
	a.t.Helper()
	require.Equal(a.t, a.run, d.Run)
	require.Equal(a.t, outcome.Cancelled, d.Status, "%v", a.err)
	require.ElementsMatch(a.t, began, d.Began)
	for _, id := range began {
		require.Contains(a.t, a.err.Error(), id)
	}
	doc, err := a.client.Get(a.ctx, a.run)
	require.NoError(a.t, err)
	require.Equal(a.t, outcome.Cancelled, doc.Status)
}

// deeds notes which steps tools were called for.
type deeds struct {
	mu    sync.Mutex
	steps []string
}

func (d *deeds) note(step string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, step)
}

func (d *deeds) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.steps...)
}

// withTools adds a worker to a stack: "drop" is hinted destructive, "keep" is not, "hold" ends when its call is over.
func withTools(ctx context.Context, t testing.TB, stack *dev.Stack) *deeds {
	t.Helper()
	nc, err := stack.Connect(ctx, "worker")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	d, yes := &deeds{}, true
	note := func(ctx context.Context, in map[string]any) (map[string]any, error) {
		info, _ := worker.InfoFrom(ctx)
		d.note(info.Step)
		who, _ := info.Context.Get("user")
		return map[string]any{"step": info.Step, "who": who, "was": in["was"]}, nil
	}
	anything := worker.InputSchema(json.RawMessage(`{"type":"object"}`))
	worker.Handle(w, "keep", note, anything)
	worker.Handle(w, "drop", note, anything, worker.Annotations(tool.Annotations{DestructiveHint: &yes}))
	worker.Handle(w, "think", func(context.Context, map[string]any) (map[string]any, error) {
		return map[string]any{"output": "done"}, nil
	}, anything)
	worker.Handle(w, "hold", func(ctx context.Context, in map[string]any) (map[string]any, error) {
		_, _ = note(ctx, in)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}, anything)
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(work) }()
	t.Cleanup(func() { stop(); <-done })
	<-w.Ready()
	return d
}

// streams is a client of a whole Stepjet with the tools of withTools.
func streams(t testing.TB) (context.Context, *client.Client, *deeds) {
	t.Helper()
	ctx, stack, d := stackWithTools(t)
	return ctx, clientOf(ctx, t, stack), d
}

// stackWithTools is a whole Stepjet with the tools of withTools, and a template "clean" that calls a destructive one.
func stackWithTools(t testing.TB) (context.Context, *dev.Stack, *deeds) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stack, err := dev.Start(ctx, dev.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	d := withTools(ctx, t, stack)
	_, err = clientOf(ctx, t, stack).ApplyTemplate(ctx, []byte(`{"name":"clean","inputSchema":{"type":"object"},"plan":{"steps":[{"id":"in","tool":"keep"},{"id":"out","tool":"drop","depends_on":["in"]}]}}`))
	require.NoError(t, err)
	return ctx, stack, d
}

// clientOf is a client with a connection of its own.
func clientOf(ctx context.Context, t testing.TB, stack *dev.Stack) *client.Client {
	t.Helper()
	nc, err := stack.Connect(ctx, "test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cl, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

func keep(id, refers string) string {
	if refers != "" {
		return `{"id":"` + id + `","tool":"keep","arguments":{"was":"$ref:` + refers + `.step"}}`
	}
	return `{"id":"` + id + `","tool":"keep"}`
}

func resultOf(t testing.TB, o *outcome.Outcome, step string) string {
	t.Helper()
	raw, ok := o.Results.Get(step)
	require.True(t, ok, "%s of %s", step, o.JSON())
	return strings.TrimSpace(string(raw))
}
