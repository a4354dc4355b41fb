package worker

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// Handle hosts a plain Go function as a tool. The schemas of its arguments and its result are inferred from In and Out
// (encoding/json names; a field without omitempty or omitzero is required; the tag jsonschema:"…" describes it);
// options replace them. In is a struct, a map with string keys, json.RawMessage or any, since arguments are an object.
// A result is marshalled as encoding/json does, without escaping HTML; a string stays a JSON string.
//
// What is wrong with a tool is reported by Run, before anything is registered.
func Handle[In, Out any](w *Worker, name string, fn func(ctx context.Context, in In) (Out, error), opts ...Option) {
	if fn == nil {
		w.mistake(fault.New(fault.InvalidTool, "tool %q has no function", name))
		return
	}
	w.mistake(w.handleTyped(name, reflect.TypeFor[In](), reflect.TypeFor[Out](), erase(fn), opts))
}

// erase makes a Handler of a typed function: all that depends on the types happens here.
func erase[In, Out any](fn func(ctx context.Context, in In) (Out, error)) Handler {
	return func(ctx context.Context, args json.RawMessage) (Output, error) {
		var in In
		if err := unmarshal(args, &in); err != nil {
			return Output{}, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return Output{}, err
		}
		return outputOf(out)
	}
}

// handleTyped infers what the options leave open.
func (w *Worker) handleTyped(name string, in, out reflect.Type, fn Handler, opts []Option) error {
	s := settings{def: tool.Definition{Name: name}, slots: w.config.Slots}
	if err := s.apply(opts); err != nil {
		return err
	}
	if s.def.InputSchema == nil {
		schema, err := inputSchema(in)
		if err != nil {
			return inTool(name, err)
		}
		s.def.InputSchema = schema
	}
	if s.def.OutputSchema == nil {
		s.def.OutputSchema = outputSchema(out)
	}
	h, err := host(s, fn)
	if err != nil {
		return err
	}
	return w.add(h)
}
