package ui

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agents"
	"github.com/stepjet/stepjet/outcome"
)

// round is what a page shows of one round of an agent.
type round struct {
	Round   int                `json:"round"`
	Planner outcome.StepStatus `json:"planner"`
	Unasked bool               `json:"unasked,omitempty"`
	Asked   int                `json:"asked,omitempty"` // how often its planner was called
	TookMS  float64            `json:"took_ms,omitempty"`
	// Usage is what its planner said that it took, with its guards and summary; nil where nobody said anything.
	Usage   *usage     `json:"usage,omitempty"`
	Calls   int        `json:"calls"`
	Failed  int        `json:"failed,omitempty"`
	Refused fault.Code `json:"refused,omitempty"`
}

type usage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd,omitempty"`
}

// ofAgent shows with an agent its rounds, and what they came to together. What a planner's answer took is not known where that was
// so large that it lies elsewhere: nobody waits for it to be fetched.
func (d *detail) ofAgent(s *outcome.Step) {
	if !agents.IsAgent(s) {
		return
	}
	all := agents.RoundsOf(s, agents.NoBlob)
	for i := range all {
		r := &all[i]
		x := round{
			Round: r.Number, Planner: r.Planner, Unasked: r.Unasked, Asked: r.Calls, Calls: r.Steps, Failed: r.Failed,
			Refused: r.Refused, TookMS: tenths(float64(r.Took.Microseconds()) / 1000),
		}
		if r.Used != nil {
			x.Usage = &usage{r.Used.InputTokens, r.Used.OutputTokens, r.Used.CostUSD}
		}
		d.Rounds = append(d.Rounds, x)
	}
	if len(all) > 0 {
		d.Whole = agents.Whole(s, all, agents.NoBlob)
	}
}
