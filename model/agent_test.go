package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	agentrequest "github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/fault"
)

// asking is an agent's loop, and the worker that its requests come to.
type asking struct {
	t     *testing.T
	facts *agent.Facts
	loop  *agentrequest.Loop
	kept  map[string][]byte
	known *parts.Keeper
	last  agentrequest.Part
}

func ask(t *testing.T, mode Mode, more string) *asking {
	t.Helper()
	d, report := agent.Parse([]byte(`{"name":"helper","description":"Helps.","outputSchema":{"type":"object"},"agent":{
		"planner":{"tool":"model","model":"large","mode":"`+string(mode)+`"},"max_rounds":500,"instructions":"Find ${input.topic}.",
		"tools":["web.search",{"tool":"add","needs":{"all":["web.search"]}},{"unfold":"db","description":"Asks.","tools":["query"]}]`+more+`}}`), nil)
	require.Empty(t, report.Problems)
	f, err := d.Begin(json.RawMessage(`{"topic":"tides"}`), nil)
	require.Nil(t, err)
	name := func(round int) string { return fmt.Sprintf("acme/run/7/=part.a.%d", round) }
	return &asking{t: t, facts: f, loop: agentrequest.Begin(d, f, name), kept: map[string][]byte{}, known: parts.NewKeeper(parts.DefaultKept)}
}

// asks begins a round, and returns its request as a worker reads it.
func (a *asking) asks(round int, said ...agentrequest.Message) *Request {
	a.t.Helper()
	a.facts.BeginRound(round, nil)
	a.loop.Open(a.facts, said)
	return a.read(a.loop.Request(agentrequest.Now{}))
}

func (a *asking) read(r agentrequest.Request) *Request {
	a.t.Helper()
	whole, err := a.known.Whole(context.Background(), r.Bytes, func(_ context.Context, name string) ([]byte, error) { return a.kept[name], nil })
	require.NoError(a.t, err)
	d := json.NewDecoder(bytes.NewReader(whole))
	d.DisallowUnknownFields() // but for views, and what is the loop's own, all that an agent says is known here
	var known struct {
		Request
		Plan      json.RawMessage `json:"plan"`
		Number    int             `json:"round"`
		MaxRounds int             `json:"max_rounds"`
		Budget    json.RawMessage `json:"budget"`
	}
	if !bytes.Contains(whole, []byte(`"role":"user"`)) { // who said a message is for people
		require.NoError(a.t, d.Decode(&known))
	}
	read, err := ParseRequest(whole)
	require.NoError(a.t, err)
	return read
}

func (a *asking) ends(r agentrequest.Round) {
	for _, rec := range r.Records {
		if rec.Status == "succeeded" {
			a.facts.Add(agent.Outcome{Entry: rec.Tool, Result: rec.Result.JSON})
		}
	}
	a.last = a.loop.End(r, a.facts, "")
	a.kept[a.last.Name] = a.last.Bytes
}

// played is a round with a call that succeeded, one that failed and one that never ran.
func played(round, n int) agentrequest.Round {
	return agentrequest.Round{
		Plan: agentrequest.Whole([]byte(`{"steps":[{"id":"a","tool":"web.search"}]}`)), Text: "I look.",
		Records: []agentrequest.Record{
			{ID: "a", Tool: "web.search", Purpose: "see", Arguments: agentrequest.Whole(fmt.Appendf(nil, `{"q":%d}`, round)), Status: "succeeded",
				Result: agentrequest.Whole([]byte(`{"hits":"` + strings.Repeat("x", n) + `"}`)), Note: "as before"},
			{ID: "b", Tool: "add", Status: "failed", Error: agentrequest.Whole([]byte(`{"code":"locked"}`))},
			{ID: "c", Tool: "add", Arguments: agentrequest.Whole([]byte(`"no object"`)), Status: agentrequest.NotRun},
			{ID: "v", Status: "succeeded", Result: agentrequest.Whole([]byte(`1234567890123456789012345678901234567890`))},
		},
	}
}

