package request_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/agent/request"
)

// plan is a planner: it searches, reads what was found, and ends the loop with it. Any tool that takes such a request and
// returns such an answer is one.
func plan(whole []byte) any {
	var r struct {
		Input  struct{ Topic string }
		Rounds []struct {
			Records []struct {
				Status string
				Result []string
			}
		}
	}
	if err := json.Unmarshal(whole, &r); err != nil {
		return map[string]any{"output": err.Error()}
	}
	if len(r.Rounds) == 0 {
		step := map[string]any{"id": "a", "tool": "search", "arguments": map[string]any{"q": r.Input.Topic}}
		return map[string]any{"steps": []any{step}}
	}
	last := r.Rounds[len(r.Rounds)-1].Records[0]
	return map[string]any{"output": last.Status + ": " + last.Result[0]}
}

// A loop by hand: its planner is asked, what it answers is run, and it is asked again.
func Example() {
	d, _ := agent.Parse([]byte(`{"name": "researcher", "description": "Researches a topic.",
	  "agent": {"planner": {"tool": "mine", "mode": "plan"}, "tools": ["search"]}}`), nil)
	facts, _ := d.Begin(json.RawMessage(`{"topic": "tides"}`), nil)
	kept := map[string][]byte{} // elsewhere: the bucket of blobs
	fetch := func(_ context.Context, name string) ([]byte, error) { return kept[name], nil }
	worker := parts.NewKeeper(parts.DefaultKept)

	loop := request.Begin(d, facts, func(round int) string { return fmt.Sprintf("acme/run/1/=part.a.%d", round) })
	for round := 0; ; round++ {
		facts.BeginRound(round, nil)
		loop.Open(facts, nil)
		asked := loop.Request(request.Now{})
		whole, _ := worker.Whole(context.Background(), asked.Bytes, fetch)
		said, _ := json.Marshal(plan(whole))
		fmt.Printf("%s\n", said)
		answer, _ := agent.Read(said, facts, nil)
		if answer.End != agent.EndNone {
			break
		}
		found := json.RawMessage(`["The moon does it."]`) // elsewhere: a worker's
		facts.Add(agent.Outcome{Entry: "search", Result: found})
		part := loop.End(request.Round{Plan: request.Whole(said), Records: []request.Record{{
			ID: "a", Tool: "search", Arguments: request.Whole(answer.Calls[0].Arguments), Status: "succeeded", Result: request.Whole(found),
		}}}, facts, "")
		kept[part.Name] = part.Bytes
	}
	// Output:
	// {"steps":[{"arguments":{"q":"tides"},"id":"a","tool":"search"}]}
	// {"output":"succeeded: The moon does it."}
}
