package bench

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// host registers the tools that the lab's shapes call beside bench.Tool.
func host(w *worker.Worker, nc *nats.Conn) error {
	gated, err := gated(nc)
	if err != nil {
		return err
	}
	waits := definition(gatedTool, gatedLimit)
	waits.Orchestration.TimeoutMS = time.Hour.Milliseconds()
	fails := definition(flakyTool, toolLimit)
	fails.Orchestration.Retry = &tool.Retry{MaxAttempts: 3}
	fails.Orchestration.Backoff = &tool.Backoff{Strategy: tool.Constant, Initial: retryPause, Max: retryPause}
	return errors.Join(
		w.HandleRaw(fails, flaky), w.HandleRaw(definition(bulkTool, toolLimit), bulk()), w.HandleRaw(waits, gated),
	)
}

// hosted is the number of tools that host registers.
const hosted = 3

// gated holds executions until a message comes on the gate's subject, and none from then on.
func gated(nc *nats.Conn) (worker.Handler, error) {
	open := make(chan struct{})
	var once sync.Once
	if _, err := nc.Subscribe(gate, func(*nats.Msg) { once.Do(func() { close(open) }) }); err != nil {
		return nil, err
	}
	return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		select {
		case <-open:
			return worker.Output{Body: args}, nil
		case <-ctx.Done():
			return worker.Output{}, context.Cause(ctx)
		}
	}, nil
}

// flaky fails the first attempt of one step in ten, the same ones always.
func flaky(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	info, _ := worker.InfoFrom(ctx)
	h := fnv.New32a()
	_, _ = h.Write([]byte(info.Key)) // it can't fail
	if info.Attempt == 1 && h.Sum32()%failOneIn == 0 {
		return worker.Output{}, fault.New(fault.ToolFailed, "one in ten")
	}
	return worker.Output{Body: args}, nil
}

// bulk returns results of the sizes asked for, each made once.
func bulk() worker.Handler {
	var made sizes
	return func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct{ Bytes int }
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, err
		}
		return worker.Output{Body: made.of(in.Bytes)}, nil
	}
}
