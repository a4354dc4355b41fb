package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// whole is a server with an orchestrator, a worker and a client: what a worker says as the rest of Stepjet hears it.
type whole struct {
	t      *testing.T
	srv    *embedded.Server
	nc     *nats.Conn
	client *client.Client
	store  *kv.Store
}

func startWhole(t *testing.T, tools func(*worker.Worker)) *whole {
	t.Helper()
	return startWholeWith(t, kv.Config{}, tools)
}

func startWholeWith(t *testing.T, store kv.Config, tools func(*worker.Worker)) *whole {
	t.Helper()
	srv := natstest.Start(t)
	s := &whole{t: t, srv: srv, nc: natstest.Connect(t, srv)}
	o, err := orchestrator.New(natstest.Connect(t, srv), orchestrator.Config{Name: "o", Store: store})
	require.NoError(t, err)
	s.background(o.Run, o.Ready())
	w, err := worker.New(natstest.Connect(t, srv), worker.Config{Name: "w"})
	require.NoError(t, err)
	tools(w)
	s.background(w.Run, w.Ready())
	s.client, err = client.New(s.ctx(), s.nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	s.store, err = kv.Open(s.ctx(), s.nc)
	require.NoError(t, err)
	t.Cleanup(s.store.Close)
	return s
}

func (s *whole) background(run func(context.Context) error, ready <-chan struct{}) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
	select {
	case <-ready:
	case <-s.ctx().Done():
		require.Fail(s.t, "a part did not become ready")
	}
}

func (s *whole) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *whole) submit(id, plan string) *client.Run {
	s.t.Helper()
	r, err := s.client.Submit(s.ctx(), []byte(plan), client.SubmitOptions{Run: id})
	require.NoError(s.t, err)
	return r
}

func (s *whole) wait(r *client.Run) *outcome.Outcome {
	s.t.Helper()
	o, err := r.Wait(s.ctx())
	require.NoError(s.t, err)
	return o
}

func (s *whole) leases(name string) int {
	s.t.Helper()
	js, err := s.nc.JetStream()
	require.NoError(s.t, err)
	t, err := s.store.Registry.Tool(s.ctx(), name)
	require.NoError(s.t, err)
	info, err := js.ConsumerInfo(subjects.StepsStream(t.Shard), subjects.Durable(name))
	require.NoError(s.t, err)
	return info.NumAckPending
}

type nothing struct{}

// A step that asks to be tried again later holds no lease while it waits: another one of a tool with one slot runs in
// between. It is not tried before its time.
func TestRetryAfterHoldsNoLease(t *testing.T) {
	t.Parallel()
	const after = 6 * time.Second // in which a busy machine comes to the end of another run
	type run struct {
		step       string
		begin, end time.Time
	}
	var mu sync.Mutex
	var runs []run
	failed := make(chan struct{}, 1)
	s := startWhole(t, func(w *worker.Worker) {
		worker.Handle(w, "busy", func(ctx context.Context, _ nothing) (string, error) {
			info, _ := worker.InfoFrom(ctx)
			begin := time.Now()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				runs = append(runs, run{fmt.Sprint(info.Step, info.Attempt), begin, time.Now()})
			}()
			if info.Step == "a" && info.Attempt == 1 {
				failed <- struct{}{}
				return "", worker.RetryAfter(errors.New("429"), after)
			}
			return "done", nil
		}, worker.Contract(tool.Orchestration{Mode: tool.SequentialOnly, Retry: &tool.Retry{
			MaxAttempts: 2, Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 250 * time.Millisecond, Max: 250 * time.Millisecond},
		}}))
	})
	a := s.submit("first", `{"steps":[{"id":"a","tool":"busy"}]}`)
	<-failed
	require.Equal(t, outcome.Succeeded, s.wait(s.submit("second", `{"steps":[{"id":"b","tool":"busy"}]}`)).Status)
	require.Eventually(t, func() bool { return s.leases("busy") == 0 }, 2*time.Minute, time.Millisecond)
	mu.Lock()
	require.Len(t, runs, 2, "no lease is held while the first waits for its second attempt")
	mu.Unlock()
	require.Equal(t, outcome.Succeeded, s.wait(a).Status)
	require.Equal(t, []string{"a1", "b1", "a2"}, []string{runs[0].step, runs[1].step, runs[2].step})
	require.GreaterOrEqual(t, runs[2].begin.Sub(runs[0].end), after, "not before its time")
}

