package orchestrator_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
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
	o := s.unasked(r, q.Step)
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

// TestAnAgentTellsTheUser: what its planner says by a call reaches who watches, and stays in the account where it is to.
func TestAnAgentTellsTheUser(t *testing.T) {
	t.Parallel()
	s := start(t)
	long := strings.Repeat("x", 600)
	x := s.plays("planner",
		`{"steps":[{"id":"look","tool":"progress","arguments":{"message":"I look\nit up."}},{"id":"n","tool":"length","arguments":{"text":"abc"}},
			{"id":"all","tool":"communicate","arguments":{"message":"It has ${ref:n}. `+long+`"}}]}`,
		`{"steps":[{"id":"v","value":"$ref:r0.all"}],"output":"$ref:v"}`)
	s.agent("tells", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["progress","communicate","length"]}`)
	watcher, err := s.client.NewWatcher(ctx(t), "tells")
	require.NoError(t, err)
	defer watcher.Close()
	watched := make(chan struct{})
	seen := sync.OnceFunc(func() { close(watched) })
	x.before = func(int) { <-watched } // what is over by then is told no more
	r := s.submit(`{"steps":[{"id":"a","tool":"tells"}]}`, "tells")
	told := map[string]client.Event{}
	require.NoError(t, watcher.Follow(ctx(t), func(e client.Event) {
		seen()
		if e.Kind == subjects.EventProgress {
			told[e.Step] = e
		}
	}))
	o := s.wait(r)
	require.JSONEq(t, `"It has 3. `+long+`"`, result(t, o, "a"), "%s", o.JSON())
	require.Len(t, told, 2)
	require.Equal(t, "progress", told["a/=0/look"].Tool)
	require.Equal(t, "I look it up.", told["a/=0/look"].Progress.Message)
	require.Contains(t, told["a/=0/all"].Progress.Message, "It has 3. xxx")
	require.LessOrEqual(t, len(told["a/=0/all"].Progress.Message), wire.MaxProgressText)
	require.Contains(t, string(x.asked[1]["rounds"]), `"status":"succeeded","result":"shown"`)
}
