package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func secretive(t testing.TB) wire.Context {
	t.Helper()
	c, err := wire.NewContext(map[string]string{"user": "ann", "token": "s3cr3t-t0ken", "pin": "123"}, "token", "pin")
	require.NoError(t, err)
	return c
}

func withContext(t testing.TB) func(*wire.Step) {
	c := secretive(t)
	return func(s *wire.Step) { s.Context = c }
}

func TestHandlersGetTheContext(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	got := make(chan Info, 1)
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "look", func(ctx context.Context, _ empty) (Info, error) {
			info, _ := InfoFrom(ctx)
			got <- info
			return info, nil // by mistake
		})
	})
	r := w.run("look", `{}`, withContext(t))
	info := await(w, got, "the call")
	require.Equal(t, secretive(t), info.Context)
	token, _ := info.Context.Get("token")
	require.Equal(t, "s3cr3t-t0ken", token)
	for _, shown := range []string{string(r.Body), fmt.Sprintf("%v %+v %#v", info, info, &info), w.logs.String()} {
		require.NotContains(t, shown, "s3cr3t")
	}
	require.Contains(t, string(r.Body), `"user":"ann"`)
	w.run("look", `{}`)
	require.Zero(t, (<-got).Context.Len())
}

// However a tool fails, no secret of its step gets into a record or the worker's log, or is cut in half by a limit.
func TestSecretsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	const secret = "s3cr3t-t0ken"
	fails := map[string]func() (Output, error){
		"error":   func() (Output, error) { return Output{}, errors.New("401 for " + secret) },
		"wrapped": func() (Output, error) { return Output{}, Terminal(fmt.Errorf("x: %w", errors.New(secret))) },
		"panic":   func() (Output, error) { panic("with " + secret) },
		"fault": func() (Output, error) {
			e := fault.New(fault.ToolFailed, "no %s", secret).WithHint("not %s", secret)
			e.Details = json.RawMessage(`{"sent":{"s3cr3t-\u00740ken":["` + secret + `"]}}`)
			return Output{}, e
		},
		"long":   func() (Output, error) { return Output{}, errors.New(strings.Repeat("x", maxMessage-6) + secret) },
		"output": func() (Output, error) { return Output{Body: []byte(`{"` + secret + `":1,"` + secret + `":2}`)}, nil },
	}
	fail := func(worker *Worker) {
		Handle(worker, "fail", func(context.Context, struct {
			How string `json:"how"`
		}) (empty, error) {
			return empty{}, nil
		})
		worker.Use(func(next Handler) Handler {
			return func(ctx context.Context, args json.RawMessage) (Output, error) {
				var in struct{ How string }
				if err := json.Unmarshal(args, &in); err != nil {
					return Output{}, err
				}
				return fails[in.How]()
			}
		})
	}
	w.worker(Config{}, fail)
	for how := range fails {
		r := w.run("fail", `{"how":"`+how+`"}`, withContext(t))
		require.NotNil(t, r.Error, how)
		raw, err := json.Marshal(r.Error)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "s3cr3t", how)
		require.NotContains(t, string(raw), "s3c", how)
		if how != "long" {
			require.Contains(t, string(raw), wire.Redacted, how)
		}
	}
	require.NotContains(t, w.logs.String(), "s3cr3t")
	require.Contains(t, w.logs.String(), "the tool panicked")
}

// In a batch no step's error holds another step's secret.
func TestSecretsOfABatch(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		out := made(c)
		for i := range out {
			token, _ := c.steps[(i+1)%len(out)].Context.Get("token")
			out[i].Err = errors.New("no " + token)
		}
		return out, nil
	}}
	w.register(b.tools(2, long))
	var all []subjects.Attempt
	for i, step := range []string{"one", "two"} {
		c, err := wire.NewContext(map[string]string{"token": fmt.Sprint("s3cr3t-", i)}, "token")
		require.NoError(t, err)
		all = append(all, w.person("r", step, func(s *wire.Step) { s.Context = c }))
	}
	w.worker(Config{}, b.tools(2, long))
	for _, a := range all {
		require.Equal(t, "no [secret]", w.result(a).Error.Message)
	}
	require.Equal(t, []int{2}, b.sizes())
}

