package agent

import (
	"slices"
	"time"
)

// Bounds of what one answer of a planner may be long, in tokens.
const (
	// LeastOutput is the least that a planner is left to answer with; where the budget does not leave that much, the loop
	// ends.
	LeastOutput = 256
	// DefaultOutput is what a planner without max_output_tokens may answer with where there is a budget of tokens.
	DefaultOutput = 4_096
)

// Spending is what an agent and all agents below it have used up, reserved and promised, as of one record. A bound below
// zero is one of nothing, as that of a share of what was used up. It follows from
// the records before that one in the ledger's order, so that everybody who reads them comes to the same. What a call of
// a model may come to is reserved before it is asked, so that the tokens that are recorded never go over the budget, with
// any number of agents below at once; as long as planners keep to the bound that they are given.
type Spending struct {
	// Budget has the bounds; a zero field is none. Those of an agent below another one are in Share's.
	Budget Budget
	// Used is what records have measured, of agents below that are over too.
	Used Usage
	// Models are those that answered, in the order of their first answers, with what Used has of each. Those of one Spending
	// are never changed, so that copies may share them.
	Models []ModelUse
	// Kept are the tokens of calls that were decided without saying what they took: all that was reserved for them.
	Kept int64
	// Reserved are the tokens of calls that are not decided.
	Reserved int64
	// Shared is what agents below may use up that are not over.
	Shared Budget
}

// Reservation is what one call of a model may come to.
type Reservation struct {
	// Tokens are reserved; 0 where there is no budget of tokens.
	Tokens int64
	// MaxOutput is what the planner may answer with; 0 leaves it to the planner.
	MaxOutput int64
}

// Left is what may still be used up or promised, as bounds: a zero field is none, and what is used up is below zero. Time
// is the agent's own.
func (s *Spending) Left() Budget {
	b := Budget{Time: s.Budget.Time}
	if s.Budget.Steps != 0 {
		b.Steps = rest(s.Budget.Steps - s.Used.Steps - s.Shared.Steps)
	}
	if s.Budget.Tokens != 0 {
		b.Tokens = rest(s.Budget.Tokens - s.Used.InputTokens - s.Used.OutputTokens - s.Kept - s.Reserved - s.Shared.Tokens)
	}
	if s.Budget.CostUSD != 0 {
		if b.CostUSD = s.Budget.CostUSD - s.Used.CostUSD - s.Shared.CostUSD; b.CostUSD <= 0 {
			b.CostUSD = -1
		}
	}
	return b
}

// rest is what is left of a bound; below zero for nothing, since zero is no bound.
func rest(n int64) int64 {
	if n <= 0 {
		return -1
	}
	return n
}

// UsedUp says what of the budget is used up: "steps", "tokens", "cost_usd" or "time"; empty for nothing. It is asked when a
// round begins and when an answer is admitted. elapsed is how long the agent has run, as of the same record. What is used
// up ends the loop; where the definition responds, a last answer is asked for, but not when the time is over.
func (s *Spending) UsedUp(elapsed time.Duration) string {
	left := s.Left()
	switch {
	case left.Steps < 0:
		return "steps"
	case left.Tokens < 0:
		return "tokens"
	case left.CostUSD < 0:
		return "cost_usd"
	case s.Budget.Time > 0 && elapsed >= s.Budget.Time:
		return "time"
	}
	return ""
}

// Reserve reserves what a call of a planner may come to. measured are the tokens that a record has already told of the
// beginning of its request, fresh the bytes of all the rest, each of them a token at most. What does not fit shrinks the
// answer. ok is false where not even LeastOutput would be left: the loop ends.
func (s *Spending) Reserve(measured, fresh, maxOutput int64) (r Reservation, ok bool) {
	if s.Budget.Tokens == 0 {
		return Reservation{MaxOutput: maxOutput}, true
	}
	if maxOutput == 0 {
		maxOutput = DefaultOutput
	}
	room := s.Left().Tokens - measured - fresh
	if room < min(LeastOutput, maxOutput) {
		return Reservation{}, false
	}
	r = Reservation{Tokens: measured + fresh + min(maxOutput, room), MaxOutput: min(maxOutput, room)}
	s.Reserved += r.Tokens
	return r, true
}

