package orchestrator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// TestAStateIsKeptOverRounds: what calls wrote is what those of later rounds read, whoever owns the run, and across a call
// that failed first; the planner is shown it, and an output may be it alone.
func TestAStateIsKeptOverRounds(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"calls":[{"_tool":"echo","n":1,"_outputPath":"†state.first"},{"_tool":"length","text":"†state.name","_outputPath":"†state.count"},{"_tool":"gate","_outputPath":"†state.gate"},{"_tool":"load","_outputPath":"†state.loaded"}],"output":null}`,
		`{"calls":[{"_tool":"load","_outputPath":"†state.first"},{"_tool":"flaky","_outputPath":"†state.gate"},{"_tool":"fail","_outputPath":"†state.paid || †state.declined"},{"_tool":"echo","n":2,"_outputPath":"†state.log","_outputMethod":"push"}]}`,
		`{"calls":[{"_tool":"echo","was":"†state.first.n","why":"†state.declined.code","_outputPath":"†state.log","_outputMethod":"push"},{"_tool":"gate","_if":"†state.count > 3"}]}`,
		`{"calls":[],"output":{"log":"†state.log","count":"†state.count","says":"${state.name} of ${input.town}"}}`)
	s.agent("keeper", "", `{"planner":{"tool":"planner","mode":"calls"},"advance":"all","tools":["echo","length","fail","gate","flaky",{"tool":"echo","as":"load","once":"Go on."}],
		"state":{"initial":{"name":"Ann"},"schema":{"type":"object","properties":{"name":{"type":"string"},"first":{},"loaded":{},"count":{"type":"number"},"gate":{},"paid":{},"declined":{},"log":{"type":"array"}}}}}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"keeper","arguments":{"town":"Kiel"}}]}`, "state")
	<-s.tools.begun
	s.orchestrator()
	s.leave()
	s.tools.gate <- struct{}{}
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"log":[{"n":2},{"was":1,"why":"tool_terminal"}],"count":3,"says":"Ann of Kiel"}`, result(t, o, "a"))
	require.JSONEq(t, `{"name":"Ann"}`, string(x.asked[0]["state"]))
	var left map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(x.asked[2]["state"], &left))
	require.JSONEq(t, `{"n":1}`, string(left["first"]))
	require.JSONEq(t, `[{"n":2}]`, string(left["log"]))
	require.Contains(t, string(left["declined"]), `"code":"tool_terminal"`)
	require.NotContains(t, left, "paid")
	require.JSONEq(t, `"at last"`, string(left["gate"]))
	require.Equal(t, []int{0, 1, 2, 3}, x.times())
}

// TestCallsFollowTheirPlanOneByOne, as they do where nothing else is said: what did not run wrote nothing, and what the
// planner says again reads what there is.
func TestCallsFollowTheirPlanOneByOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	plan := `{"calls":[{"_tool":"echo","id":7,"_outputPath":"†state.found"},{"_tool":"echo","_id":"act","with":"†state.found.id","_outputPath":"†state.acted"}],"output":null}`
	x := s.plays("planner", plan, `{"calls":[{"_tool":"echo","_id":"act","with":"†state.found.id","_outputPath":"†state.acted"}],"output":{"all":"†state"}}`)
	s.agent("follower", "", `{"planner":{"tool":"planner","mode":"calls"},"tools":["echo"]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"follower"}]}`, "follow")
	require.JSONEq(t, `{"all":{"found":{"id":7},"acted":{"with":7}}}`, result(t, o, "a"), "%s", o.JSON())
	require.JSONEq(t, `{"found":{"id":7}}`, string(x.asked[1]["state"]))
}

// TestTheStateOpensAndBinds: what is needed of the state is asked as of the record that made a call ready, and a bound
// argument is what the calls before it in the answer wrote.
func TestTheStateOpensAndBinds(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"calls":[{"_tool":"length","text":"ab","_outputPath":"†state.early"}]}`,
		`{"calls":[{"_tool":"echo","id":"u1","_outputPath":"†state.user"},{"_tool":"mail","_after":["echo"],"_outputPath":"†state.sent"}]}`,
		`{"calls":[{"_tool":"mail","again":1,"_outputPath":"†state.sent"}],"output":"†state.sent"}`)
	s.agent("binds", "", `{"planner":{"tool":"planner","mode":"calls"},"advance":"all","state":{"initial":{"sent":null}},"tools":["echo",{"tool":"length","needs":{"state":"user"}},
		{"tool":"echo","as":"mail","needs":{"when":"$state.user.id == \"u1\""},"bind":{"to":"$state.user.id","sent":"$state.sent"}}]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"binds"}]}`, "binds")
	require.JSONEq(t, `{"again":1,"to":"u1","sent":{"to":"u1","sent":null}}`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, string(x.asked[1]["rounds"]), "nothing stands at 'user' of the state")
}

// TestASchemaOfTheState: a place that it has not is a problem of the answer, and what returns another value fails.
func TestASchemaOfTheState(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"calls":[{"_tool":"echo","x":1,"_outputPath":"†state.nmae"}]}`,
		`{"calls":[{"_tool":"echo","x":1,"_outputPath":"†state.name"},{"_tool":"length","text":"abc","_outputPath":"†state.n"}]}`,
		`{"calls":[],"output":"†state"}`)
	s.agent("strict", "", `{"planner":{"tool":"planner","mode":"calls"},"advance":"all","tools":["echo","length"],
		"state":{"initial":{"name":"Ann"},"schema":{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"number"}}}}}`)
	o := s.run(`{"steps":[{"id":"a","tool":"strict"}]}`, "strict")
	require.JSONEq(t, `{"name":"Ann","n":3}`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, string(x.asked[1]["rounds"]), `"code":"state_mismatch","at":"/calls/0/_outputPath"`)
	require.Contains(t, string(x.asked[1]["rounds"]), `there are: n, name`)
	require.Contains(t, string(x.asked[2]["rounds"]), `"status":"failed","error":{"code":"state_invalid","message":"what was returned does not fit the schema of the state: †state.name`)
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"late","agent":{"planner":{"tool":"echo"},"state":{"initial":{"n":"x"},"schema":{"type":"object","properties":{"n":{"type":"number"}}}}}}`))
	require.ErrorContains(t, err, "against the schema of the state")
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err), strings.TrimSpace(err.Error()))
}
