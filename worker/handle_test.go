package worker

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

func TestTypedTool(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	type out struct {
		City string  `json:"city"`
		Temp float64 `json:"temp"`
	}
	w.worker(Config{Name: "w1"}, func(worker *Worker) {
		Handle(worker, "get_weather", func(_ context.Context, in weatherIn) (out, error) {
			return out{"<" + in.Location + ">", 21.5}, nil
		}, Title("Weather"), Description("the weather of a city"))
	})
	before := time.Now()
	trace := wire.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	r := w.run("get_weather", `{"location":"Tokyo"}`, func(s *wire.Step) { s.Trace = trace })
	require.Nil(t, r.Error)
	require.Equal(t, `{"city":"<Tokyo>","temp":21.5}`, string(r.Body), "HTML is not escaped")
	require.False(t, r.Text)
	require.Equal(t, "w1", r.Worker)
	require.Equal(t, trace, r.Trace)
	require.WithinRange(t, r.Started, before, r.Ended)
	require.WithinRange(t, r.Ended, r.Started, time.Now())
	w.settled("get_weather")

	registered, err := w.store.Registry.Tool(w.ctx(), "get_weather")
	require.NoError(t, err)
	require.Equal(t, "Weather", registered.Definition.Title)
	require.Equal(t, "the weather of a city", registered.Definition.Description)
	require.Contains(t, string(registered.Definition.InputSchema), "city to look up")
	require.Contains(t, string(registered.Definition.OutputSchema), "temp")
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	raw := map[string]Output{
		"text":       {Body: []byte(`{"looks":"like json"}`), Text: true},
		"exact":      {Body: []byte(`{"n":12345678901234567890.10}`)},
		"empty":      {},
		"bare":       {Body: []byte("just words")},
		"duplicates": {Body: []byte(`{"a":1,"a":2}`)},
		"bad_utf8":   {Body: []byte("\xff\xfe"), Text: true},
		"deep":       {Body: []byte(strings.Repeat("[", 65) + strings.Repeat("]", 65))},
	}
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "echo", func(_ context.Context, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return in.Text, nil
		})
		Handle(worker, "nan", func(context.Context, empty) (float64, error) { return nan(), nil })
		for name, out := range raw {
			err := worker.HandleRaw(&tool.Definition{Name: name}, func(context.Context, json.RawMessage) (Output, error) { return out, nil })
			require.NoError(t, err)
		}
	})
	r := w.run("echo", `{"text":"{\"a\": \"<1>\"}"}`)
	require.Equal(t, `"{\"a\": \"<1>\"}"`, string(r.Body), "a string stays a JSON string")
	for _, fine := range []string{"text", "exact", "empty", "bare"} {
		r := w.run(fine, `{}`)
		require.Nil(t, r.Error, fine)
		require.Equal(t, string(raw[fine].Body), string(r.Body), "the producer's bytes")
		require.Equal(t, raw[fine].Text, r.Text)
	}
	for _, bad := range []string{"duplicates", "bad_utf8", "deep", "nan"} {
		r := w.run(bad, `{}`)
		require.NotNil(t, r.Error, bad)
		require.Equal(t, fault.ToolTerminal, r.Error.Code, bad)
		require.False(t, r.Error.Retryable, bad)
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	called := make(chan int, 10)
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "square", func(_ context.Context, in struct {
			N int `json:"n"`
		}) (int, error) {
			called <- in.N
			return in.N * in.N, nil
		})
	})
	for _, args := range []string{`{}`, `{"n":"7"}`, `{"n":7,"m":1}`, `{"n":1e30}`, `{"n":`, ``} {
		r := w.run("square", args)
		require.NotNil(t, r.Error, args)
		require.Equal(t, fault.InvalidArguments, r.Error.Code, args)
		require.False(t, r.Error.Retryable)
	}
	require.Empty(t, called)
	require.Contains(t, w.run("square", `{"n":"7"}`).Error.Message, "/n")
	require.Equal(t, `49`, string(w.run("square", `{"n":7.0}`).Body), "JSON Schema's integers")
	w.settled("square")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	fails := map[string]func() error{
		"plain":    func() error { return errors.New("503 from upstream") },
		"terminal": func() error { return Terminal(errors.New("no such city")) },
		"later":    func() error { return RetryAfter(errors.New("429"), 7*time.Second) },
		"panic":    func() error { panic("boom") },
		"nil":      func() error { var p *struct{ err error }; return p.err },
		"exit":     func() error { runtime.Goexit(); return nil },
		"wordless": func() error { return unprintable{} },
	}
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "fail", func(_ context.Context, in struct {
			How string `json:"how"`
		}) (empty, error) {
			return empty{}, fails[in.How]()
		})
	})
	for how, want := range map[string]fault.Error{
		"plain":    {Code: fault.ToolFailed, Message: "503 from upstream", Retryable: true},
		"terminal": {Code: fault.ToolTerminal, Message: "no such city"},
		"later":    {Code: fault.ToolFailed, Message: "429", Retryable: true, RetryAfter: 7 * time.Second},
		"panic":    {Code: fault.ToolFailed, Message: "panic: boom", Retryable: true},
		"nil":      {Code: fault.ToolFailed, Message: "panic: runtime error: invalid memory address or nil pointer dereference", Retryable: true},
		"exit":     {Code: fault.ToolFailed, Message: "the tool ended its goroutine (runtime.Goexit) instead of returning", Retryable: true},
		"wordless": {Code: fault.ToolFailed, Message: "the tool failed with a worker.unprintable that can't be printed", Retryable: true},
	} {
		r := w.run("fail", `{"how":"`+how+`"}`)
		require.NotNil(t, r.Error, how)
		require.Equal(t, want, *r.Error, how)
	}
	require.Contains(t, w.logs.String(), "handle_test.go", "the stack of a panic is logged")
	w.settled("fail")
}

