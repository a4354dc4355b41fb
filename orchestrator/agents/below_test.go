package agents_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/orchestrator/agents"
)

// TestWhatAgentsLeaveIsSharedAgain: those that begin at once share what is left alike; of who begins later, what those use
// up that are over is not there any more, what they left is, and what those may use up that go on is not.
func TestWhatAgentsLeaveIsSharedAgain(t *testing.T) {
	t.Parallel()
	took := func(tokens int64) *agent.Spending { return &agent.Spending{Used: agent.Usage{InputTokens: tokens}} }
	l := &agents.Loop{Definition: define(t, `"tools":["find"],"budget":{"tokens":100000}`), Rounds: []*agents.Round{{
		Answer: []byte(`{"usage":{"input_tokens":1000},"steps":[{"id":"x","tool":"find"}]}`),
		Below: []*agents.Below{
			{Begun: 10, Over: 20, Spent: took(3000)}, {Begun: 10, Budget: agent.Budget{Tokens: 5000}}, {Begun: 10, Over: 40, Spent: took(4000)},
			{Begun: 30}, {Begun: 50},
		},
	}}}
	share := func(begun uint64) int64 { return l.ShareOf(0, begun).Tokens }
	require.Equal(t, int64(33_000), share(10))
	require.Equal(t, int64(58_000), share(30), "99,000 less the 3,000 of the first, and what the second and the third may use up")
	require.Equal(t, int64(29_000), share(50), "the third has left 29,000, but the fourth goes on")
}

// TestAGuardIsAskedOfWhatIsCalled, with the arguments that the call is made with, and of nothing else: of no call that a
// condition refuses, of none that an agent answers itself, and of none that was made before.
func TestAGuardIsAskedOfWhatIsCalled(t *testing.T) {
	t.Parallel()
	l := &agents.Loop{
		Definition: define(t, `"tools":["find","process",{"tool":"pay","bind":{"who":"$input.who"}},{"tool":"pay","as":"give"}],
			"guards":[{"on":"call","tool":"late"},{"on":"call","when":"$args.n < 100"},{"on":"call","when":"$args.n != 7","else":"ask"}]`),
		Input: json.RawMessage(`{"who":"ann"}`), Run: "r", Name: "a",
		Rounds: []*agents.Round{{Answer: []byte(`{"steps":[{"id":"first","tool":"give","arguments":{"n":1}},{"id":"again","tool":"give","arguments":{"n":1},"depends_on":["first"]},
			{"id":"p","tool":"pay"},{"id":"open","tool":"process"},{"id":"own","tool":"process_status","depends_on":["open"]}]}`)}},
	}
	d, err := l.Decide("a/=0")
	require.Nil(t, err)
	require.Empty(t, d.Problems)
	l.Rounds[0].Record = d
	l.Rounds[0].Calls = []agents.Call{
		{Path: "first", Single: true, Seq: 5, Status: "succeeded", Arguments: json.RawMessage(`{"n":1}`), Value: json.RawMessage(`2`)},
		{Path: "open", Single: true, Seq: 6, Status: "succeeded", Arguments: json.RawMessage(`{}`), Value: json.RawMessage(`3`)},
	}
	for name, x := range map[string]struct {
		path, arguments, asked string
		since                  uint64
	}{
		"called":             {"first", `{"n":2}`, `{"n":2}`, 1},
		"with what is bound": {"p", `{"n":3}`, `{"n":3,"who":"ann"}`, 1},
		"a person is asked":  {"first", `{"n":7}`, `{"n":7}`, 1},
		"refused":            {"p", `{"n":100}`, ``, 1},
		"made before":        {"again", `{"n":1}`, ``, 9},
		"not with these":     {"again", `{"n":4}`, `{"n":4}`, 9},
		"the agent's own":    {"own", `{}`, ``, 9},
		"not one of its own": {"nowhere", `{}`, ``, 1},
	} {
		g := agents.Guarded{On: "call"}
		require.Equal(t, x.asked != "", g.OfCall(l, x.path, x.since, json.RawMessage(x.arguments)), name)
		if x.asked != "" {
			require.JSONEq(t, x.asked, string(g.Args), name)
		}
	}
}
