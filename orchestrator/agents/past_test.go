package agents_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/tool"
)

// tools are those that are there.
type tools map[string]*tool.Definition

func (t tools) Definition(name string) (*tool.Definition, bool) { d, ok := t[name]; return d, ok }
func (t tools) Group(string) ([]string, bool)                   { return nil, false }
func (t tools) Groups() []string                                { return nil }
func (t tools) Searchable(string) []string                      { return t.Names() }
func (t tools) Names() []string                                 { return []string{"find", "late", "model", "pay"} }

func define(t *testing.T, members string) *agent.Definition {
	t.Helper()
	yes := true
	known := tools{"find": {Name: "find"}, "late": {Name: "late"}, "model": {Name: "model"},
		"pay": {Name: "pay", Annotations: &tool.Annotations{DestructiveHint: &yes}}}
	d, err := tool.ParseDefinition([]byte(`{"name":"a","description":"Helps.","agent":{"planner":{"tool":"model","mode":"plan"},` + members + `}}`))
	require.NoError(t, err)
	a, report := agents.Read(d, known)
	require.Empty(t, report.Problems)
	return a
}

// playRound decides the last round of a loop whose planner has answered, and lets its calls come to something.
func playRound(t *testing.T, l *agents.Loop, n int) {
	t.Helper()
	d, err := l.Decide(fmt.Sprintf("a/=%d", n))
	require.Nil(t, err)
	r := l.Rounds[n]
	r.Record = d
	if d.Fragment == nil {
		return
	}
	if n%6 == 0 {
		r.Below = []*agents.Below{{Begun: uint64(10*n + 1), Over: uint64(10*n + 2), Spent: &agent.Spending{Used: agent.Usage{Steps: 1, InputTokens: int64(n)}, Kept: 7}}}
	}
	var asked struct {
		Steps []struct {
			ID        string
			Tool      string
			Arguments json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(r.Answer, &asked))
	for i, s := range asked.Steps {
		c := agents.Call{Path: s.ID, Single: true, Seq: uint64(10*n + i + 1), Status: "succeeded", Arguments: s.Arguments, MS: int64(n % 3)}
		switch settled, is := d.Settled[s.ID]; {
		case is:
			c.ByOwner, c.Err, c.Value = true, settled.Error, settled.Result
		case n%5 == 4 && i == 0:
			c.Err = fault.New(fault.ToolFailed, "not today")
		default:
			c.Value, c.Type = fmt.Appendf(nil, `{"n":%d,"text":%q}`, n, strings.Repeat("x", 100*(n%7))), []string{"", "Hit"}[n%2]
		}
		if c.Err != nil {
			c.Status = "failed"
		}
		r.Calls = append(r.Calls, c)
	}
}

// TestAPastSaysAsMuchAsTheRounds: what is asked, decided and answered behind rounds that are past is what it is where all of
// them are there, whenever they were let go of; over cuts, answers of no use, words, rounds that were
// interrupted, gates and budgets.
func TestAPastSaysAsMuchAsTheRounds(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools":["find","pay",{"tool":"late","needs":{"all":["pay"]}},"process","blackboard"],"max_rounds":90,
		"budget":{"steps":300,"tokens":10000000},"context":{"total_bytes":20000,"result_bytes":300}`)
	name := func(n int) string { return fmt.Sprintf("t/r/1/=part.a.%d", n) }
	whole := &agents.Loop{Definition: d, Input: json.RawMessage(`{"x":1}`), Run: "r", Name: "a", Part: name}
	var past *agents.Past
	cuts := 0
	for n := range 60 {
		fresh := func(with *agents.Past) *agents.Loop {
			l := &agents.Loop{Definition: d, Rounds: append([]*agents.Round(nil), whole.Rounds...), Past: with, Run: "r", Name: "a", Part: name}
			if l.Input = whole.Input; with != nil {
				clear(l.Rounds[:with.Rounds()])
				l.Input = nil
			}
			return l
		}
		var said []request.Message
		if n%3 == 1 || n%10 == 6 {
			said = []request.Message{{ID: fmt.Sprintf("m%d", n), Content: json.RawMessage(`"Hurry."`), Interrupt: n%10 == 6}}
		}
		whole.Rounds = append(whole.Rounds, &agents.Round{Said: said})
		want, err := fresh(nil).Ask(n)
		require.Nil(t, err)
		got, err := fresh(past).Ask(n)
		require.Nil(t, err)
		require.Equal(t, string(want.Request), string(got.Request), "round %d", n)
		require.Len(t, got.Parts, n-past.Rounds())
		require.Equal(t, want.Parts[past.Rounds():], got.Parts, "round %d", n)
		if n > 0 && got.Parts[len(got.Parts)-1].Cut != nil {
			cuts++
		}
		if n%3 != 2 { // else it is let go of later, as by an owner that did not store the parts
			past = got.Past
		}
		require.Equal(t, min(n, 1), min(want.Past.Rounds(), 1))

		answer := fmt.Sprintf(`{"steps":[{"id":"f","tool":"find","arguments":{"q":%d}},{"id":"p","tool":"pay","arguments":{"n":%d}},
			{"id":"l","tool":"late"},{"id":"b","tool":"blackboard"}],"output":{"o":"$ref:f.n"},"usage":{"model":"m%d","input_tokens":%d,"output_tokens":9}}`, n, n%4, n%3, 100+n)
		if n%9 == 4 { // it does not say what it took
			answer = strings.Replace(answer, `"usage"`, `"costs"`, 1)
		}
		switch {
		case n%11 == 7:
			answer = `{"steps":[{"id":"x","tool":"fnid"}]}`
		case n%4 == 3:
			answer = fmt.Sprintf(`{"steps":[{"id":"h","tool":"process_history"},{"id":"m","tool":"process_models"},{"id":"g","tool":"find","arguments":{"of":"$ref:r%d.f"}},{"id":"o","tool":"process"}]}`, (n-3)/4*4)
		}
		if whole.Rounds[n].Answer = []byte(answer); n%10 == 5 { // somebody interrupts it before it is decided
			if n%20 == 5 { // or answered
				whole.Rounds[n].Answer = nil
			}
			continue
		}
		for _, with := range []*agents.Past{nil, past} {
			l := fresh(with)
			l.Rounds[n] = &agents.Round{Answer: []byte(answer), Said: said}
			playRound(t, l, n)
			if with == nil {
				whole.Rounds[n] = l.Rounds[n]
				continue
			}
			require.Equal(t, whole.Rounds[n], l.Rounds[n], "round %d", n)
		}
		for path, tool := range map[string]string{"p": "pay", "h": "process_history", "m": "process_models"} {
			args, result, failed := fresh(nil).Ready(n, path, uint64(10*n+1), json.RawMessage(fmt.Sprintf(`{"n":%d}`, n%4)))
			args2, result2, failed2 := fresh(past).Ready(n, path, uint64(10*n+1), json.RawMessage(fmt.Sprintf(`{"n":%d}`, n%4)))
			require.Equal(t, []any{args, result, failed}, []any{args2, result2, failed2}, "round %d, %s", n, tool)
		}
	}
	require.Greater(t, cuts, 3)
	asked, err := whole.Ask(16)
	require.Nil(t, err)
	part := string(asked.Parts[15].Bytes)
	require.Contains(t, part, `"records":[{"id":"h","tool":"process_history","arguments":{},"status":"not_run"`, "what was not decided never runs")
	require.Contains(t, string(asked.Request), `"id":"m16","mode":"interrupt"`)
	require.NotContains(t, string(asked.Request), "dropped_output")
}
