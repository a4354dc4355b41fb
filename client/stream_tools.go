package client

import (
	"context"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/streamed"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// hints knows of tools what decides when a step that calls them may begin.
type hints struct {
	of    *kv.Registry
	known map[string]hint
}

// hint is what is known of a tool, or of a step with all that it may call.
type hint struct {
	destructive bool // what it did can't be taken back
	agent       bool // it is none that an amendment may add
}

// step returns what is known of a step.
func (h hints) step(ctx context.Context, x *streamed.Step) hint {
	all := hint{agent: x.Agent}
	for _, name := range x.Tools {
		one := h.tool(ctx, name)
		all.destructive, all.agent = all.destructive || one.destructive, all.agent || one.agent
	}
	return all
}

// tool returns what is known of a tool, and of a template also what its plan may call. Of one that can't be read in the
// registry the worst is assumed; a name that nobody registered is left to the orchestrator, which refuses it.
func (h hints) tool(ctx context.Context, name string) hint {
	if known, there := h.known[name]; there || !subjects.ValidTool(name) {
		return known
	}
	h.known[name] = hint{} // while its plan is looked at, which may call it
	t, err := h.of.Tool(ctx, name)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
	case err != nil:
		h.known[name] = hint{destructive: true, agent: true}
	default:
		var within hint
		if t.Definition.Plan != nil {
			within = h.step(ctx, streamed.In(t.Definition.Plan))
		}
		h.known[name] = hint{t.Definition.Annotations.Destructive() || within.destructive, t.Definition.Agent != nil || within.agent}
	}
	return h.known[name]
}
