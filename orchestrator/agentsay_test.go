package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestWhatIsSaidToAnAgent is told to its planner with the next request, by whoever owns the run then, and makes a round
// follow where the loop would end.
func TestWhatIsSaidToAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"book","tool":"echo","arguments":{"for":1}}],"output":"$ref:book"}`,
		`{"steps":[{"id":"book","tool":"echo","arguments":{"for":2}}]}`,
		`{"steps":[{"id":"v","value":"$ref:r1.book"}],"output":"$ref:v"}`)
	asked, goOn := make(chan int), make(chan struct{})
	x.before = func(round int) { asked <- round; <-goOn }
	s.agent("travels", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"]}`)
	say := func(id, text string) (*client.Heard, error) {
		return client.Say(ctx(t), s.client, "trip", client.Word{Step: "a", ID: id, Text: text, By: "ann"})
	}
	r := s.submit(`{"steps":[{"id":"a","tool":"travels"},{"id":"b","tool":"echo","depends_on":["a"]}]}`, "trip")
	require.Equal(t, 0, <-asked)
	for k := range 2 { // saying it twice is saying it once
		heard, err := say("m1", "Actually, I'll be traveling with my dog.")
		require.NoError(t, err)
		require.Equal(t, &client.Heard{ID: "m1", Round: -1, Already: k > 0}, heard)
	}
	_, err := say("m1", "With my cat.")
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	_, err = client.Say(ctx(t), s.client, "trip", client.Word{Step: "b", Text: "x"})
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
	s.orchestrator()
	s.leave()
	goOn <- struct{}{}
	require.Equal(t, 1, <-asked)
	heard, err := say("m1", "Actually, I'll be traveling with my dog.")
	require.NoError(t, err)
	require.Equal(t, &client.Heard{ID: "m1", Round: 1, Already: true}, heard)
	goOn <- struct{}{}
	require.Equal(t, 2, <-asked)
	goOn <- struct{}{}
	o := s.wait(r)
	require.JSONEq(t, `{"for":2}`, result(t, o, "a"), "%s", o.JSON())
	require.JSONEq(t, `[{"role":"user","content":"Actually, I'll be traveling with my dog.","round":1,"id":"m1","by":"ann"}]`, string(x.asked[1]["messages"]))
	require.JSONEq(t, `"$ref:book"`, string(x.asked[1]["dropped_output"]), "as it was written")
	require.JSONEq(t, `[]`, string(x.asked[2]["messages"]))
	require.Contains(t, string(x.asked[2]["rounds"]), `"content":"Actually, I'll be traveling with my dog."`)
	doc, err := s.client.Get(ctx(t), "trip")
	require.NoError(t, err)
	one := 1
	require.Equal(t, []outcome.Said{{ID: "m1", By: "ann", Round: &one, Content: json.RawMessage(`"Actually, I'll be traveling with my dog."`)}}, doc.Steps[0].Said)
	require.Nil(t, doc.Steps[1].Said)
	_, err = say("m2", "Thanks.")
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)
	_, err = client.Say(ctx(t), s.client, "no-trip", client.Word{Step: "a", Text: "Hello?"})
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
}

// TestAWordDropsWhatTheLoopWouldHaveComeTo: whatever would have ended it, an output that stands alone, a direct result or a
// text, is in the next request, beside what was said.
func TestAWordDropsWhatTheLoopWouldHaveComeTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ entries, answer, dropped string }{
		"an output alone": {`["echo"]`, `{"output":{"n":1}}`, `{"n":1}`},
		"beside calls":    {`["echo"]`, `{"steps":[{"id":"e","tool":"echo","arguments":{"n":2}}],"output":"$ref:e"}`, `"$ref:e"`},
		"a direct result": {`[{"tool":"echo","direct":true}]`, `{"steps":[{"id":"e","tool":"echo","arguments":{"n":3}}]}`, `{"n":3}`},
		"a text":          {`["echo"]`, `"Done."`, `"Done."`},
		"nothing":         {`["echo"]`, `{"steps":[]}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			x := s.plays("planner", c.answer, `{"output":"over"}`)
			asked, goOn := make(chan int), make(chan struct{})
			x.before = func(round int) { asked <- round; <-goOn }
			s.agent("short", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":`+c.entries+`}`)
			r := s.submit(`{"steps":[{"id":"agent","tool":"short"}]}`, "ends")
			require.Equal(t, 0, <-asked)
			_, err := client.Say(ctx(t), s.client, "ends", client.Word{Text: "Wait."})
			require.NoError(t, err)
			goOn <- struct{}{}
			require.Equal(t, 1, <-asked)
			goOn <- struct{}{}
			o := s.wait(r)
			require.JSONEq(t, `"over"`, result(t, o, "agent"), "%s", o.JSON())
			require.Contains(t, string(x.asked[1]["messages"]), "Wait.")
			if c.dropped == "" {
				require.Empty(t, x.asked[1]["dropped_output"])
				return
			}
			require.JSONEq(t, c.dropped, string(x.asked[1]["dropped_output"]))
		})
	}
}

