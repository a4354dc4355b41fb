package agent_test

import (
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/agent"
)

const researcher = `{
  "name": "researcher", "description": "Researches a topic.",
  "agent": {
    "planner": {"tool": "model"},
    "tools": [
      "search",
      {"tool": "analyze", "needs": {"all": ["search"]}},
      {"tool": "summarize", "needs": {"all": ["analyze"]}}]}}`

// What an author writes is a condition over facts.
func ExampleParse() {
	d, _ := agent.Parse([]byte(researcher), nil)
	for _, e := range d.Entries() {
		fmt.Printf("%s: %s\n", e.Name, e.Condition())
	}
	// Output:
	// search: true
	// analyze: $succeeded.search
	// summarize: $succeeded.analyze
}

// All that is wrong is told at once, with its place and a hint.
func ExampleParse_problems() {
	_, report := agent.Parse([]byte(`{"name": "shop", "agent": {
	  "planner": {"tool": "model"}, "states": {"initial": "DRAFT"},
	  "tools": [{"tool": "confirm", "in": ["DRAFT"], "to": "CONFIRMD"}, {"tool": "ship", "in": ["CONFIRMED"]}, "ship"]}}`), nil)
	for _, p := range report.Problems {
		fmt.Printf("%s: %s (%s)\n", p.Path, p.Message, p.Hint)
	}
	// Output:
	// /agent/tools/2: the entry at /agent/tools/1 is called "ship", too (name one of them by "as")
	// /agent/tools/0/to: nothing can be called in the state "CONFIRMD" (did you mean "CONFIRMED"?)
	// /agent/tools/1/in: no entry leads to the state "CONFIRMED" (did you mean "CONFIRMD"?)
}

// A planner is shown what is locked, with what to call first.
func ExampleFacts_Shown() {
	d, _ := agent.Parse([]byte(researcher), nil)
	facts, _ := d.Begin(json.RawMessage(`{"topic": "tides"}`), nil)
	facts.Add(agent.Outcome{Entry: "search", Result: json.RawMessage(`{"hits": 3}`)})
	for _, s := range facts.Shown() {
		fmt.Printf("%s %q\n", s.Name, s.Locked)
	}
	// Output:
	// search ""
	// analyze ""
	// summarize "'summarize' can't be called yet: it needs 'analyze' first. Call 'analyze', and then 'summarize' again."
}

// What a planner answers may have any of four forms, and slips that are mended.
func ExampleRead() {
	d, _ := agent.Parse([]byte(researcher), nil)
	facts, _ := d.Begin(nil, nil)
	for _, said := range []string{
		`{"steps": [{"id": "a", "tool": "search"}, {"id": "b", "tool": "analyze", "arguments": {"hits": "$ref:a.hits"}}]}`,
		`{"tool_command": {"tool_name": "search", "tool_kwargs": {"q": "tides"}}}`,
		"The moon does it.",
		`{"steps": [{"id": "a", "tool": "serch"}]}`,
	} {
		answer, report := agent.Read([]byte(said), facts, nil)
		if answer == nil {
			fmt.Println(report.Problems[0].Path, report.Problems[0].Message)
			continue
		}
		fmt.Printf("%s: %d calls, output %q\n", answer.Dialect, len(answer.Calls), answer.Output)
	}
	// Output:
	// plan: 2 calls, output ""
	// commands: 1 calls, output ""
	// end: 0 calls, output "\"The moon does it.\""
	// /steps/0/tool there is no tool "serch"
}

// Gates hold for whole plans: what is locked now is admitted behind what may open it.
func ExampleFacts_Admit() {
	d, _ := agent.Parse([]byte(researcher), nil)
	facts, _ := d.Begin(nil, nil)
	calls := []agent.Call{
		{ID: "a", Entry: "search", Within: -1},
		{ID: "b", Entry: "analyze", After: []int{0}, Within: -1},
		{ID: "c", Entry: "analyze", Within: -1},
	}
	admitted := facts.Admit(calls)
	for i, c := range calls {
		if s, settled := admitted.Settled[i]; settled {
			fmt.Println(c.ID, s.Err)
			continue
		}
		fmt.Println(c.ID, "may run")
	}
	// Output:
	// a may run
	// b may run
	// c locked: 'analyze' can't be called yet: it needs 'search' first. Call 'search', and then 'analyze' again.
}
