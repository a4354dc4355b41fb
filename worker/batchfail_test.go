package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// raw hosts a tool that is called with the array as it is; the answer is what do makes of the arguments.
func rawBatch(t testing.TB, max int, schema string, do func(ctx context.Context, args string) (string, error), opts ...Option) func(*Worker) {
	def := &tool.Definition{Name: create, InputSchema: json.RawMessage(schema), Orchestration: &tool.Orchestration{
		MaxConcurrency: 100, ErrorPropagation: tool.PartialSuccess, Batch: &tool.Batch{Argument: "contacts", MaxItems: max, MaxWaitMS: gathering.Milliseconds()},
	}}
	return func(worker *Worker) {
		require.NoError(t, worker.HandleRaw(def, func(ctx context.Context, args json.RawMessage) (Output, error) {
			out, err := do(ctx, string(args))
			return Output{Body: []byte(out)}, err
		}, opts...))
	}
}

func TestArraysAndOtherArguments(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var mu sync.Mutex
	var calls []string
	tools := rawBatch(t, 4, "", func(_ context.Context, args string) (string, error) {
		mu.Lock()
		calls = append(calls, args)
		mu.Unlock()
		var in struct{ Contacts []json.RawMessage }
		if err := json.Unmarshal([]byte(args), &in); err != nil {
			return "", err
		}
		all := make([]verdict, len(in.Contacts))
		for i, raw := range in.Contacts {
			all[i].body = raw
		}
		return string(writeEnvelope(all)), nil
	})
	w.register(tools)
	send := func(step, args string) subjects.Attempt {
		a := w.attempt(create, "r", step)
		w.dispatch(a, args)
		return a
	}
	x1, x2 := send("x1", `{"contacts":[1, 2],"workspace":"x"}`), send("x2", `{"workspace":"x","contacts":[3.0]}`)
	y := send("y", `{"contacts":[{"k": "y"}],"workspace":"y"}`)
	lone, none, much := send("lone", `{"k":"z"}`), send("none", `{"contacts":[]}`), send("much", `{"contacts":[1,2,3,4,5]}`)
	full := send("full", `{"contacts":[4,5,6,7],"workspace":"x"}`) // has no room beside others
	w.worker(Config{}, tools)
	for a, want := range map[subjects.Attempt]string{
		x1:   `{"results":[{"index":0,"status":"ok","data":1},{"index":1,"status":"ok","data":2}],"summary":{"ok":2,"error":0}}`,
		x2:   `{"results":[{"index":0,"status":"ok","data":3.0}],"summary":{"ok":1,"error":0}}`,
		y:    `{"results":[{"index":0,"status":"ok","data":{"k": "y"}}],"summary":{"ok":1,"error":0}}`,
		lone: `{"k":"z"}`,
		none: `{"results":[],"summary":{"ok":0,"error":0}}`,
	} {
		r := w.result(a)
		require.Nil(t, r.Error, a.Step)
		require.Equal(t, want, string(r.Body), a.Step)
	}
	r := w.result(much)
	require.Equal(t, fault.InvalidArguments, r.Error.Code)
	require.Contains(t, r.Error.Message, "at most 4")
	require.NotEmpty(t, r.Error.Hint)
	require.Contains(t, string(w.result(full).Body), `"ok":4`)
	w.settled(create)
	slices.Sort(calls)
	require.Equal(t, []string{
		`{"contacts":[1,2,3.0],"workspace":"x"}`, `{"contacts":[4,5,6,7],"workspace":"x"}`,
		`{"contacts":[{"k": "y"}],"workspace":"y"}`, `{"contacts":[{"k":"z"}]}`,
	}, calls)
}

func TestPartialSuccessAndFailFast(t *testing.T) {
	t.Parallel()
	for _, how := range []tool.Propagation{tool.PartialSuccess, tool.FailFast} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			b := &batched{do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
				out := made(c)
				for i, email := range c.emails {
					if email == "s1" {
						out[i].Err = RetryAfter(errors.New("busy"), 7*time.Second)
					}
				}
				return out, nil
			}}
			tools := b.tools(3, long, func(o *tool.Orchestration) { o.ErrorPropagation = how })
			w.register(tools)
			all := w.people("r", 3)
			w.worker(Config{}, tools)
			bad := w.result(all[1])
			require.Equal(t, fault.Error{Code: fault.ToolFailed, Message: "busy", Retryable: true, RetryAfter: 7 * time.Second}, *bad.Error)
			for _, i := range []int{0, 2} {
				r := w.result(all[i])
				if how == tool.PartialSuccess {
					require.Nil(t, r.Error)
					require.Equal(t, fmt.Sprintf(`"made s%d"`, i), string(r.Body))
					continue
				}
				require.Equal(t, fault.ToolFailed, r.Error.Code)
				require.Regexp(t, `^item \d of the batch failed: busy$`, r.Error.Message)
				require.True(t, r.Error.Retryable)
				require.Equal(t, 7*time.Second, r.Error.RetryAfter)
			}
			require.Equal(t, []int{3}, b.sizes())
			w.settled(create)
		})
	}
}