// A step that waited too long for a slot is left to its owner, and recorded as a timeout only where that one is away.
func TestStartBy(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	b := &batched{}
	tools := func(worker *Worker) {
		counter("count", &calls)(worker)
		b.tools(3, 20*time.Millisecond)(worker)
	}
	w.register(tools)
	by := func(d time.Duration) func(*wire.Step) {
		at := time.Now().Add(d)
		return func(s *wire.Step) { s.StartBy = at }
	}
	send := func(tool, step, args string, edit ...func(*wire.Step)) subjects.Attempt {
		a := w.attempt(tool, "r-"+tool, step)
		w.dispatch(a, args, edit...)
		return a
	}
	late, soon := send("count", "late", `{}`, by(-time.Hour)), send("count", "soon", `{}`, by(-time.Millisecond))
	claimed := w.attempt("count", "r-count", "claimed")
	w.dispatch(claimed, `{}`, by(-time.Hour), claims(claimed))
	decided := send("count", "decided", `{}`, by(time.Millisecond))
	fine := send("count", "fine", `{}`, by(time.Hour))
	lateItem, item := send(create, "late", `{"email":"late"}`, by(-time.Hour)), send(create, "fine", `{"email":"fine"}`, by(time.Hour))
	h, body := wire.Result{Error: fault.New(fault.Timeout, "the owner's word")}.Message()
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.StepRecord(decided, 1), h, body, nil)
	require.NoError(t, err)
	before := time.Now()
	w.worker(Config{}, tools)
	for _, a := range []subjects.Attempt{late, soon, claimed, lateItem} {
		r := w.result(a)
		require.NotNil(t, r.Error, a.Step)
		require.Equal(t, fault.Timeout, r.Error.Code)
		require.False(t, r.Error.Retryable)
		require.Equal(t, "the step waited longer than its wait_timeout for a slot", r.Error.Message)
	}
	require.Greater(t, w.result(soon).Ended.Sub(before), time.Second, "the owner had time to decide it")
	require.Nil(t, w.result(fine).Error)
	require.Nil(t, w.result(item).Error)
	require.Equal(t, "the owner's word", w.result(decided).Error.Message)
	w.settled("count")
	w.settled(create)
	require.EqualValues(t, 1, calls.Load())
	require.Equal(t, []int{1}, b.sizes())
	_, there := w.claimOf(claimed)
	require.False(t, there, "what is not executed is not claimed")
}

// The owner's cancel ends the wait for its word; a step that was handed out before its time is not too late.
func TestStartByEndsWithACancel(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	w.register(counter("count", &calls))
	again := w.attempt("count", "r", "again")
	w.dispatch(again, `{}`, func(s *wire.Step) { s.StartBy = time.Now().Add(-time.Hour) })
	w.loseDelivery("count")
	w.worker(Config{}, counter("count", &calls))
	require.Nil(t, w.result(again).Error)
	require.Equal(t, 2, w.result(again).Deliveries, "the record says that it was handed out before")
	require.EqualValues(t, 1, calls.Load())

	a := w.attempt("count", "r", "s1")
	w.dispatch(a, `{}`, func(s *wire.Step) { s.StartBy = time.Now().Add(-time.Millisecond) })
	w.eventually(func() bool { // a cancel that comes before the step is taken is of no use
		require.NoError(t, w.nc.Publish(subjects.Cancel(a), nil))
		return w.recorded(a)
	}, "it is not cancelled")
	require.Equal(t, fault.Cancelled, w.result(a).Error.Code)
	w.settled("count")
	require.EqualValues(t, 1, calls.Load())
}
