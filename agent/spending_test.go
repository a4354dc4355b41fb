package agent

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    Spending
		left Budget
		up   string
	}{
		{"no bound", Spending{Used: Usage{Steps: 9, InputTokens: 9, CostUSD: 9}}, Budget{}, ""},
		{"steps", Spending{Budget: Budget{Steps: 10}, Used: Usage{Steps: 3}}, Budget{Steps: 7}, ""},
		{"steps with those promised", Spending{Budget: Budget{Steps: 10}, Used: Usage{Steps: 3}, Shared: Budget{Steps: 7}}, Budget{Steps: -1}, "steps"},
		{"tokens", Spending{Budget: Budget{Tokens: 100}, Used: Usage{InputTokens: 20, OutputTokens: 10}, Reserved: 5, Kept: 5}, Budget{Tokens: 60}, ""},
		{"all tokens", Spending{Budget: Budget{Tokens: 100}, Used: Usage{InputTokens: 100}}, Budget{Tokens: -1}, "tokens"},
		{"cost", Spending{Budget: Budget{CostUSD: 2}, Used: Usage{CostUSD: 0.5}}, Budget{CostUSD: 1.5}, ""},
		{"all cost", Spending{Budget: Budget{CostUSD: 2}, Used: Usage{CostUSD: 2.5}}, Budget{CostUSD: -1}, "cost_usd"},
		{"time", Spending{Budget: Budget{Time: time.Minute}}, Budget{Time: time.Minute}, "time"},
	} {
		require.Equal(t, c.left, c.s.Left(), c.name)
		require.Equal(t, c.up, c.s.UsedUp(time.Minute), c.name)
	}
	require.Empty(t, (&Spending{Budget: Budget{Time: time.Minute}}).UsedUp(time.Minute-1))
}

func TestReservations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                        string
		tokens                      int64
		measured, fresh, most, want int64 // want: the longest answer; -1 where the loop ends
	}{
		{"no budget", 0, 1000, 1000, 500, 500},
		{"no budget, no bound", 0, 1000, 1000, 0, 0},
		{"fits", 10_000, 1000, 1000, 500, 500},
		{"a bound where there is none", 10_000, 1000, 1000, 0, DefaultOutput},
		{"shrinks", 2_400, 1000, 1000, 500, 400},
		{"shrinks to the least", 2_256, 1000, 1000, 500, LeastOutput},
		{"ends", 2_255, 1000, 1000, 500, -1},
		{"a planner that needs less than the least", 2_100, 1000, 1000, 100, 100},
		{"the request alone is too much", 1_999, 1000, 1000, 500, -1},
	} {
		s := Spending{Budget: Budget{Tokens: c.tokens}}
		r, ok := s.Reserve(c.measured, c.fresh, c.most)
		require.Equal(t, c.want >= 0, ok, c.name)
		require.Equal(t, max(0, c.want), r.MaxOutput, c.name)
		require.Equal(t, s.Reserved, r.Tokens, c.name)
		require.LessOrEqual(t, s.Reserved, c.tokens, c.name)
	}
}

func TestSettling(t *testing.T) {
	t.Parallel()
	s := Spending{Budget: Budget{Tokens: 10_000}}
	a, _ := s.Reserve(0, 1000, 500)
	b, _ := s.Reserve(0, 1000, 500)
	require.Equal(t, int64(7_000), s.Left().Tokens)
	s.Settle(a, Tokens{InputTokens: 300, OutputTokens: 50, CostUSD: 0.1})
	require.Equal(t, int64(8_150), s.Left().Tokens)
	s.Settle(b, Tokens{}) // says nothing
	require.Equal(t, int64(8_150), s.Left().Tokens)
	require.Equal(t, Usage{ModelCalls: 2, InputTokens: 300, OutputTokens: 50, CostUSD: 0.1}, s.Used)
}

