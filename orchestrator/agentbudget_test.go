package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

// spender is a planner that takes all it may: a token for each byte that it is asked with, and the longest answer.
type spender struct {
	mu       sync.Mutex
	tokens   int64 // that it told of
	untold   int64 // that it took and told nobody of
	calls    int
	most     []int64 // the longest answers that it was allowed
	budgets  []int64 // what it was told is left
	answer   func(run string, round int, input json.RawMessage) string
	tellsNot func(call int) bool
}

// spends hosts such a planner.
func (s *system) spends(name string, x *spender) {
	known := parts.NewKeeper(parts.DefaultKept)
	s.host(name, patient, func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
		whole, err := known.Whole(ctx, sent, worker.ReadPart)
		if err != nil {
			return worker.Output{}, err
		}
		var r struct {
			Round           int
			Input           json.RawMessage
			MaxOutputTokens int64 `json:"max_output_tokens"`
			Budget          struct{ Tokens int64 }
		}
		if err := json.Unmarshal(whole, &r); err != nil {
			return worker.Output{}, err
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.calls++
		x.most, x.budgets = append(x.most, r.MaxOutputTokens), append(x.budgets, r.Budget.Tokens)
		answer := x.answer(stepOf(ctx), r.Round, r.Input)
		took := int64(len(whole)) + r.MaxOutputTokens
		if x.tellsNot != nil && x.tellsNot(x.calls) {
			x.untold += took
			return worker.Output{Body: []byte(answer)}, nil
		}
		x.tokens += took
		usage := fmt.Sprintf(`{"usage":{"input_tokens":%d,"output_tokens":%d},`, len(whole), r.MaxOutputTokens)
		return worker.Output{Body: []byte(usage + strings.TrimPrefix(answer, "{"))}, nil
	})
}

// TestNoTokenOverTheBudgetOfAHundredAgents that are called at once, some of which call others, some of whose planners
// don't say what they took, and whose owner changes in the middle: what planners tell of stays within the budget of the
// one agent that has one, and most of that is used.
func TestNoTokenOverTheBudgetOfAHundredAgents(t *testing.T) {
	t.Parallel()
	s := start(t)
	const budget = 1_500_000
	x := &spender{tellsNot: func(call int) bool { return call%9 == 0 }}
	stop, rounds := s.leave, 0
	x.answer = func(step string, round int, input json.RawMessage) string {
		switch {
		case strings.Contains(step, "/t="), strings.HasSuffix(step, "t/=0/=plan"), strings.HasSuffix(step, "t/=1/=plan"): // of the lowest
			if round == 0 {
				return `{"steps":[{"id":"x","tool":"echo"}]}`
			}
			return `{"output":"lowest"}`
		case strings.Count(step, "=plan") == 1 && strings.HasPrefix(step, "a/=") && strings.Count(step, "/") == 2: // of the boss
			rounds = max(rounds, round)
			if round == 2 { // while others have begun and ended
				next := s.orchestrator()
				stop()
				stop = next
			}
			list := make([]int, 100)
			for i := range list {
				list[i] = i
			}
			all, _ := json.Marshal(list)
			return fmt.Sprintf(`{"steps":[{"id":"each","tool":"clerk","for_each":{"in":%s},"arguments":{"n":"$ref:item"}}]}`, all)
		}
		var in struct{ N int }
		_ = json.Unmarshal(input, &in)
		switch {
		case round == 0 && in.N%10 == 0:
			return `{"steps":[{"id":"t","tool":"temp","for_each":{"in":[1,2,3]}},{"id":"late","tool":"temp","depends_on":["t"]}]}`
		case round < 1:
			return `{"steps":[{"id":"x","tool":"echo","arguments":{"round":"` + strings.Repeat("x", 50*(in.N%7)) + `"}}]}`
		}
		return `{"output":"done"}`
	}
	s.spends("planner", x)
	s.agent("temp", "", `{"planner":{"tool":"planner","mode":"plan","max_output_tokens":900},"tools":["echo"]}`)
	s.agent("clerk", "", `{"planner":{"tool":"planner","mode":"plan","max_output_tokens":1200},"tools":["echo","temp"]}`)
	s.agent("boss", "", fmt.Sprintf(`{"planner":{"tool":"planner","mode":"plan"},"tools":["clerk"],"budget":{"tokens":%d},"concurrency":100,"max_rounds":50}`, budget))
	o := s.run(`{"steps":[{"id":"a","tool":"boss"}]}`, "budget")
	require.Equal(t, outcome.Failed, o.Status)
	var why *outcome.StepError
	for i := range o.Errors {
		if o.Errors[i].Step == "a" {
			why = &o.Errors[i]
		}
	}
	require.NotNil(t, why)
	require.Equal(t, fault.BudgetExceeded, why.Code, "%s", why.Message)

	x.mu.Lock()
	defer x.mu.Unlock()
	t.Logf("%d calls of planners told of %d tokens, and took %d that they did not tell of, of %d", x.calls, x.tokens, x.untold, budget)
	require.LessOrEqual(t, x.tokens, int64(budget), "what planners tell of")
	require.LessOrEqual(t, x.tokens+x.untold, int64(budget), "and of what they did not tell all was kept")
	require.Greater(t, x.tokens+x.untold, int64(budget*8/10))
	require.Greater(t, x.calls, 300)
	require.GreaterOrEqual(t, rounds, 2, "the owner has changed")
	least := int64(1 << 40)
	for _, n := range x.most {
		least = min(least, n)
	}
	require.Less(t, least, int64(900), "some answers had to be shorter")
	require.GreaterOrEqual(t, least, int64(256))
}

