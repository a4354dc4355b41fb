package agent

import (
	"encoding/json"
	"math"

	"github.com/stepjet/stepjet/fault"
)

// Account is what an agent has done and used up, as its planner may ask for.
type Account struct {
	Run, Agent, Goal string
	// Milliseconds are those since the agent began.
	Milliseconds int64
	// Spent is what has been used up, reserved and promised, as of one record.
	Spent Spending
	// Calls are those so far, in the order in which they ended.
	Calls []Called
}

// Usage is what was used up.
type Usage struct {
	Steps        int64   `json:"steps"`
	ModelCalls   int64   `json:"model_calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

// Called is one call of an agent's.
type Called struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	MS     int64  `json:"ms"`
}

// ModelUse is how often a model answered.
type ModelUse struct {
	Model   string  `json:"model"`
	Answers int64   `json:"answers"`
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
}

// answer answers about the account. Without one there is no agent.
func (a *Account) answer(f *Facts, name string) (json.RawMessage, *fault.Error) {
	if a == nil {
		return nil, fault.New(fault.NotFound, "no agent is running here").WithHint("it can be called in an agent's loop alone")
	}
	switch name {
	case "process_status":
		return marshal(struct {
			Run       string `json:"run"`
			Agent     string `json:"agent"`
			Goal      string `json:"goal,omitempty"`
			Round     int    `json:"round"`
			MaxRounds int    `json:"max_rounds"`
			State     string `json:"state,omitempty"`
			MS        int64  `json:"ms"`
		}{a.Run, a.Agent, a.Goal, f.round, f.d.MaxRounds, f.state, a.Milliseconds}), nil
	case "process_budget":
		return marshal(a.budget()), nil
	case "process_cost":
		return marshal(a.Spent.Used), nil
	case "process_history":
		return marshal(append([]Called{}, a.Calls...)), nil
	case "process_models":
		return marshal(append([]ModelUse{}, a.Spent.Models...)), nil
	}
	return marshal(a.tools()), nil
}

// limit is a bound of a budget, and what is left of it.
type limit struct {
	Limit float64 `json:"limit"`
	Left  float64 `json:"left"`
}

// budget returns each bound that there is, and what is left of it as the requests to the planner count.
func (a *Account) budget() map[string]limit {
	all := map[string]limit{}
	add := func(name string, most, left float64) {
		if most != 0 { // below zero is a share of nothing
			all[name] = limit{max(0, most), max(0, left)}
		}
	}
	b, left := a.Spent.Budget, a.Spent.Left()
	add("steps", float64(b.Steps), float64(left.Steps))
	add("tokens", float64(b.Tokens), float64(left.Tokens))
	add("cost_usd", b.CostUSD, math.Round(left.CostUSD*1e9)/1e9) // as costs are counted
	add("time_ms", float64(b.Time.Milliseconds()), float64(b.Time.Milliseconds()-a.Milliseconds))
	return all
}

// toolStats is how often a tool was called.
type toolStats struct {
	Calls  int `json:"calls"`
	Failed int `json:"failed"`
}

func (a *Account) tools() map[string]toolStats {
	all := map[string]toolStats{}
	for _, c := range a.Calls {
		s := all[c.Tool]
		s.Calls++
		if c.Status == "failed" {
			s.Failed++
		}
		all[c.Tool] = s
	}
	return all
}
