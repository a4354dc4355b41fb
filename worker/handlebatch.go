package worker

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// ItemResult is what came of one item of a batch: Err, or Value where that is nil.
type ItemResult[Out any] struct {
	Value Out
	Err   error
}

// HandleBatch hosts a function that takes many items in one call, up to the limit of its contract, which must have a
// batch (option Contract). A step calls the tool with one item as its arguments, or with an array of them in the
// batch's argument; the worker gathers the waiting steps of all runs and tenants into one call. In is what Handle
// takes.
//
// The function answers with one result for each item, in their order; any other number fails all steps. An error of an
// item is judged as one that Handle's function returns, and goes to its own step, or to all where the contract says
// fail-fast. An error beside the results fails all. ItemsFrom tells which step each item belongs to. The context ends
// when the last of the steps has been cancelled or has run out of time.
//
// A tool with arguments that hold for all items is hosted with HandleRaw: it gets {argument: [item, …], …} and answers
// {"results":[{"index":0,"status":"ok","data":…},{"index":1,"status":"error","error":{"message":…}}],"summary":{…}}.
func HandleBatch[In, Out any](
	w *Worker, name string, fn func(ctx context.Context, items []In) ([]ItemResult[Out], error), opts ...Option,
) {
	if fn == nil {
		w.mistake(fault.New(fault.InvalidTool, "tool %q has no function", name))
		return
	}
	check := func(item json.RawMessage) error { return unmarshal(item, new(In)) }
	w.mistake(w.handleBatch(name, reflect.TypeFor[In](), eraseBatch(fn), check, opts))
}

// eraseBatch makes a handler of a typed function, for a batch whose argument it is told.
func eraseBatch[In, Out any](
	fn func(ctx context.Context, items []In) ([]ItemResult[Out], error),
) func(argument string) Handler {
	return func(argument string) Handler {
		return func(ctx context.Context, args json.RawMessage) (Output, error) {
			var in map[string]json.RawMessage
			var list []json.RawMessage
			if err := json.Unmarshal(args, &in); err != nil {
				return Output{}, err // of a middleware
			}
			if err := json.Unmarshal(in[argument], &list); err != nil {
				return Output{}, err
			}
			items := make([]In, len(list))
			for i, raw := range list {
				if err := unmarshal(raw, &items[i]); err != nil {
					return Output{}, err
				}
			}
			results, err := fn(ctx, items)
			if err != nil {
				return Output{}, err
			}
			all := make([]verdict, len(results))
			for i, r := range results {
				all[i] = judge(r.Value, r.Err)
			}
			return Output{Body: writeEnvelope(all)}, nil
		}
	}
}

// judge is what came of one item.
func judge(value any, err error) (v verdict) {
	if err == nil {
		v.body, err = marshal(value)
	}
	if err != nil {
		v = verdict{err: describe(err)}
	}
	return v
}

func (w *Worker) handleBatch(
	name string, in reflect.Type, fn func(string) Handler, check func(json.RawMessage) error, opts []Option,
) error {
	s := settings{def: tool.Definition{Name: name}, slots: w.config.Slots}
	if err := s.apply(opts); err != nil {
		return err
	}
	if s.def.Orchestration == nil || s.def.Orchestration.Batch == nil {
		return inTool(name, fault.New(fault.InvalidTool, "its contract has no batch").
			WithHint("give one: Contract(tool.Orchestration{Batch: &tool.Batch{Argument: \"items\", MaxItems: 50}})"))
	}
	batch := *s.def.Orchestration.Batch
	if s.def.InputSchema == nil {
		item, err := inputSchema(in)
		if err != nil {
			return inTool(name, err)
		}
		s.def.InputSchema = batchSchema(batch, item)
	}
	h, err := host(s, fn(batch.Argument))
	if err != nil {
		return err
	}
	h.readable = check
	return w.add(h)
}

// batchSchema is the input schema of a tool that takes an array of items and nothing else.
func batchSchema(b tool.Batch, item json.RawMessage) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{ // the item's schema was marshalled before
		"type": "object",
		"properties": map[string]any{b.Argument: map[string]any{"type": "array", "items": item,
			"maxItems": b.MaxItems}},
		"required":             []string{b.Argument},
		"additionalProperties": false,
	})
	return raw
}
