package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
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

// TestAnAgentTellsTheUser: what its planner says by a call reaches who watches; what is to stay stands in the run's document, while
// it goes on and after it, and is told to who comes late. A message is told by its record: what passes is told at once.
func TestAnAgentTellsTheUser(t *testing.T) {
	t.Parallel()
	s := start(t)
	long := strings.Repeat("x", outcome.MaxMessage)
	x := s.plays("planner",
		`{"steps":[{"id":"look","tool":"progress","arguments":{"message":"I look\nit up."}},{"id":"n","tool":"length","arguments":{"text":"abc"}},
			{"id":"all","tool":"communicate","arguments":{"message":"It has ${ref:n}. `+long+`"}},
			{"id":"each","tool":"communicate","for_each":{"in":["<b>one</b>","\u001b[2Jtwo"],"as":"it"},"arguments":{"message":"$ref:it"},"depends_on":["all"]},
			{"id":"not","tool":"communicate","arguments":{"message":"$ref:n"},"depends_on":["each"]}]}`,
		`{"steps":[{"id":"below","tool":"sub"},{"id":"again","tool":"communicate","arguments":{"message":"Done."},"depends_on":["below"]}]}`,
		`{"steps":[{"id":"v","value":"$ref:r0.all"}],"output":"$ref:v"}`)
	s.plays("other", `{"steps":[{"id":"m","tool":"communicate","arguments":{"message":"From below."}}],"output":1}`)
	s.agent("sub", "", `{"planner":{"tool":"other","mode":"plan"},"tools":["communicate"]}`)
	s.agent("tells", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["progress","communicate","length","sub"]}`)
	watcher, err := s.client.NewWatcher(ctx(t), "tells")
	require.NoError(t, err)
	defer watcher.Close()
	watched := make(chan struct{})
	seen := sync.OnceFunc(func() { close(watched) })
	first := []outcome.Message{
		{Step: "a/=0/all", Text: ("It has 3. " + long)[:outcome.MaxMessage-3] + "…", Bytes: int64(len(long)) + 10},
		{Step: "a/=0/each=0", Text: "<b>one</b>"}, {Step: "a/=0/each=1", Text: "\x1b[2Jtwo"},
	}
	all := append(slices.Clone(first), outcome.Message{Step: "a/=1/again", Round: 1, Text: "Done."})
	timeless := func(list []outcome.Message) []outcome.Message {
		list = slices.Clone(list)
		for i := range list {
			require.NotZero(t, list[i].At)
			list[i].At = time.Time{}
		}
		slices.SortFunc(list, func(a, b outcome.Message) int { return strings.Compare(a.Step, b.Step) }) // items are decided in any order
		return list
	}
	sorted := func(list []outcome.Message) []outcome.Message {
		slices.SortFunc(list, func(a, b outcome.Message) int { return strings.Compare(a.Step, b.Step) })
		return list
	}
	x.before = func(round int) {
		if <-watched; round == 1 { // what is over by then is told no more
			doc, err := s.client.Get(ctx(t), "tells")
			require.NoError(t, err)
			require.Equal(t, sorted(first), timeless(doc.Steps[0].Messages), "while it goes on")
		}
	}
	r := s.submit(`{"steps":[{"id":"a","tool":"tells"}]}`, "tells")
	told := map[string]client.Event{}
	follow := func(w *client.Watcher) (heard []outcome.Message, below int) {
		require.NoError(t, w.Follow(ctx(t), func(e client.Event) {
			seen()
			switch e.Kind {
			case subjects.EventProgress:
				told[e.Step] = e
			case subjects.EventMessage:
				require.Equal(t, e.Step, e.Message.Step)
				if e.Agent == "a" {
					heard = append(heard, *e.Message)
				} else {
					require.Equal(t, "a/=1/below", e.Agent)
					below++
				}
			}
		}))
		return timeless(heard), below
	}
	heard, below := follow(watcher)
	require.Equal(t, sorted(all), heard, "each once")
	require.Equal(t, 1, below)
	o := s.wait(r)
	require.JSONEq(t, `"It has 3. `+long+`"`, result(t, o, "a"), "%s", o.JSON())
	require.Len(t, told, 1, "what stays is told by its record")
	require.Equal(t, "progress", told["a/=0/look"].Tool)
	require.Equal(t, "I look it up.", told["a/=0/look"].Progress.Message)
	require.Contains(t, string(x.asked[1]["rounds"]), `"status":"succeeded","result":"shown"`)

	late, err := s.client.NewWatcher(ctx(t), "tells")
	require.NoError(t, err)
	defer late.Close()
	heard, below = follow(late)
	require.Equal(t, sorted(all), heard, "to who comes late")
	require.Equal(t, 1, below)
	doc, err := s.client.Get(ctx(t), "tells")
	require.NoError(t, err)
	require.Equal(t, sorted(all), timeless(doc.Steps[0].Messages), "after the end")
	require.Equal(t, 1, strings.Count(string(doc.JSON()), `"text":"From below."`), "with the agent that said it")
}

// TestManyMessagesOfAnAgent: a document has the last messages of an agent, and says how many there were before.
func TestManyMessagesOfAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	var each []string
	for range 60 {
		each = append(each, strings.Repeat("é", 2000))
	}
	in, err := json.Marshal(each)
	require.NoError(t, err)
	s.plays("planner", `{"steps":[{"id":"e","tool":"communicate","for_each":{"in":`+string(in)+`,"as":"it"},"arguments":{"message":"$ref:it"}}],"output":"told"}`)
	s.agent("tells", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["communicate"]}`)
	s.run(`{"steps":[{"id":"a","tool":"tells"}]}`, "many")
	doc, err := s.client.Get(ctx(t), "many")
	require.NoError(t, err)
	a := doc.Steps[0]
	require.Equal(t, len(each), len(a.Messages)+a.MessagesLeftOut)
	require.Equal(t, (128<<10)/(4000+len("a/=0/e=00")), len(a.Messages))
	require.True(t, slices.IsSortedFunc(a.Messages, func(a, b outcome.Message) int { return a.At.Compare(b.At) }))
	require.Zero(t, a.Messages[0].Bytes, "it is whole")
}

