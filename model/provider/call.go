package provider

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/worker"
)

// Call answers a request, as JSON: of the model that it names, or of the first of its fallbacks that can answer where
// that one can't now. Usage says who answered. Errors have the codes of a tool: invalid_arguments for a request that is
// none, tool_failed for what may pass, tool_terminal for what can't.
func (c *Caller) Call(ctx context.Context, args json.RawMessage) (*model.Answer, error) {
	whole, err := c.whole(ctx, args)
	if err != nil {
		return nil, err
	}
	r, err := model.ParseRequest(whole)
	if err != nil {
		return nil, err
	}
	m, err := c.config.Model(r.Model)
	if err != nil {
		return nil, err
	}
	var first error
	for i, name := range append([]string{m.Name}, m.Fallback...) {
		a, err := c.ask(ctx, c.models[name], r)
		if err == nil {
			return a, nil
		}
		if first == nil {
			first = err // it is what was asked for
		}
		if worker.NewStream(ctx).Began() { // of what another model would answer what has begun is no part
			first = err
			break
		}
		if i > 0 && fault.As(err).ToolCode == waits {
			continue // it has no room now, and the next one may
		}
		var f *model.Failure
		if !errors.As(err, &f) || !f.Passes() {
			first = err
			break
		}
	}
	var f *model.Failure
	if errors.As(first, &f) {
		return nil, f.Fault()
	}
	return nil, first
}

// whole puts a request together. A name that is none is the request's fault; parts that are not what they should be are
// nobody's whom another attempt helps.
func (c *Caller) whole(ctx context.Context, args json.RawMessage) ([]byte, error) {
	if _, _, err := parts.Named(args); err != nil {
		return nil, err
	}
	whole, err := c.parts.Whole(ctx, args, c.fetch)
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.InvalidArguments {
		wrong := *f
		wrong.Code = fault.ToolTerminal
		if wrong.Hint == "" {
			wrong.Hint = "parts are written by orchestrators; nothing of this one is used, and the model was not asked"
		}
		return nil, &wrong
	}
	return whole, err
}