func TestShares(t *testing.T) {
	t.Parallel()
	s := Spending{Budget: Budget{Steps: 10, Tokens: 1_000, CostUSD: 3}, Used: Usage{Steps: 1}}
	part := s.Share(3)
	require.Equal(t, Budget{Steps: 3, Tokens: 333, CostUSD: 1}, part)
	require.Equal(t, Budget{Steps: -1, Tokens: 1, CostUSD: -1}, s.Left())
	require.Equal(t, Budget{Steps: -1, Tokens: -1, CostUSD: -1}, s.Share(2), "less than one for each is nothing, not no bound")
	s.Return(part, Spending{Used: Usage{Steps: 2, InputTokens: 100}, Kept: 3, Reserved: 30})
	require.Equal(t, Budget{Steps: 1, Tokens: 201, CostUSD: 1}, s.Left())

	require.Equal(t, Budget{Steps: 3, Tokens: 50, CostUSD: 1}, Budget{Tokens: 50, CostUSD: 2}.Within(part))
	require.Equal(t, Budget{Steps: 3, Tokens: 333, CostUSD: 0.5}, Budget{Steps: 4, Tokens: 400, CostUSD: 0.5}.Within(part))
	require.Equal(t, Budget{Tokens: -1}, Budget{Tokens: 50}.Within(Budget{Tokens: -1}))
	require.Equal(t, Budget{Tokens: 50}, Budget{Tokens: 50}.Within(Budget{}))
	require.Equal(t, Budget{}, (&Spending{}).Share(5))
}

// spender is an agent in a tree of them.
type spender struct {
	Spending
	share Budget
	above *spender
	below int
	calls []Reservation
}

// TestNoTokenOverTheBudget: whatever agents do at once, in any order, the tokens that are recorded are never more than
// the budget, and what is recorded, kept, reserved and promised is never more either.
func TestNoTokenOverTheBudget(t *testing.T) {
	t.Parallel()
	ended, shared := 0, 0
	for seed := range uint64(1_000) {
		r := rand.New(rand.NewPCG(seed, 9))
		budget := Budget{Tokens: 1 + r.Int64N(50_000), Steps: 1 + r.Int64N(100)}
		root := &spender{Spending: Spending{Budget: budget}}
		all := []*spender{root}
		recorded := int64(0)
		for range 150 {
			i := r.IntN(len(all))
			a := all[i]
			switch r.IntN(4) {
			case 0, 1:
				if x, ok := a.Reserve(r.Int64N(300), r.Int64N(500), r.Int64N(600)); ok {
					a.calls = append(a.calls, x)
				} else {
					ended++
				}
			case 2:
				if len(a.calls) == 0 {
					continue
				}
				x := a.calls[0]
				a.calls = a.calls[1:]
				var took Tokens
				if r.IntN(5) > 0 { // within what it was given
					took = Tokens{InputTokens: r.Int64N(x.Tokens - x.MaxOutput + 1), OutputTokens: r.Int64N(x.MaxOutput + 1)}
				}
				recorded += took.InputTokens + took.OutputTokens
				a.Settle(x, took)
			case 3:
				if r.IntN(2) == 0 && a != root && a.below == 0 {
					a.above.Return(a.share, a.Spending)
					a.above.below--
					all = append(all[:i], all[i+1:]...)
					continue
				}
				n := 1 + r.Int64N(100)
				part := a.Share(n)
				for range n {
					if part.Tokens > 0 {
						all = append(all, &spender{Spending: Spending{Budget: Budget{Tokens: r.Int64N(2) * 400}.Within(part)}, share: part, above: a})
						a.below++
						shared++
					}
				}
			}
			if recorded > budget.Tokens {
				t.Fatalf("seed %d: %d of %d", seed, recorded, budget.Tokens)
			}
			for x := a; x != nil; x = x.above { // nobody else has changed
				gone := x.Used.InputTokens + x.Used.OutputTokens + x.Kept + x.Reserved + x.Shared.Tokens
				if gone > x.Budget.Tokens || x.Shared.Tokens < 0 {
					t.Fatalf("seed %d: %+v", seed, x.Spending)
				}
			}
		}
	}
	require.Greater(t, ended, 1_000)
	require.Greater(t, shared, 1_000)
}