// TestSharesOfABudget are equal parts of what is left by the record that made agents ready, and what they leave is there
// for those that come later. An agent whose share is nothing fails before its planner is asked.
func TestSharesOfABudget(t *testing.T) {
	t.Parallel()
	for name, captures := range map[string]string{"alone": "", "captures": `,"capture_nested":true`} { // what is captured has no share of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sharesOfABudget(t, captures)
		})
	}
}

func sharesOfABudget(t *testing.T, captures string) {
	s := start(t)
	var mu sync.Mutex
	left := map[string]int64{}
	planner := func(name string, answer func(step string, round int) string) {
		s.host(name, patient, func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
			var r struct {
				Round  int
				Budget struct{ Steps, Tokens int64 }
			}
			if err := json.Unmarshal(sent, &r); err != nil {
				return worker.Output{}, err
			}
			step := stepOf(ctx)
			mu.Lock()
			left[step] = r.Budget.Tokens
			left[step+" steps"] = r.Budget.Steps
			mu.Unlock()
			return worker.Output{Body: []byte(answer(step, r.Round))}, nil
		})
	}
	planner("upper", func(_ string, round int) string {
		if round == 0 {
			return `{"usage":{"input_tokens":800,"output_tokens":200},"steps":[
				{"id":"p","tool":"low"},{"id":"q","tool":"low"},{"id":"t","tool":"tiny"},{"id":"r","tool":"low","arguments":{"n":"$ref:p"}},{"id":"s","tool":"echo","arguments":{"x":"$ref:r"}}]}`
		}
		return `{"usage":{"input_tokens":1000},"output":"done"}`
	})
	held := make(chan struct{})
	planner("lower", func(step string, _ int) string {
		if strings.HasPrefix(step, "a/=0/q/") || strings.HasPrefix(step, "a/=0/t/") { // they go on while r begins
			<-held
		}
		if strings.HasPrefix(step, "a/=0/r/") {
			close(held)
		}
		return `{"usage":{"input_tokens":4000},"output":7}`
	})
	s.agent("low", "", `{"planner":{"tool":"lower","mode":"plan"},"tools":["echo"]}`)
	s.agent("tiny", "", `{"planner":{"tool":"lower","mode":"plan"},"tools":["echo"],"budget":{"tokens":5000}}`)
	s.agent("high", "", `{"planner":{"tool":"upper","mode":"plan"},"tools":["low","tiny","echo"],"budget":{"tokens":101000,"steps":44}`+captures+`}`)
	o := s.run(`{"steps":[{"id":"a","tool":"high"}]}`, "shares")
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]int64{
		"a/=0/=plan": 101_000, "a/=0/p/=0/=plan": 33_333, "a/=0/q/=0/=plan": 33_333,
		"a/=0/t/=0/=plan":  5_000,  // it has no use for more
		"a/=0/r/=0/=plan":  57_667, // 100,000 less what p took, and what q and t may take
		"a/=1/=plan":       84_000, // less what all four took
		"a/=0/=plan steps": 44, "a/=0/p/=0/=plan steps": 13, "a/=0/q/=0/=plan steps": 13, "a/=0/t/=0/=plan steps": 13, "a/=0/r/=0/=plan steps": 13,
		"a/=1/=plan steps": 39,
	}, left)
}

// TestAUsedUpBudgetIsAnswered: where calls or money have run out, an agent that responds is asked for a last answer with what
// there is; where it is tokens, nobody can be asked.
func TestAUsedUpBudgetIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t)
	call := `{"usage":{"input_tokens":900,"output_tokens":100,"cost_usd":1},"steps":[{"id":"x","tool":"echo","arguments":{"n":1}}]}`
	for budget, asked := range map[string]int{`{"steps":1}`: 2, `{"cost_usd":1}`: 2, `{"tokens":1900}`: 1} {
		name := "of-" + budget[2:5]
		x := s.plays("planner-"+name, call, call, `"Half of it."`)
		s.agent(name, "", `{"planner":{"tool":"planner-`+name+`","mode":"plan","max_output_tokens":300},"tools":["echo"],"respond":true,"budget":`+budget+`}`)
		o := s.run(`{"steps":[{"id":"a","tool":"`+name+`"}]}`, name)
		require.Len(t, x.times(), asked, budget)
		if asked == 1 {
			require.Equal(t, fault.BudgetExceeded, o.Errors[0].Code, "%s", o.JSON())
			continue
		}
		require.Equal(t, []int{0, 2}, x.times(), budget)
		require.JSONEq(t, `"Half of it."`, result(t, o, "a"), "%s", o.JSON())
		require.JSONEq(t, `{"Use echo":{"n":1}}`, string(x.asked[1]["action_results"]))
	}
}

// stepOf is the token of the step that a handler was called for.
func stepOf(ctx context.Context) string {
	info, _ := worker.InfoFrom(ctx)
	return info.Step
}