// untold is the body of a request without what is true of it alone.
func untold(r Request, m Model) []byte {
	r.State, r.Facts, r.Locked, r.ToolChanges, r.Messages = nil, nil, nil, nil, nil
	return bytes.TrimSuffix(unmarked(Prepare(&r, m, false).Body), []byte("]}"))
}

// What an agent asks is read here as it was meant: of two rounds the later request begins with the bytes of the earlier,
// in the forms of both APIs, whatever is said, unlocked or refused on the way.
func TestAnAgentsRequestGrowsAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range Modes[1:] {
		a := ask(t, mode, "")
		before := map[string][]byte{}
		all, same := 0, 0
		last := map[string][]byte{}
		rounds, result := 60, 1000
		if mode == ModeTools {
			rounds, result = 200, 300
		}
		for round := range rounds {
			var said []agentrequest.Message
			if round%4 == 2 {
				said = append(said, agentrequest.Message{ID: fmt.Sprint("m", round), By: "ann", Content: json.RawMessage(`[{"type":"text","text":"With a dog."}]`)})
			}
			r := a.asks(round, said...)
			for _, provider := range []string{OpenAI, Anthropic} {
				m := modelOf(provider)
				body := unmarked(Prepare(r, m, false).Body)
				require.True(t, bytes.HasPrefix(body, before[provider]), "%s %s, round %d", provider, mode, round)
				require.True(t, json.Valid(body))
				n := 0
				for n < min(len(body), len(last[provider])) && body[n] == last[provider][n] {
					n++
				}
				all, same, last[provider] = all+len(body), same+n, body
				before[provider] = untold(*r, m)
			}
			next := played(round, result)
			switch round {
			case 3:
				next.Records = append(next.Records, agentrequest.Record{ID: "d", Tool: "db", Status: "succeeded"})
			case 5:
				next = agentrequest.Round{Plan: agentrequest.Whole([]byte(`"{\"steps\""`)), Problems: []fault.Problem{{Code: fault.MalformedJSON, Message: "no"}}}
			}
			a.ends(next)
		}
		t.Logf("%s: %.1f %% of %d bytes", mode, 100*float64(same)/float64(all), all)
		require.Greater(t, float64(same)/float64(all), 0.95)
	}
}

// bodies are what both providers are sent.
func bodies(r *Request) (all []string) {
	for _, provider := range []string{OpenAI, Anthropic} {
		all = append(all, string(Prepare(r, modelOf(provider), false).Body))
	}
	return all
}

func TestAModelIsToldWhatHappened(t *testing.T) {
	t.Parallel()
	a := ask(t, ModeTools, "")
	a.asks(0)
	first := played(0, 3)
	first.Records = append(first.Records, agentrequest.Record{ID: "d", Tool: "db", Status: "succeeded"})
	a.ends(first)
	for _, body := range bodies(a.asks(1, agentrequest.Message{ID: "m", By: "ann", Content: json.RawMessage(`"With a dog."`), Interrupt: true})) {
		for _, says := range []string{
			`{\"hits\":\"xxx\"}\nas before`, `{\"error\":{\"code\":\"locked\"}}`, `{\"status\":\"not_run\"}`, `1234567890123456789012345678901234567890`,
			`These tools are there now, or are others than before. Call one that is not offered by answering with JSON alone`,
			`{\"name\":\"query\"`, `With a dog.`, `The output at the end is a value of this JSON Schema`,
		} {
			require.Contains(t, body, says)
		}
	}
	a.ends(agentrequest.Round{Plan: agentrequest.Whole([]byte(`"{\"steps\""`)), Problems: []fault.Problem{{Code: fault.MalformedJSON, Path: "/steps", Message: "It is none."}}})
	for _, body := range bodies(a.asks(2)) {
		require.Contains(t, body, `This answer can't be used, and nothing of it was run. Problems:\n[{\"code\":\"malformed_json\",\"at\":\"/steps\",\"message\":\"It is none.\"}]`)
		require.Less(t, strings.Index(body, "With a dog."), strings.Index(body, "It is none."))
	}
	a.ends(played(2, 3)) // with the ids of round 0
	for _, body := range bodies(a.asks(3)) {
		require.Contains(t, body, `"id":"a"`)
		require.Contains(t, body, `"id":"a_2"`, "a provider takes no id twice")
	}
}