// Every kind of error arrives in the run's document as the tool gave it.
func TestErrorsArrive(t *testing.T) {
	t.Parallel()
	detailed := fault.New(fault.ToolFailed, "no room")
	detailed.Details, detailed.Retryable = json.RawMessage(`{"free":1.0}`), false
	fails := map[string]error{
		"terminal": worker.Terminal(errors.New("closed")),
		"detailed": detailed.WithHint("free some"),
		"later":    worker.RetryAfter(errors.New("429"), 250*time.Millisecond),
	}
	s := startWhole(t, func(w *worker.Worker) {
		worker.Handle(w, "fail", func(_ context.Context, in struct {
			How string `json:"how"`
		}) (nothing, error) {
			return nothing{}, fails[in.How]
		}, worker.Contract(tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 2}}))
	})
	r := s.submit("r", `{"steps":[
		{"id":"terminal","tool":"fail","arguments":{"how":"terminal"}},
		{"id":"detailed","tool":"fail","arguments":{"how":"detailed"}},
		{"id":"later","tool":"fail","arguments":{"how":"later"}}]}`)
	require.Equal(t, outcome.Failed, s.wait(r).Status)
	doc, err := s.store.Archive.History(s.ctx(), subjects.NewRun("default", "r"))
	require.NoError(t, err)
	for _, step := range doc.Steps {
		want, attempts := fault.Error{}, 1
		switch step.ID {
		case "terminal":
			want = fault.Error{Code: fault.ToolTerminal, Message: "closed"}
		case "detailed":
			want = fault.Error{Code: fault.ToolFailed, Message: "no room", Hint: "free some", Details: json.RawMessage(`{"free":1.0}`)}
		case "later":
			want, attempts = fault.Error{Code: fault.ToolFailed, Message: "429", Retryable: true, RetryAfter: 250 * time.Millisecond}, 2
		}
		require.Equal(t, want, *step.Error, step.ID)
		require.Equal(t, attempts, step.Attempts, step.ID)
	}
}

// Of a batch, only what failed is tried again.
func TestOnlyFailedItemsOfABatchAreRetried(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	type item struct {
		N string `json:"n"`
	}
	s := startWhole(t, func(w *worker.Worker) {
		worker.HandleBatch(w, "load", func(ctx context.Context, items []item) ([]worker.ItemResult[string], error) {
			out := make([]worker.ItemResult[string], len(items))
			for i, info := range worker.ItemsFrom(ctx) {
				mu.Lock()
				seen[info.Step]++
				mu.Unlock()
				if out[i].Value = "loaded " + items[i].N; info.Step == "b" && info.Attempt == 1 {
					out[i].Err = errors.New("busy")
				}
			}
			return out, nil
		}, worker.Contract(tool.Orchestration{
			MaxConcurrency: 10, ErrorPropagation: tool.PartialSuccess, Batch: &tool.Batch{Argument: "rows", MaxItems: 3, MaxWaitMS: 1000},
			Retry: &tool.Retry{MaxAttempts: 3, Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 250 * time.Millisecond, Max: 250 * time.Millisecond}},
		}))
	})
	o := s.wait(s.submit("r", `{"steps":[
		{"id":"a","tool":"load","arguments":{"n":"1"}},{"id":"b","tool":"load","arguments":{"n":"2"}},
		{"id":"c","tool":"load","arguments":{"rows":[{"n":"3"}]}},
		{"id":"d","tool":"load","arguments":{"n":"$ref:c.results[0].data"}}]}`))
	require.Equal(t, outcome.Succeeded, o.Status, "%+v", o)
	require.Equal(t, map[string]int{"a": 1, "b": 2, "c": 1, "d": 1}, seen)
	results := map[string]string{}
	for _, r := range o.Results {
		results[r.Step] = string(r.JSON)
	}
	require.Equal(t, map[string]string{
		"a": `"loaded 1"`, "b": `"loaded 2"`, "d": `"loaded loaded 3"`,
		"c": `{"results":[{"index":0,"status":"ok","data":"loaded 3"}],"summary":{"ok":1,"error":0}}`,
	}, results)
}

// The context that is given with a submit comes to the handler, and nowhere else.
func TestContextArrives(t *testing.T) {
	t.Parallel()
	all, err := wire.NewContext(map[string]string{"user": "ann", "token": "s3cr3t"}, "token")
	require.NoError(t, err)
	step, err := wire.NewContext(map[string]string{"user": "bob"})
	require.NoError(t, err)
	got := make(chan worker.Info, 2)
	s := startWhole(t, func(w *worker.Worker) {
		worker.Handle(w, "who", func(ctx context.Context, _ nothing) (string, error) {
			info, _ := worker.InfoFrom(ctx)
			got <- info
			token, _ := info.Context.Get("token")
			return "", worker.Terminal(errors.New("refused: " + token))
		})
	})
	r, err := s.client.Submit(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"who"},{"id":"b","tool":"who"}]}`), client.SubmitOptions{
		Run: "r", Context: wire.RunContext{All: all, Steps: map[string]wire.Context{"b": step}},
	})
	require.NoError(t, err)
	o := s.wait(r)
	require.NotContains(t, string(o.JSON()), "s3cr3t")
	require.Contains(t, string(o.JSON()), wire.Redacted)
	for range 2 {
		info := <-got
		user, _ := info.Context.Get("user")
		require.Equal(t, map[string]string{"a": "ann", "b": "bob"}[info.Step], user)
		require.True(t, info.Context.Secret("token"))
	}
}
