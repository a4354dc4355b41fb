package agentcheck_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/tool"
)

// tools are some that are there, and no groups.
type tools map[string]*tool.Definition

func (t tools) Definition(name string) (*tool.Definition, bool) {
	d, ok := t[name]
	return d, ok
}

func (t tools) Names() []string { return nil }

// An agent of a plan becomes the definition that it would have in the registry, and what is wrong with that is told where it
// stands in the plan: all at once, of the definition, its texts and its schemas.
func TestInline(t *testing.T) {
	t.Parallel()
	known := tools{"model": define(t, `{"name":"model"}`), "search": define(t, `{"name":"search"}`)}
	d, r := agentcheck.Inline("a", []byte(`{"tools": ["search"], "planner":{"tool":"model"}, "description":"A.", "output_schema": {"type":"object"}, "inputSchema":null, "instructions":"Do ${input.x}."}`), agentcheck.Against(known))
	require.Empty(t, r.Problems)
	require.Equal(t, `{"tools":["search"],"planner":{"tool":"model"},"instructions":"Do ${input.x}."}`, string(d.Agent), "in its own order")
	require.Equal(t, "A.", d.Description)
	require.Equal(t, `{"type":"object"}`, string(d.OutputSchema))
	for raw, want := range map[string][]string{
		`{}`: {""},
		`{"planner":{"tool":"modle"},"tools":["serch"]}`:                                                                                              {"/planner/tool", "/tools/0"},
		`{"planner":{"tool":"modle"},"tools":[{"group":"web"},"serch"]}`:                                                                              nil,
		`{"planner":{"tool":"model"},"inputSchema":{"type":7},"max_rounds":"x"}`:                                                                      {"/inputSchema/type", "/max_rounds"},
		`{"planner":{"tool":"model"},"inputSchema":{"type":"array"},"instructions":"${ref:x}"}`:                                                       {"/inputSchema", "/instructions"},
		`{"agent":{"planner":{"tool":"model"}}}`:                                                                                                      {"/agent"},
		`{"planner":{"tool":"model"},"instructions":"${input.y}","inputSchema":{"type":"object","properties":{"x":{}},"additionalProperties":false}}`: {"/instructions"},
	} {
		d, r := agentcheck.Inline("a", []byte(raw), agentcheck.Against(known))
		var places []string
		for _, p := range r.Problems {
			places = append(places, p.Path)
			require.NotEmpty(t, p.Message)
		}
		require.ElementsMatch(t, want, places, "%s: %v", raw, r.Problems)
		require.Equal(t, len(want) == 0, d != nil, raw)
	}
	_, r = agentcheck.Inline("a", []byte(`{"planner":{"tool":"model"},"name":"b"}`), agentcheck.Against(known))
	require.Equal(t, "/name", r.Warnings[0].Path, "%v", r.Warnings)
}