// TestARetryKeepsMessages: what the run that is tried again has told people stands in the new one, as told before; a message that
// is said again is another one.
func TestARetryKeepsMessages(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.acts()
	x.fails["bad"] = true
	s.plays("planner",
		`{"steps":[{"id":"m","tool":"communicate","arguments":{"message":"I begin."}}]}`,
		`{"steps":[{"id":"bad","tool":"act","arguments":{"n":"bad"}},{"id":"m","tool":"communicate","arguments":{"message":"I begin."}},
			{"id":"f","tool":"communicate","arguments":{"message":"Sorry."},"if":"$status:bad == 'failed'"},{"id":"w","tool":"communicate","arguments":{"message":"Got ${ref:bad.n}."}},
			{"id":"e","tool":"communicate","arguments":{"message":"Over."},"if":"$status:bad != 'skipped'"}]}`,
		`{"steps":[{"id":"n","tool":"act","arguments":{"n":"bad"}}]}`)
	s.agent("tells", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["communicate","act"]}`)
	told := func(run string) (all []string) {
		doc, err := s.client.Get(ctx(t), run)
		require.NoError(t, err)
		for _, m := range doc.Steps[0].Messages {
			all = append(all, fmt.Sprintf("%s %d %s %t", m.Step, m.Round, m.Text, m.Reused))
		}
		slices.Sort(all)
		return all
	}
	o := s.run(`{"steps":[{"id":"a","tool":"tells"}]}`, "r")
	require.Equal(t, outcome.Failed, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"a/=0/m 0 I begin. false", "a/=1/e 1 Over. false", "a/=1/f 1 Sorry. false", "a/=1/m 1 I begin. false"}, told("r"))
	x.mu.Lock()
	x.fails["bad"] = false
	x.mu.Unlock()
	events, err := s.nc.SubscribeSync("event.default.>")
	require.NoError(t, err)
	retried, err := s.client.Retry(ctx(t), "r", client.RetryOptions{})
	require.NoError(t, err)
	s.wait(retried)
	require.Equal(t, []string{"a/=0/m 0 I begin. true", "a/=1/e 1 Over. false", "a/=1/m 1 I begin. true", "a/=1/w 1 Got bad. false"}, told(retried.ID()))
	var heard []string
	for m, err := events.NextMsg(patience); err == nil && !strings.HasSuffix(m.Subject, ".end"); m, err = events.NextMsg(patience) {
		if strings.HasSuffix(m.Subject, ".message") {
			x, ok := wire.ParseEvent[wire.MessageEvent](m.Data)
			require.True(t, ok)
			heard = append(heard, x.Step)
		}
	}
	slices.Sort(heard)
	require.Equal(t, []string{"a/=1/e", "a/=1/w"}, heard, "nobody is told again what was told, but of what has come of it since")
}