// Settle notes that a call was decided that something was reserved for. took is what its record says; one that says
// nothing keeps all of its reservation. Its Model is the one that answered; empty where none did.
func (s *Spending) Settle(r Reservation, took Tokens) {
	s.Reserved -= r.Tokens
	s.Used.ModelCalls++
	s.Used.CostUSD += took.CostUSD
	if took.Model != "" {
		s.answered(ModelUse{Model: took.Model, Answers: 1, Tokens: took.InputTokens + took.OutputTokens, CostUSD: took.CostUSD})
	}
	if took.InputTokens+took.OutputTokens == 0 {
		s.Kept += r.Tokens
		return
	}
	s.Used.InputTokens += took.InputTokens
	s.Used.OutputTokens += took.OutputTokens
}

// Share promises each of n agents below, all those that one record made ready, the same part of what is left, and returns
// that part: within it and its own budget each has to stay. What is used up has a part below zero: such an agent ends
// before it begins.
func (s *Spending) Share(n int64) Budget {
	left := s.Left()
	part := Budget{Steps: portion(left.Steps, n), Tokens: portion(left.Tokens, n), CostUSD: left.CostUSD}
	if left.CostUSD > 0 {
		part.CostUSD = left.CostUSD / float64(n)
	}
	s.Shared.Steps += n * max(0, part.Steps)
	s.Shared.Tokens += n * max(0, part.Tokens)
	s.Shared.CostUSD += float64(n) * max(0, part.CostUSD)
	return part
}

// Promise notes that an agent below may use up a share.
func (s *Spending) Promise(share Budget) {
	s.Shared.Steps += max(0, share.Steps)
	s.Shared.Tokens += max(0, share.Tokens)
	s.Shared.CostUSD += max(0, share.CostUSD)
}

// portion is one of n equal parts of what is left of a bound; zero for no bound, below zero for nothing.
func portion(left, n int64) int64 {
	if left <= 0 {
		return left
	}
	return rest(left / n)
}

// Within returns a budget that stays within a share: of each bound the smaller one.
func (b Budget) Within(share Budget) Budget {
	smaller := func(own, part int64) int64 {
		if own == 0 || part != 0 && part < own {
			return part
		}
		return own
	}
	within := Budget{Steps: smaller(b.Steps, share.Steps), Tokens: smaller(b.Tokens, share.Tokens), CostUSD: b.CostUSD, Time: b.Time}
	if b.CostUSD == 0 || share.CostUSD != 0 && share.CostUSD < b.CostUSD {
		within.CostUSD = share.CostUSD
	}
	return within
}

// Return notes that an agent below is over: of its share it leaves what it has not used up.
func (s *Spending) Return(share Budget, below Spending) {
	s.Shared.Steps -= max(0, share.Steps)
	s.Shared.Tokens -= max(0, share.Tokens)
	s.Shared.CostUSD -= max(0, share.CostUSD)
	s.Used.Steps += below.Used.Steps
	s.Used.ModelCalls += below.Used.ModelCalls
	s.Used.InputTokens += below.Used.InputTokens
	s.Used.OutputTokens += below.Used.OutputTokens
	s.Used.CostUSD += below.Used.CostUSD
	s.Kept += below.Kept + below.Reserved
	s.answered(below.Models...)
}

// answered adds answers of models.
func (s *Spending) answered(more ...ModelUse) {
	if len(more) == 0 {
		return
	}
	s.Models = slices.Clone(s.Models)
	for _, m := range more {
		k := slices.IndexFunc(s.Models, func(x ModelUse) bool { return x.Model == m.Model })
		if k < 0 {
			s.Models = append(s.Models, m)
			continue
		}
		s.Models[k].Answers += m.Answers
		s.Models[k].Tokens += m.Tokens
		s.Models[k].CostUSD += m.CostUSD
	}
}
