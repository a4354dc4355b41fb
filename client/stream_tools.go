package client

import (
	"context"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/streamed"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// destructive knows which tools are hinted destructive: what they did can't be taken back.
type destructive struct {
	of    *kv.Registry
	known map[string]bool
}

// any reports whether one of some tools is.
func (d destructive) any(ctx context.Context, tools []string) bool {
	return slices.ContainsFunc(tools, func(name string) bool { return d.is(ctx, name) })
}

// is reports whether a tool is, or is a template whose plan may call such a one. Where the registry can't be read, it is;
// a name that nobody registered is left to the orchestrator, which refuses it.
func (d destructive) is(ctx context.Context, name string) bool {
	if known, there := d.known[name]; there || !subjects.ValidTool(name) {
		return known
	}
	d.known[name] = false // while its plan is looked at, which may call it
	t, err := d.of.Tool(ctx, name)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
	case err != nil:
		d.known[name] = true
	default:
		d.known[name] = t.Definition.Annotations.Destructive() || t.Definition.Plan != nil && d.any(ctx, streamed.ToolsIn(t.Definition.Plan))
	}
	return d.known[name]
}
