package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswers reads the answers of testdata: a definition, perhaps the ids of earlier rounds, and what a planner returned.
func TestAnswers(t *testing.T) {
	t.Parallel()
	golden(t, "answers.txt", func(in string) string {
		lines := strings.Split(in, "\n")
		f, err := define(t, lines[0]).Begin(json.RawMessage(`{"customerId": "cust_123", "amount": 50}`), nil)
		require.Nil(t, err)
		var earlier [][]string
		answer := lines[1:]
		for strings.HasPrefix(answer[0], "round ") {
			earlier = append(earlier, strings.Fields(answer[0])[1:])
			f.BeginRound(len(earlier), nil)
			answer = answer[1:]
		}
		if rest, is := strings.CutPrefix(answer[0], "state "); is {
			f.BeginRound(len(earlier), json.RawMessage(rest))
			answer = answer[1:]
		}
		a, r := Read([]byte(strings.Join(answer, "\n")), f, earlier)
		require.Equal(t, a == nil, len(r.Problems) > 0)
		return answerText(a) + problems(r)
	})
}

// answerText shows an answer.
func answerText(a *Answer) string {
	if a == nil {
		return ""
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", strings.TrimSpace(string(a.Dialect)+" "+string(a.End)))
	if a.Text != "" {
		line("text %s", a.Text)
	}
	if a.Fragment != nil {
		line("runs %s", a.Fragment)
	}
	for _, c := range a.Calls {
		l := "call " + c.ID
		if c.Entry != "" {
			l += ":" + c.Entry
		}
		if len(c.After) > 0 {
			l += " after " + strings.Join(ids(a.Calls, c.After), ", ")
		}
		if c.Within >= 0 {
			l += " within " + a.Calls[c.Within].ID
		}
		if c.Repeated {
			l += " again and again"
		}
		if c.Arguments != nil {
			l += " with " + string(c.Arguments)
		}
		line("%s", l)
	}
	for _, c := range a.Commands {
		line("command %s: %s; todo %q, next %q", c.Tool, c.Purpose, c.TodoSuggestion, c.Next)
	}
	if a.Output != nil {
		line("output %s", a.Output)
	}
	for id := range a.Again {
		line("again %s", id)
	}
	if a.Usage != (Tokens{}) {
		line("usage %+v", a.Usage)
	}
	if a.Provider != nil {
		line("provider %s", a.Provider)
	}
	if a.Repaired {
		line("repaired")
	}
	return b.String()
}

// TestOutputSchema: an output that is there already is held against the schema; of a text also what it says as JSON.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	d, _ := Parse([]byte(`{"name": "x", "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
		"agent": {"planner": {"tool": "model"}, "tools": ["search"]}}`), everything)
	f, _ := d.Begin(nil, nil)
	for _, c := range []struct{ answer, want string }{
		{`{"output": {"n": 1}}`, `{"n": 1}`},
		{`{"output": {"n": "1"}}`, `invalid_value /output/n: against the output schema: must be a number, not a string: "1" | write 1, without quotes`},
		{`{"steps": [], "output": 7}`, `invalid_value /output: against the output schema: must be an object, not a number: 7 | write {"n": 7}`},
		{`"just text"`, `invalid_value : against the output schema: must be an object, not a string: "just text" | answer with {"output": …}`},
		{`{"text": "{\"n\": 2}", "usage": {}}`, `{"n":2}`},
		{`{"n": 3}`, `{"n": 3}`},
		{`"{n: 3,}"`, `{"n":3}`},
		{`"{\"n\": 3"`, `malformed_json : the answer ends before its JSON is closed, and is not made whole by guessing; nothing of it was run | answer with one whole JSON object, with less at a time`},
		{`{"m": 3}`, `invalid_value : nobody can tell what this answer asks for | write {"steps": [{"id", "tool", "arguments"}]} or {"output": the answer}`},
		{`{"steps": [], "text": "{\"n\": 2}"}`, `{"n": 2}`},
		{`{"steps": [{"id": "a", "tool": "search"}], "output": {"n": "$ref:a"}}`, `{"n": "$ref:a"}`},
	} {
		a, r := Read([]byte(c.answer), f, nil)
		got := strings.TrimSpace(problems(r))
		if a != nil {
			got = string(a.Output)
		}
		require.Equal(t, c.want, got, c.answer)
	}
}

// TestTook: what an answer took counts, however its planner writes numbers; one that is none takes nothing from the others.
func TestTook(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]Tokens{
		`{"model":"large","input_tokens":4000,"output_tokens":20,"cached_tokens":3,"cost_usd":0.004}`:  {"large", 4000, 20, 3, 0.004},
		`{"input_tokens":4000.0,"output_tokens":4e3,"cached_tokens":12.5,"cost_usd":"0.004"}`:          {"", 4000, 4000, 13, 0.004},
		`{"input_tokens":"4000","output_tokens":"many","cached_tokens":"","cost_usd":4e-3}`:            {"", 4000, 0, 0, 0.004},
		`{"model":7,"input_tokens":-1e30,"output_tokens":-1,"cached_tokens":-1e400,"cost_usd":0.004}`:  {"", 0, 0, 0, 0.004},
		`{"model":{},"input_tokens":1e30,"output_tokens":1e400,"cached_tokens":null,"cost_usd":1e400}`: {"", mostTook, mostTook, 0, mostTook},
		`{"input_tokens":[4000],"output_tokens":{"n":1},"cached_tokens":true,"cost_usd":0.004}`:        {"", 0, 0, 0, 0.004},
		`{"input_tokens":"0x10","output_tokens":"1_000","cached_tokens":"Inf","cost_usd":"NaN"}`:       {},
		`[1]`:   {},
		`"4e3"`: {},
	} {
		require.Equal(t, want, Took([]byte(`{"output":1,"usage":`+usage+`}`)), usage)
	}
}

// TestRuns: how much of an answer runs before the planner is asked again.
func TestRuns(t *testing.T) {
	t.Parallel()
	f, _ := define(t, `"tools": ["search", "fetch", "analyze"]`).Begin(nil, nil)
	a, r := Read([]byte(`{"steps": [
		{"id": "v", "value": 1},
		{"id": "a", "tool": "search", "arguments": {"n": "$ref:v"}},
		{"id": "p", "plan": {"steps": [{"id": "x", "tool": "fetch"}]}},
		{"id": "b", "tool": "fetch", "arguments": {"x": "$ref:w"}},
		{"id": "w", "value": {"y": "$ref:a.y"}},
		{"id": "c", "tool": "analyze", "depends_on": ["b"]},
		{"id": "z", "value": "$ref:p"}]}`), f, nil)
	require.Empty(t, problems(r))
	for _, c := range []struct {
		advance   Advance
		run, rest string
	}{
		{AdvanceAll, "v a p b w c z", ""},
		{AdvanceWave, "v a p w z", "b c"},
		{AdvanceCall, "v a w", "p b c z"},
	} {
		run, rest := a.Runs(c.advance)
		require.Equal(t, c.run, strings.Join(ids(a.Calls, run), " "), c.advance)
		require.Equal(t, c.rest, strings.Join(ids(a.Calls, rest), " "), c.advance)
	}
}

// TestNormalisedCommands: what the seed's planners may leave out, and what counts as no.
func TestNormalisedCommands(t *testing.T) {
	t.Parallel()
	f, _ := define(t, `"planner": {"tool": "model", "mode": "commands"}, "tools": ["search"]`).Begin(nil, nil)
	for answer, runs := range map[string]bool{
		`{"next_action": "execute", "execution_commands": [{"tool_name": "search"}]}`:           true,
		`{"next_action": " Execute ", "execution_commands": [{"tool_name": "search"}]}`:         true,
		`{"execution_commands": [{"tool_name": "search"}]}`:                                     true,
		`{"next_action": null, "tool_commands": [{"tool_name": "search"}]}`:                     true,
		`{"tool_command": {"tool_name": "search"}}`:                                             true,
		`{"tool_commands": {"tool_name": "search"}}`:                                            true,
		`{"use_tool": true, "tool_command": {"tool_name": "search"}}`:                           true,
		`{"use_tool": "yes", "tool_command": {"tool_name": "search"}}`:                          true,
		`{"execution_commands": [], "tool_command": {"tool_name": "search"}}`:                   true,
		`{"next_action": "response", "execution_commands": [{"tool_name": "search"}]}`:          false,
		`{"next_action": "finish", "execution_commands": [{"tool_name": "search"}]}`:            false,
		`{"next_action": "execute", "execution_commands": []}`:                                  false,
		`{"next_action": "execute"}`:                                                            false,
		`{"next_action": "execute", "execution_commands": [{"purpose": "x"}, 7, null]}`:         false,
		`{"use_tool": false, "tool_command": {"tool_name": "search"}}`:                          false,
		`{"use_tool": "No", "tool_command": {"tool_name": "search"}}`:                           false,
		`{"use_tool": 0, "next_action": "execute", "tool_commands": [{"tool_name": "search"}]}`: false,
		`{"use_tool": null, "next_action": "execute", "tool_command": {"tool_name": "search"}}`: false,
	} {
		a, r := Read([]byte(answer), f, nil)
		require.Empty(t, problems(r), answer)
		require.Equal(t, runs, a.End == EndNone, answer)
		require.Equal(t, runs, len(a.Calls) == 1, answer)
	}
}

// FuzzRead: whatever a planner answers, there is an answer or a problem, and what runs can be read again.
func FuzzRead(f *testing.F) {
	raw, err := os.ReadFile("testdata/answers.txt")
	require.NoError(f, err)
	for c := range strings.SplitSeq(string(raw), "\n\n") {
		in, _, _ := strings.Cut(c, "\n----")
		lines := slices.DeleteFunc(strings.Split(in, "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
		f.Add(strings.Join(lines[min(1, len(lines)):], "\n"))
	}
	facts, _ := define(f, `"tools": ["search", "fetch", "execute_tool_plan"]`).Begin(json.RawMessage(`{"a": 1}`), nil)
	f.Fuzz(func(t *testing.T, answer string) {
		a, r := Read([]byte(answer), facts, [][]string{{"search"}})
		require.Equal(t, a == nil, len(r.Problems) > 0)
		if a == nil {
			return
		}
		require.Equal(t, a.Plan == nil, a.Fragment == nil)
		require.True(t, a.Plan != nil || a.End != EndNone)
		facts.Admit(a.Calls)
		again, r := Read([]byte(answer), facts, [][]string{{"search"}})
		require.Empty(t, r.Problems)
		require.Equal(t, a.Fragment, again.Fragment)
	})
}
