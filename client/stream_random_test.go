package client_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

var (
	streamed   = flag.Int("streamed", 40, "how many random plans are streamed")
	streamSeed = flag.Int64("stream-seed", 1, "the first seed of them")
)

// scripted are the tools of random plans: what they do is said by the case of a run.
type scripted struct {
	mu    sync.Mutex
	cases map[string]reference.Case // by run
}

func (s *scripted) of(run string) reference.Case {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cases[run]
}

func (s *scripted) call(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	info, _ := worker.InfoFrom(ctx)
	r := s.of(info.Run).Call(info.Step, info.Tool, args, info.Attempt)
	if r.Err != nil {
		return worker.Output{}, &fault.Error{Code: fault.Code(r.Err.Code), Message: r.Err.Message, Hint: r.Err.Hint, Retryable: r.Err.Retryable}
	}
	return worker.Output{Body: r.Body, Text: r.Text}, nil
}

// TestRandomStreams: whatever the plan and however it is cut, what comes of it is what comes of it as a whole.
func TestRandomStreams(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stack, err := dev.Start(ctx, dev.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	tools := &scripted{cases: map[string]reference.Case{}}
	hostScripted(ctx, t, stack, tools)
	c := clientOf(ctx, t, stack)
	grown, cuts, told := 0, 0, 0
	for i := range *streamed {
		seed := *streamSeed + int64(i)
		rng := rand.New(rand.NewSource(seed))
		kase := reference.Generate(rng, reference.Options{ForEach: true, Second: true, Codes: true})
		text := rewritten(t, rng, kase.Plan)
		if p, _ := plan.Parse([]byte(text), nil); p == nil {
			continue
		}
		whole, live := fmt.Sprintf("whole-%d", seed), fmt.Sprintf("live-%d", seed)
		tools.mu.Lock()
		tools.cases[whole], tools.cases[live] = kase, kase
		tools.mu.Unlock()
		want, err := c.Run(ctx, []byte(text), client.SubmitOptions{Run: whole})
		require.NoError(t, err)
		r, err := c.Stream(ctx, slowly(rng, text), client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: live}})
		require.NoError(t, err, "seed %d: %s", seed, text)
		got, err := r.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, sameFor(t, want), sameFor(t, got), "seed %d: %s", seed, text)
		doc, err := c.Get(ctx, live)
		require.NoError(t, err)
		if doc.Revision > 0 {
			grown++
		}
		cuts += doc.Revision
		told += len(got.Errors)
	}
	t.Logf("%d of %d plans grew, by %d amendments; %d errors", grown, *streamed, cuts, told)
	require.Greater(t, grown, *streamed/5)
	require.Greater(t, cuts, grown)
	require.Positive(t, told)
}

// rewritten is a plan with its options before the steps, and what it returns before or behind them. Rules of language 2
// hold for each plan that is streamed, and so they do for this one.
func rewritten(t *testing.T, rng *rand.Rand, body []byte) string {
	t.Helper()
	fields := map[string]json.RawMessage{}
	var tight bytes.Buffer
	require.NoError(t, json.Compact(&tight, body))
	require.NoError(t, json.Unmarshal(tight.Bytes(), &fields))
	before, behind := []string{`"concurrency":10000`}, []string{`"steps":` + string(fields["steps"])}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, _ := json.Marshal(key)
		field := string(name) + ":" + string(fields[key])
		switch {
		case key == "steps" || key == "concurrency":
		case strings.HasPrefix(key, "output") && rng.Intn(2) == 0:
			behind = append(behind, field)
		default:
			before = append(before, field)
		}
	}
	return "{" + strings.Join(before, ",") + ", " + strings.Join(behind, " ,") + "}"
}

// slowly hands a text out in pieces, of which some are waited for longer than steps are gathered.
func slowly(rng *rand.Rand, text string) io.Reader {
	reader, write := io.Pipe()
	var pieces []string
	for text != "" {
		n := min(1+rng.Intn(1+rng.Intn(60)), len(text))
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	pauses := rng.Perm(len(pieces))
	go func() {
		for i, piece := range pieces {
			_, _ = io.WriteString(write, piece)
			if pauses[i] < 12 {

				time.Sleep(8 * time.Millisecond) // how fast a model writes
			}
		}
		_ = write.Close()
	}()
	return iotest.DataErrReader(reader)
}

// exactly is a JSON value without what an amendment leaves out of it: white space, and how a text is escaped.
func exactly(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// sameFor is an outcome without what may differ: the id of the run, times, and the order of steps that waited for others.
func sameFor(t *testing.T, o *outcome.Outcome) string {
	t.Helper()
	x := *o
	x.Run, x.Generation = "", 0
	x.Stats.ElapsedMS, x.Stats.BytesReturned, x.Stats.BytesKeptOut, x.Stats.TokensKeptOut = 0, 0, 0, 0
	x.Output = exactly(t, x.Output)
	x.Results = slices.SortedFunc(slices.Values(o.Results), func(a, b outcome.Result) int { return cmp.Compare(a.Step, b.Step) })
	x.Errors = slices.SortedFunc(slices.Values(o.Errors), func(a, b outcome.StepError) int { return cmp.Compare(a.Step, b.Step) })
	for i := range x.Results {
		x.Results[i].JSON = exactly(t, x.Results[i].JSON)
	}
	x.NotTaken = slices.Sorted(slices.Values(o.NotTaken))
	for i := range x.Errors {
		x.Errors[i].HandledBy = strings.Repeat("?", min(1, len(x.Errors[i].HandledBy))) // the first of several in their order
	}
	x.Warnings = nil // of a plan, at the places where its steps stand in it
	return string(x.JSON())
}

func hostScripted(ctx context.Context, t *testing.T, stack *dev.Stack, tools *scripted) {
	t.Helper()
	nc, err := stack.Connect(ctx, "worker")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	for i := range 4 {
		o := &tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 2}, Backoff: &tool.Backoff{Strategy: tool.None}}
		if i%2 == 0 {
			o.ErrorPropagation = tool.PartialSuccess
		}
		def := &tool.Definition{Name: fmt.Sprintf("tool.%d/x:y", i), Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), Orchestration: o}
		require.NoError(t, w.HandleRaw(def, tools.call))
	}
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(work) }()
	t.Cleanup(func() { stop(); <-done })
	<-w.Ready()
}