func TestInfo(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	got := make(chan Info, 1)
	w.worker(Config{Name: "w1"}, func(worker *Worker) {
		Handle(worker, "look", func(ctx context.Context, _ empty) (empty, error) {
			info, _ := InfoFrom(ctx)
			deadline, ok := ctx.Deadline()
			if !ok || !deadline.Equal(info.Deadline) {
				return empty{}, errors.New("the context's deadline is another")
			}
			got <- info
			return empty{}, nil
		})
	})
	a := w.attempt("look", "order 42/é", "s1")
	a.Number = 3
	soon := time.Now().Add(20 * time.Second).UTC().Truncate(time.Millisecond)
	w.dispatch(a, `{}`, func(s *wire.Step) { s.Deadline, s.Retried = soon, "acme/order=2042/7/s1" })
	require.Nil(t, w.result(a).Error)
	info := <-got
	require.WithinDuration(t, soon, info.Deadline, 10*time.Second, "by the own clock")
	info.Deadline = soon
	require.Equal(t, Info{
		Tenant: "acme", Run: "order 42/é", Generation: a.Generation, Step: "s1", Tool: "look", Key: a.Key(), RetriedKey: "acme/order=2042/7/s1",
		Attempt: 3, Delivery: 1, Deadline: soon, Worker: "w1",
	}, info)

	a.Number = 4
	w.dispatch(a, `{}`, func(s *wire.Step) { s.Timeout, s.Deadline = time.Minute, time.Now().Add(time.Hour) })
	require.Nil(t, w.result(a).Error)
	require.WithinDuration(t, time.Now().Add(time.Minute), (<-got).Deadline, 40*time.Second, "the nearer of the two")
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var mu sync.Mutex
	var order []string
	note := func(name string) func(Handler) Handler {
		return func(next Handler) Handler {
			return func(ctx context.Context, args json.RawMessage) (Output, error) {
				info, _ := InfoFrom(ctx)
				mu.Lock()
				order = append(order, name+" "+info.Step)
				mu.Unlock()
				out, err := next(ctx, args)
				out.Body = append([]byte(`"`+name+`: `), out.Body[1:]...)
				return out, err
			}
		}
	}
	w.worker(Config{}, func(worker *Worker) {
		worker.Use(note("outer"))
		Handle(worker, "say", func(context.Context, empty) (string, error) { return "hello", nil })
		worker.Use(note("inner"))
	})
	a := w.attempt("say", "r", "s1")
	w.dispatch(a, `{}`)
	require.Equal(t, `"outer: inner: hello"`, string(w.result(a).Body))
	require.Equal(t, []string{"outer s1", "inner s1"}, order)
}

func TestMistakesAreReportedByRun(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	fine := func(context.Context, empty) (empty, error) { return empty{}, nil }
	for name, tools := range map[string]func(*Worker){
		"name":  func(worker *Worker) { Handle(worker, "no spaces", fine) },
		"twice": func(worker *Worker) { Handle(worker, "a", fine); Handle(worker, "a", fine) },
		"input": func(worker *Worker) {
			Handle(worker, "a", func(context.Context, string) (empty, error) { return empty{}, nil })
		},
		"slots":    func(worker *Worker) { Handle(worker, "a", fine, Slots(0)) },
		"function": func(worker *Worker) { Handle[empty, empty](worker, "a", nil) },
		"contract": func(worker *Worker) {
			Handle(worker, "a", fine, Contract(tool.Orchestration{Delivery: tool.AtMostOnce, Retry: &tool.Retry{MaxAttempts: 3}}))
		},
		"schema": func(worker *Worker) { Handle(worker, "a", fine, InputSchema([]byte(`{"type":7}`))) },
	} {
		r := w.launch(w.nc, Config{}, tools)
		<-r.done
		require.Equal(t, fault.InvalidTool, fault.CodeOf(r.err), "%s: %v", name, r.err)
	}
	r := w.launch(w.nc, Config{}, func(*Worker) {})
	<-r.done
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(r.err), "no tools")
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(r.Run(w.ctx())), "only once")
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(r.HandleRaw(&tool.Definition{Name: "late"}, func(context.Context, json.RawMessage) (Output, error) {
		return Output{}, nil
	})))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(r.HandleRaw(nil, nil)))
}

func TestOptionsReachTheRegistry(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	yes := true
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "a", func(context.Context, json.RawMessage) (empty, error) { return empty{}, nil },
			Annotations(tool.Annotations{ReadOnlyHint: &yes}), Tenants("acme"), Contract(tool.Orchestration{MaxConcurrency: 7, TimeoutMS: 1500}),
			InputSchema([]byte(`{"type":"object","required":["x"]}`)), OutputSchema([]byte(`{"type":"object","title":"out"}`)))
	})
	got, err := w.store.Registry.Tool(w.ctx(), "a")
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, got.Tenants)
	require.Equal(t, 7, got.Contract.Limit)
	require.Equal(t, 1500*time.Millisecond, got.Contract.Timeout)
	require.True(t, *got.Definition.Annotations.ReadOnlyHint)
	require.JSONEq(t, `{"type":"object","title":"out"}`, string(got.Definition.OutputSchema))
	require.Equal(t, fault.InvalidArguments, w.run("a", `{}`).Error.Code, "the given schema counts")
	require.Nil(t, w.run("a", `{"x":1}`).Error)
}