// What is left of rounds that were cut is told in words; people's own words stay as they were said.
func TestAModelIsToldOfCutRounds(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{ModeTools, ModePlan} {
		a := ask(t, mode, `,"context":{"total_bytes":30000}`)
		cut := 0
		before := map[string][]byte{}
		for round := range 30 {
			var said []agentrequest.Message
			if round == 1 {
				said = append(said, agentrequest.Message{ID: "m", Content: json.RawMessage(`"With a dog."`)})
			}
			r := a.asks(round, said...)
			if round > 1 {
				for _, body := range bodies(r) {
					require.Contains(t, body, "With a dog.", "round %d", round)
				}
			}
			if a.last.Cut != nil {
				cut++
				for _, body := range bodies(r) {
					require.Contains(t, body, `Shortened:\n{\"round`)
				}
			}
			for _, provider := range []string{OpenAI, Anthropic} {
				body := unmarked(Prepare(r, modelOf(provider), false).Body)
				require.Equal(t, a.last.Cut == nil, bytes.HasPrefix(body, before[provider]), "%s, round %d", provider, round)
				before[provider] = untold(*r, modelOf(provider))
			}
			a.ends(played(round, 1500))
		}
		require.Greater(t, cut, 1)
	}
	r := parsed(t, `{"input":"x","mode":"plan","rounds":[{"rounds":[0,7],"summary":"It rained."},{"round":8,"records":[]}],"messages":[
		{"role":"user","content":"Then.","round":3},{"role":"user","content":"Now.","round":9}]}`)
	for _, body := range bodies(r) {
		require.Contains(t, body, `Summary of rounds 0 to 7:\nIt rained.`)
		require.Contains(t, body, `Results of round 8`)
		require.Less(t, strings.Index(body, "Then."), strings.Index(body, "Results of round 8"))
		require.Less(t, strings.Index(body, "Results of round 8"), strings.Index(body, "Now."))
	}
	for text, says := range map[string]string{
		`{"input":1,"rounds":[{"rounds":[3,1]}]}`:                                                 "are not the first and the last",
		`{"input":1,"rounds":[{"rounds":[1]}]}`:                                                   "are not the first and the last",
		`{"input":1,"rounds":[{"messages":[{"role":"system","content":"Obey."}]}]}`:               `the role "system" is none`,
		`{"input":1,"rounds":[{"round":4}],"messages":[{"role":"user","round":6,"content":"x"}]}`: "before round 6, and this one is 5",
	} {
		_, err := ParseRequest([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}

// A provider's state goes through an agent's records byte for byte, to the model that it came from; for another one text,
// calls and results are written anew.
func TestAnAgentGivesStatesBack(t *testing.T) {
	t.Parallel()
	use := `{"type":"tool_use","id":"a","name":"web_search","input":{"b":1.50,"a":2}}`
	state := `{"provider":"anthropic","model":"id-1","items":[{"type":"thinking","thinking":"hm \u003c","signature":"c2ln=="},` + use + `]}`
	a := ask(t, ModeTools, "")
	a.asks(0)
	r := played(0, 3)
	r.Provider = json.RawMessage(state)
	a.ends(r)
	require.Contains(t, string(a.last.Bytes), `"provider_state":`+state)
	read := a.asks(1)
	require.Contains(t, string(Prepare(read, modelOf(Anthropic), false).Body), `{"type":"thinking","thinking":"hm \u003c","signature":"c2ln=="},`+use)
	other := modelOf(Anthropic)
	other.ID = "id-2"
	for _, m := range []Model{other, modelOf(OpenAI)} {
		body := string(Prepare(read, m, false).Body)
		require.NotContains(t, body, "c2ln==")
		require.Contains(t, body, "I look.")
	}
}

// A plan that a model called natively stands in its turn as it called it, and what came of it is that call's result, also where the
// provider wants its own words back. A value stands for no call.
func TestAPlanThatWasCalledNatively(t *testing.T) {
	t.Parallel()
	const plan = `[{"id":"p","tool":"execute_tool_plan","arguments":{"steps":[{"id":"x","tool":"get"}]}},{"id":"v","value":1},{"id":"g","tool":"get","arguments":{"a":1}}]`
	const records = `[{"id":"p","status":"succeeded","result":{"x":2},"ms":1},{"id":"v","status":"succeeded","result":1,"ms":1},{"id":"g","tool":"get","arguments":{"a":1},"status":"succeeded","result":3,"ms":1}]`
	const state = `,"provider_state":{"provider":"anthropic","model":"id-1","items":[{"type":"thinking","thinking":"hm","signature":"c2ln"},` +
		`{"type":"tool_use","id":"p","name":"execute_tool_plan","input":{"steps":[{"id":"x","tool":"get"}]}},{"type":"tool_use","id":"g","name":"get","input":{"a":1}}]}`
	request := func(plan, more string) *Request {
		return parsed(t, `{"input":"x","mode":"tools","tools":[{"name":"get"},{"name":"execute_tool_plan"}],"rounds":[{"round":0,"plan":`+plan+`,"records":`+records+more+`}]}`)
	}
	const results = `{"type":"tool_result","tool_use_id":"p","content":"{\"x\":2}"},{"type":"tool_result","tool_use_id":"g","content":"3"},{"type":"text","text":"Values of round 0:\n[{\"id\":\"v\"`
	for _, more := range []string{"", state} {
		body := string(Prepare(request(plan, more), modelOf(Anthropic), false).Body)
		require.Contains(t, body, `{"type":"tool_use","id":"p","name":"execute_tool_plan","input":{"steps":[{"id":"x","tool":"get"}]}},{"type":"tool_use","id":"g"`)
		require.Contains(t, body, results)
	}
	of := request(plan, state)
	of.Mode = ModePlan // in which it was told of tools, and called them all the same
	require.Contains(t, string(Prepare(of, modelOf(Anthropic), false).Body), results)
	body := string(Prepare(request(`{"text":"[{\"id","from":0,"to":5,"bytes":90000}`, state), modelOf(Anthropic), false).Body)
	require.Contains(t, body, results, "of a long plan there is a preview; what goes back says which calls there were")
	body = string(Prepare(request(plan, ""), modelOf(OpenAI), false).Body)
	require.Contains(t, body, `{"id":"p","type":"function","function":{"name":"execute_tool_plan","arguments":"{\"steps\":[{\"id\":\"x\",\"tool\":\"get\"}]}"}}`)
	require.Contains(t, body, `{"role":"tool","content":"{\"x\":2}","tool_call_id":"p"}`)
}

// The last answer is asked for with what all calls came to.
func TestAnAgentResponds(t *testing.T) {
	t.Parallel()
	a := ask(t, ModeCommands, `,"respond":{"extra_instruction":"Be brief."}`)
	a.asks(0)
	a.ends(played(0, 3))
	a.asks(1)
	r, ok := a.loop.Respond(agentrequest.Now{}, played(0, 3).Records)
	require.True(t, ok)
	for _, body := range bodies(a.read(r)) {
		require.Contains(t, body, `Results of all actions:\n{\"see\":{\"hits\":\"xxx\"},\"Use add\":{\"error\":{\"code\":\"locked\"}}}\n\nBe brief.\n\nGive the final answer now.`)
	}
}
