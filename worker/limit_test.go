package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/leaselog"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// noted has a worker note every execution in a log, as the outermost of its middleware.
func noted(log *leaselog.Log, tools func(*Worker)) func(*Worker) {
	return func(worker *Worker) {
		worker.Use(func(next Handler) Handler {
			return func(ctx context.Context, args json.RawMessage) (Output, error) {
				info, _ := InfoFrom(ctx)
				defer log.Begin(leaselog.Entry{Tool: info.Tool, Worker: info.Worker, Key: info.Key, Steps: max(len(ItemsFrom(ctx)), 1)})()
				return next(ctx, args)
			}
		})
		tools(worker)
	}
}

// The limits of tools hold over ten workers with room for far more, whatever is ready: by the complete log of them all.
func TestLimitsHoldOverAllWorkers(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{StepsAsync: true})
	w.registrar()
	var log leaselog.Log
	open := make(chan struct{})
	work := func(context.Context, empty) (empty, error) {
		<-open
		for range 10 { // let others run, so that executions beside each other are seen
			runtime.Gosched()
		}
		return empty{}, nil
	}
	b := &batched{do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		<-open
		return made(c), nil
	}}
	tools := func(worker *Worker) {
		Handle(worker, "search", work, Contract(tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 8}))
		Handle(worker, "write", work, Contract(tool.Orchestration{Mode: tool.SequentialOnly}))
		b.tools(5, 5*time.Millisecond, func(o *tool.Orchestration) { o.MaxConcurrency = 8 })(worker)
	}
	w.register(tools)
	var all []subjects.Attempt
	send := func(name, args string, runs, steps int) {
		for r := range runs {
			for s := range steps {
				a := w.attempt(name, fmt.Sprint(name, r), fmt.Sprint("s", s))
				w.dispatch(a, args)
				all = append(all, a)
			}
		}
	}
	send("search", `{}`, 1, 1000)
	send("write", `{}`, 5, 40)
	send(create, `{"email":"a"}`, 5, 40)
	var workers []*running
	for i := range 10 {
		workers = append(workers, w.launch(w.nc, Config{Name: fmt.Sprint("w", i)}, noted(&log, tools)))
	}
	release := sync.OnceFunc(func() { close(open) })
	t.Cleanup(release)
	for _, r := range workers {
		r.awaitReady()
	}
	for _, name := range []string{"search", "write"} { // all that have no step of it ask for one
		w.eventually(func() bool { return w.consumer(name).NumWaiting >= len(workers)-1 }, "they don't ask for %s", name)
	}
	release()
	for _, name := range []string{"search", "write", create} {
		w.settled(name)
	}
	for _, a := range all {
		require.Nil(t, w.result(a).Error)
	}
	for name, limit := range map[string]int{"search": 8, "write": 1, create: 8} {
		entries := log.Entries(name)
		parts, steps := map[string]int{}, 0
		for _, e := range entries {
			require.False(t, e.Open)
			parts[e.Worker]++
			steps += e.Steps
		}
		most := leaselog.Max(entries)
		require.LessOrEqual(t, most, limit, name)
		require.Equal(t, map[string]int{"search": 1000, "write": 200, create: 200}[name], steps, "each step once")
		require.Greater(t, len(parts), 1, "many workers had a part in it")
		if limit > 1 {
			require.Greater(t, most, 1, "there was something to bound")
		}
		t.Logf("%s: %d steps in %d calls by %d workers, at most %d at a time (limit %d)", name, steps, len(entries), len(parts), most, limit)
	}
}
