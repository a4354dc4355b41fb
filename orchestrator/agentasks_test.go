package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
)

// TestAnAgentAsksAPerson: the answer is what the call returned, to the calls of its round and to the planner. What an
// entry hides when its turn comes is not asked.
func TestAnAgentAsksAPerson(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"who","tool":"ask","arguments":{"question":"With whom?","choices":["alone","dog"]}},{"id":"note","tool":"echo","arguments":{"with":"$ref:who"}}]}`,
		`{"steps":[{"id":"first","tool":"echo","arguments":{"n":1}},{"id":"all","tool":"only","depends_on":["first"]},{"id":"more","tool":"ask","arguments":{"question":"Anything else?"}}]}`,
		`{"steps":[{"id":"v","value":"$ref:r0.note.with"}],"output":"$ref:v"}`)
	s.agent("asks", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["ask","echo",{"unfold":"only","description":"Nothing else.","exclusive":true,"tools":["length"]}]}`)
	s.agent("mute", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"],"max_rounds":1}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"asks"}]}`, "asks")
	q := s.asked("asks", "a/=0/who")
	require.Equal(t, "With whom?", q.Text)
	_, err := s.client.Answer(ctx(t), q, json.RawMessage(`"cat"`), client.Answer{})
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	_, err = s.client.Answer(ctx(t), q, json.RawMessage(`"dog"`), client.Answer{})
	require.NoError(t, err)
	o := s.wait(r)
	require.JSONEq(t, `"dog"`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, string(x.asked[0]["tools"]), `"name":"ask"`)
	require.Contains(t, string(x.asked[1]["rounds"]), `"status":"succeeded","result":"dog"`)
	require.Contains(t, string(x.asked[1]["facts"]), `"succeeded":["ask","echo"]`)
	require.Contains(t, string(x.asked[2]["rounds"]), `'ask' can't be called any more: 'only' was opened`)
	require.Equal(t, fault.Locked, o.Errors[0].Code)
	s.noQuestions()

	o = s.run(`{"steps":[{"id":"a","tool":"mute"}]}`, "mute")
	require.Equal(t, fault.RoundsExhausted, o.Errors[0].Code, "an agent without the entry asks nobody")
}
