package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/wire"
)

// TestObjectsAreTakenByWhatIsAround: whether an entry captures what a call returned, whether that goes to its sinks and whether the
// tools of its chain may be called is decided by the facts as of the call's record: the input, the round, what was called, and the
// state with what calls of the same round have written by then. The next owner comes to the same.
func TestObjectsAreTakenByWhatIsAround(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.sinksAreThere()
	x := s.plays("planner",
		`{"calls":[{"_tool":"team","n":7,"_outputPath":"†state.team"},{"_tool":"get_order","_after":["team"],"id":"o1","team":7,"owner":"ann"},
			{"_tool":"get_order","_id":"early","id":"o0","team":8,"owner":"ann"},{"_tool":"get_order","_id":"of_bob","_after":["get_order"],"id":"o9","team":7,"owner":"bob"},
			{"_tool":"cancel","_after":["of_bob"]}]}`,
		`{"calls":[{"_tool":"cancel"},{"_tool":"length","text":"abc"},{"_tool":"get_order","_after":["length"],"id":"o2","team":7,"owner":"ann"},
			{"_tool":"cancel","_id":"now","_after":["get_order"],"_outputPath":"†state.done"}]}`,
		`{"calls":[{"_tool":"get_order","id":"o3","team":7,"owner":"ann"},{"_tool":"cancel","_after":["get_order"],"_outputPath":"†state.more"}]}`,
		`{"calls":[],"output":["†state.done.id","†state.more.id"]}`)
	x.before = func(round int) {
		if round == 1 || round == 3 {
			s.orchestrator()
			s.leave()
		}
	}
	put := s.agent("orders", "", `{"planner":{"tool":"planner","mode":"calls"},"advance":"all","state":{"initial":{}},"tools":["length",{"tool":"echo","as":"team"},
		{"tool":"echo","as":"get_order","artifact":{"type":"Order","when":"$artifact.owner == $input.who and $artifact.team == $state.team.n","sink":{"subject":"kept.orders"}}},
		{"chain":"Order","tools":[{"tool":"echo","as":"cancel"}],"bind":{"id":"$artifact.id"},"when":"$round > 0 and $succeeded.length and $blackboard.Order.id == \"o1\""}]}`)
	require.Contains(t, put.Needs, wire.ObjectConditions)
	o := s.run(`{"steps":[{"id":"a","tool":"orders","arguments":{"who":"ann"}}]}`, "around")
	require.JSONEq(t, `["o2","o2"]`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, s.frozen("around").Needs, wire.ObjectConditions)
	require.JSONEq(t, `[{"name":"Order","type":"Order"}]`, string(member(t, x.asked[1]["facts"], "artifacts")))
	const unmet = "'cancel' is not available: it acts upon one 'Order', and the one that a tool has returned does not meet its condition"
	require.Contains(t, string(x.asked[1]["rounds"]), unmet, "in the first round")
	require.Contains(t, string(x.asked[2]["rounds"]), unmet, "in the second, before the call that it needs")

	all, _ := s.sunk("KEPT")
	went := map[string]string{}
	for _, x := range all {
		went[x.Step] = string(member(t, x.Value, "id"))
	}
	require.Equal(t, map[string]string{"a/=0/get_order": `"o1"`, "a/=1/get_order": `"o2"`, "a/=2/get_order": `"o3"`}, went)
}

// member returns one of an object.
func member(t *testing.T, object json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &all), "%s", object)
	return all[name]
}

// TestTheLastCallsObjectIsActedUpon: a later round acts upon the object of the last call in the answer's order, whichever came first;
// so does a call that waits for a list of them. A run that began before that was so goes on as it did.
func TestTheLastCallsObjectIsActedUpon(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"late","tool":"length","arguments":{"text":"abc"}},{"id":"a","tool":"user","arguments":{"id":"$ref:late"}},{"id":"b","tool":"user","arguments":{"id":2}}]}`,
		`{"steps":[{"id":"acts","tool":"order"},{"id":"list","tool":"user","for_each":{"in":[7,8,9],"as":"item"},"arguments":{"id":"$ref:item"}},{"id":"behind","tool":"order","depends_on":["list"]}]}`,
		`{"steps":[{"id":"again","tool":"order"}]}`, `{"output":["$ref:r1.acts.of","$ref:r1.behind.of","$ref:r2.again.of"]}`)
	put := s.agent("orders", "", `{"planner":{"tool":"planner"},"tools":["length",{"tool":"echo","as":"user","artifact":{"type":"User"}},
		{"tool":"echo","as":"order","bind":{"of":"$artifact.User.id"}}]}`)
	require.Contains(t, put.Needs, wire.AnswerOrder)
	o := s.run(`{"steps":[{"id":"a","tool":"orders","arguments":{}}]}`, "ordered")
	require.JSONEq(t, `[2,9,9]`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, s.frozen("ordered").Needs, wire.AnswerOrder)
	require.Contains(t, string(x.asked[1]["facts"]), `{"name":"User_2","type":"User"}`)
}