// TestWordsRaceWithTheEnd: what is said while a loop ends is told once, or refused.
func TestWordsRaceWithTheEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	answers := make([]string, 50)
	for n := range answers {
		answers[n] = `"Done."`
	}
	x := s.plays("planner", answers...)
	first := make(chan struct{})
	heard := sync.OnceFunc(func() { close(first) })
	x.before = func(int) { <-first }
	s.agent("short", "", `{"planner":{"tool":"planner","mode":"plan"},"max_rounds":50}`)
	r := s.submit(`{"steps":[{"id":"agent","tool":"short"}]}`, "race")
	var said, refused sync.Map
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for k := range 20 {
				id := fmt.Sprintf("m%d-%d", n, k)
				_, err := client.Say(ctx(t), s.client, "race", client.Word{ID: id, Text: id})
				switch fault.CodeOf(err) {
				case "":
					said.Store(id, true)
					heard()
				case fault.AlreadyFinished, fault.NotFound, fault.InvalidID: // it is over, or has not begun
					refused.Store(id, true)
				default:
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	o := s.wait(r)
	all.Wait()
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	told := map[string]int{}
	for _, a := range x.asked {
		for _, m := range messagesOf(t, a["messages"]) {
			told[m]++
		}
	}
	for id, n := range told {
		require.Equal(t, 1, n, id)
		_, no := refused.Load(id)
		require.False(t, no, "%s was told and refused", id)
	}
	said.Range(func(id, _ any) bool {
		require.Equal(t, 1, told[id.(string)], id)
		return true
	})
	require.Greater(t, len(x.asked), 1)
}

func messagesOf(t *testing.T, raw json.RawMessage) (ids []string) {
	t.Helper()
	var all []struct{ ID string }
	require.NoError(t, json.Unmarshal(raw, &all))
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	return ids
}

// TestAnAgentIsInterrupted: what waits in its round is dropped, what is out is given up, its planner's call too, and it asks
// again at once, by whoever owns the run then.
func TestAnAgentIsInterrupted(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"g","tool":"gate"},{"id":"q","tool":"ask","arguments":{"question":"Which?"}},{"id":"late","tool":"echo","depends_on":["g"],"arguments":{"n":1}}]}`,
		`{"output":"too late"}`,
		`{"steps":[{"id":"e","tool":"echo","arguments":{"n":2}}]}`,
		`{"output":"done"}`)
	asked, goOn := make(chan int), make(chan struct{})
	x.before = func(round int) {
		if asked <- round; round == 1 || round == 2 {
			<-goOn
		}
	}
	s.agent("stops", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo","ask"]}`)
	interrupt := func(id string) {
		t.Helper()
		_, err := client.Say(ctx(t), s.client, "stop", client.Word{Step: "a", ID: id, Text: "Stop that.", Interrupt: true})
		require.NoError(t, err)
	}
	r := s.submit(`{"steps":[{"id":"a","tool":"stops"}]}`, "stop")
	require.Equal(t, 0, <-asked)
	<-s.tools.begun
	s.asked("stop", "a/=0/q")
	interrupt("m1")
	require.Equal(t, 1, <-asked, "nobody waits for the gate")
	leave := s.orchestrator()
	s.leave()
	interrupt("m2")
	require.Equal(t, 2, <-asked, "nor for the planner")
	late := wire.Round{Problems: []fault.Problem{{Code: fault.UnknownTool, Message: "decided too late"}}}
	h, body, err := late.Message()
	require.NoError(t, err)
	_, _, err = s.store.Ledger.Create(ctx(t), subjects.RoundRecord(subjects.NewRun("default", "stop"), r.Generation(), "a/=1", 1), h, body, nil)
	require.NoError(t, err)
	s.orchestrator() // who renders all rounds anew
	leave()
	close(goOn)
	require.Equal(t, 3, <-asked)
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	codes := map[string]fault.Code{}
	for _, e := range o.Errors {
		codes[e.Step] = e.Code
		require.Contains(t, e.Message, "somebody interrupted the agent 'a'")
		hint := map[string]string{"a/=0/g": "may have happened", "a/=0/late": "has not happened"}[e.Step]
		require.Contains(t, e.Hint, hint, e.Step)
	}
	require.Regexp(t, `"id":"g".*may have happened.*"id":"late".*has not happened`, string(x.asked[1]["rounds"]))
	require.Equal(t, map[string]fault.Code{"a/=0/g": fault.Cancelled, "a/=0/q": fault.Cancelled, "a/=0/late": fault.Cancelled, "a/=1/=plan": fault.Cancelled}, codes)
	require.Contains(t, string(x.asked[1]["messages"]), `"id":"m1","mode":"interrupt"`)
	require.Contains(t, string(x.asked[1]["rounds"]), `"status":"cancelled"`)
	require.NotContains(t, string(x.asked[3]["rounds"]), "decided too late", "an interrupted round has no record")
	s.noQuestions()
}
