package orchestrator_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// agent applies an agent.
func (s *system) agent(name, more, definition string) tool.Registered {
	s.t.Helper()
	t, err := s.client.ApplyTemplate(ctx(s.t), fmt.Appendf(nil, `{"name":%q%s,"agent":%s}`, name, more, definition))
	require.NoError(s.t, err)
	return t
}

// TestAnAgentIsAppliedAsTemplatesAre: it is checked against the tools that are there, kept, and hosted by nobody.
func TestAnAgentIsAppliedAsTemplatesAre(t *testing.T) {
	t.Parallel()
	s := start(t)
	put := s.agent("researcher", `,"description":"Researches."`, `{"planner":{"tool":"echo"},"tools":["echo",{"tool":"fail","needs":{"all":["echo"]}}]}`)
	require.True(t, put.Agent())
	require.False(t, put.Template())
	require.False(t, put.Hosted())
	require.Equal(t, []string{wire.LanguageTwo, wire.Agents}, put.Needs)
	there, err := s.store.Registry.Tool(ctx(t), "researcher")
	require.NoError(t, err)
	require.JSONEq(t, `{"planner":{"tool":"echo"},"tools":["echo",{"tool":"fail","needs":{"all":["echo"]}}]}`, string(there.Definition.Agent))
	again := s.agent("researcher", `,"description":"Researches."`, `{"planner":{"tool":"echo"},"tools":["echo",{"tool":"fail","needs":{"all":["echo"]}}]}`)
	require.Equal(t, put.Revision, again.Revision, "what is there already writes nothing")

	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"bad","agent":{"planner":{"tool":"gone"},"tools":["ecco"],"max_rounds":0}}`))
	var places []string
	for _, f := range tool.FlawsOf(err) {
		places = append(places, f.Path)
	}
	require.ElementsMatch(t, []string{"/agent/planner/tool", "/agent/tools/0", "/agent/max_rounds"}, places, "%v", err)
	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"echo","agent":{"planner":{"tool":"fail"}}}`))
	require.ErrorContains(t, err, "is a tool that workers host already")
	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"researcher","plan":{"steps":[{"id":"a","tool":"echo"}]}}`))
	require.ErrorContains(t, err, "is an agent already")
	_, err = s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"r","agent":{"planner":{"tool":"echo"}}}`))
	require.ErrorContains(t, err, "is an agent, which no worker hosts")

	refused := s.run(`{"steps":[{"id":"a","tool":"researcher"}]}`, "not-yet")
	require.Equal(t, outcome.Rejected, refused.Status)
	require.Contains(t, refused.Problems[0].Message, "does not run agents yet")
}