// What befalls the call as a whole befalls every step.
func TestFailuresOfABatch(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ batchCall) ([]ItemResult[string], error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	brief := func(s *wire.Step) { s.Timeout = 300 * time.Millisecond }
	for name, c := range map[string]struct {
		do   func(context.Context, batchCall) ([]ItemResult[string], error)
		edit func(*wire.Step)
		want fault.Error
	}{
		"error": {func(context.Context, batchCall) ([]ItemResult[string], error) {
			return nil, Terminal(errors.New("closed"))
		}, nil, fault.Error{Code: fault.ToolTerminal, Message: "closed"}},
		"panic":    {func(context.Context, batchCall) ([]ItemResult[string], error) { panic("boom") }, nil, fault.Error{Code: fault.ToolFailed, Message: "panic: boom", Retryable: true}},
		"goexit":   {func(context.Context, batchCall) ([]ItemResult[string], error) { runtime.Goexit(); return nil, nil }, nil, fault.Error{Code: fault.ToolFailed, Message: "the tool ended its goroutine (runtime.Goexit) instead of returning", Retryable: true}},
		"timeout":  {hang, brief, fault.Error{Code: fault.Timeout, Message: "the execution took longer than 300ms", Retryable: true}},
		"too few":  {func(_ context.Context, c batchCall) ([]ItemResult[string], error) { return made(c)[1:], nil }, nil, fault.Error{Code: fault.ToolTerminal, Message: "the tool's answer to a batch can't be used: it has 2 results for 3 items", Hint: expected}},
		"deadline": {hang, func(s *wire.Step) { s.Deadline = time.Now().Add(10 * time.Second) }, fault.Error{Code: fault.Timeout, Message: "the execution took longer than its deadline allowed", Retryable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			b := &batched{do: c.do}
			w.register(b.tools(3, long))
			var all []subjects.Attempt
			for _, step := range []string{"s1", "s2", "s3"} {
				all = append(all, w.person("r", step, func(s *wire.Step) {
					if c.edit != nil {
						c.edit(s)
					}
				}))
			}
			w.worker(Config{}, b.tools(3, long))
			for _, a := range all {
				require.Equal(t, c.want, *w.result(a).Error)
			}
			require.Equal(t, []int{3}, b.sizes())
			w.settled(create)
		})
	}
}

func TestAnswersThatAreNoEnvelope(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	tools := rawBatch(t, 2, "", func(_ context.Context, args string) (string, error) {
		return `[{"index":0}]`, nil
	})
	w.register(tools)
	one, two := w.attempt(create, "r", "s1"), w.attempt(create, "r", "s2")
	w.dispatch(one, `{"contacts":[1],"w":1}`)
	w.dispatch(two, `{"contacts":[2],"w":1}`)
	w.worker(Config{}, tools)
	for _, a := range []subjects.Attempt{one, two} {
		r := w.result(a)
		require.Equal(t, fault.ToolTerminal, r.Error.Code)
		require.False(t, r.Error.Retryable)
		require.Equal(t, expected, r.Error.Hint)
	}
}

func TestMistakesOfBatches(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	b := &batched{}
	for name, tools := range map[string]func(*Worker){
		"no contract": func(worker *Worker) { HandleBatch(worker, create, b.handle) },
		"no batch": func(worker *Worker) {
			HandleBatch(worker, create, b.handle, Contract(tool.Orchestration{MaxConcurrency: 5}))
		},
		"no function": func(worker *Worker) { HandleBatch[contact, string](worker, create, nil) },
		"no object": func(worker *Worker) {
			HandleBatch(worker, create, func(context.Context, []int) ([]ItemResult[int], error) { return nil, nil },
				Contract(tool.Orchestration{Batch: &tool.Batch{Argument: "n", MaxItems: 5}}))
		},
	} {
		r := w.launch(natstest.Connect(t, w.srv), Config{}, tools)
		<-r.done
		require.Equal(t, fault.InvalidTool, fault.CodeOf(r.err), name)
	}
	require.Nil(t, ItemsFrom(context.Background()))
}

func TestBatchSchema(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{}
	w.worker(Config{}, b.tools(3, 20*time.Millisecond))
	for args, code := range map[string]fault.Code{
		`{"email":"a"}`: "", `{"contacts":[{"email":"a"}]}`: "",
		`{"email":7}`: fault.InvalidArguments, `{}`: fault.InvalidArguments, `{"contacts":[{}]}`: fault.InvalidArguments,
		`{"contacts":[{"email":"a"}],"more":1}`: fault.InvalidArguments,
	} {
		r := w.run(create, args)
		if code == "" {
			require.Nil(t, r.Error, args)
		} else {
			require.Equal(t, code, r.Error.Code, args)
		}
	}
}
