package agentcheck

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/tool"
)

// Asks is what an agent may ask people, beside what the contracts of its tools do.
type Asks struct {
	Rounds  bool     // each round, before anything of it runs
	Planner bool     // what its planner asks, by the entry "ask"
	Guards  []string // what its guards may ask about: input, call, result, output
}

// AsksOf returns what an agent may ask people; nothing for any other tool, and for one that can't be read.
func AsksOf(d *tool.Definition) (asks Asks) {
	body, err := json.Marshal(d)
	if d.Agent == nil || err != nil {
		return asks
	}
	a, _ := agent.Parse(body, nil)
	if a == nil {
		return asks
	}
	asks.Rounds = a.Approval != nil
	for _, e := range a.Entries() {
		asks.Planner = asks.Planner || e.Kind == agent.KindAsk
	}
	for _, g := range a.Guards {
		if g.Else == "ask" && !slices.Contains(asks.Guards, g.On) {
			asks.Guards = append(asks.Guards, g.On)
		}
	}
	return asks
}
