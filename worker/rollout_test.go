package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// The same tool before and after a deploy: it takes one argument more, and returns one field more.
var (
	priceBefore = &tool.Definition{
		Name:         "price",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"],"additionalProperties":false}`),
	}
	priceAfter = &tool.Definition{
		Name: "price",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"},"currency":{"type":"string"}},
			"required":["sku"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer"},"currency":{"type":"string"}},
			"required":["cents","currency"],"additionalProperties":false}`),
	}
)

// rollout is a cluster whose workers are replaced while runs stand before their calls of the tool "price".
type rollout struct {
	*whole
	gate chan struct{}
}

func startRollout(t *testing.T) *rollout {
	r := &rollout{gate: make(chan struct{})}
	// A step that is left to its lease is not seen again before the test has given up.
	r.whole = startWholeWith(t, kv.Config{AckWait: 10 * time.Minute}, func(w *worker.Worker) {
		worker.Handle(w, "gate", func(ctx context.Context, _ nothing) (nothing, error) {
			select {
			case <-r.gate:
			case <-ctx.Done():
			}
			return nothing{}, nil
		}, worker.Contract(tool.Orchestration{MaxConcurrency: 64}), worker.Slots(64))
	})
	return r
}

// deploy starts workers of a definition and returns what stops them.
func (r *rollout) deploy(n int, def *tool.Definition, returns string) (stop func()) {
	r.t.Helper()
	var ends []func()
	for i := range n {
		w, err := worker.New(natstest.Connect(r.t, r.srv), worker.Config{Name: fmt.Sprintf("%s-%d", def.Digest()[:8], i), Slots: 2})
		require.NoError(r.t, err)
		require.NoError(r.t, w.HandleRaw(def, func(context.Context, json.RawMessage) (worker.Output, error) {
			return worker.Output{Body: []byte(returns)}, nil
		}))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		end := func() {
			cancel()
			if done != nil {
				require.NoError(r.t, <-done)
				done = nil
			}
		}
		r.t.Cleanup(end)
		ends = append(ends, end)
		select {
		case <-w.Ready():
		case <-r.ctx().Done():
			require.FailNow(r.t, "a worker did not become ready")
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// submitAll submits runs that call the tool once the gate is open, and waits until they have begun, with the definition
// of now.
func (r *rollout) submitAll(prefix string, n int, arguments string) (runs []*client.Run) {
	r.t.Helper()
	for i := range n {
		run := r.submit(fmt.Sprint(prefix, i), `{"steps":[{"id":"g","tool":"gate"},
			{"id":"p","tool":"price","arguments":`+arguments+`,"depends_on":["g"]}],"output_steps":["p"]}`)
		runs = append(runs, run)
	}
	for _, run := range runs {
		require.Eventually(r.t, func() bool {
			doc, err := r.client.Get(r.ctx(), run.ID())
			return err == nil && len(doc.Steps) > 0
		}, 2*time.Minute, 5*time.Millisecond)
	}
	return runs
}

// outcomes waits for runs.
func (r *rollout) outcomes(runs []*client.Run) (all []*outcome.Outcome) {
	r.t.Helper()
	for _, run := range runs {
		all = append(all, r.wait(run))
	}
	return all
}

// Plans that are under way when a tool's schema changes come to their end, whichever workers get their steps: those of
// before, of after, or some of each. It holds for a deploy as for one that is taken back.
func TestADefinitionChangesWhilePlansAreInFlight(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name            string
		before, after   *tool.Definition
		first, second   string
		stays, fits     bool // workers of before stay beside those of after; what they return keeps the promise
		arguments, told string
	}{
		{"forward", priceBefore, priceAfter, `{"cents":1}`, `{"cents":2,"currency":"EUR"}`, false, true, `{"sku":"a"}`, ""},
		{"forward, both stay", priceBefore, priceAfter, `{"cents":1}`, `{"cents":2,"currency":"EUR"}`, true, true, `{"sku":"a"}`, ""},
		{"back", priceAfter, priceBefore, `{"cents":2,"currency":"EUR"}`, `{"cents":1}`, false, false, `{"sku":"a"}`, "currency"},
		{"back, arguments", priceAfter, priceBefore, `{"cents":2,"currency":"EUR"}`, `{"cents":1}`, false, false, `{"sku":"a","currency":"EUR"}`, "currency"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			r := startRollout(t)
			stop := r.deploy(3, way.before, way.first)
			runs := r.submitAll("r", 12, way.arguments)
			r.deploy(3, way.after, way.second)
			if !way.stays {
				stop()
			}
			close(r.gate)
			for _, o := range r.outcomes(runs) {
				if way.fits {
					require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
					continue
				}
				require.Equal(t, outcome.Failed, o.Status, "%s", o.JSON())
				f := o.Errors[0]
				require.Equal(t, 1, f.Attempts)
				require.Contains(t, f.Message, way.told)
				require.Contains(t, f.Message, way.before.Digest())
				require.Contains(t, f.Message, way.after.Digest())
				want := fault.ToolTerminal // the result lacks what the run's definition promises
				if strings.Contains(way.arguments, "currency") {
					want = fault.InvalidArguments
				}
				require.Equal(t, want, f.Code)
				require.NotEmpty(t, f.Hint)
			}
		})
	}
}

// While workers of both definitions are there, arguments that only one of them takes fail at the other and nowhere
// else, and a retry gets them done once the deploy is.
func TestArgumentsThatOnlyOneDefinitionTakes(t *testing.T) {
	t.Parallel()
	r := startRollout(t)
	stop := r.deploy(2, priceBefore, `{"cents":1}`)
	r.deploy(2, priceAfter, `{"cents":2,"currency":"EUR"}`)
	runs := r.submitAll("r", 24, `{"sku":"a","currency":"EUR"}`)
	close(r.gate)
	var failed []*client.Run
	for i, o := range r.outcomes(runs) {
		if o.Status == outcome.Succeeded {
			require.JSONEq(t, `{"cents":2,"currency":"EUR"}`, string(o.Results[0].JSON))
			continue
		}
		require.Equal(t, fault.InvalidArguments, o.Errors[0].Code)
		require.Contains(t, o.Errors[0].Message, "this worker has definition "+priceBefore.Digest())
		failed = append(failed, runs[i])
	}
	stop()
	for _, run := range failed {
		again, err := r.client.Retry(r.ctx(), run.ID(), client.RetryOptions{})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, r.wait(again).Status)
	}
}
