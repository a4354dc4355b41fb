package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// livingPlans are plans with what came with the second version of the language, and what each comes to.
var livingPlans = []struct{ name, plan, answer string }{
	{"a condition that holds", `{"steps":[{"id":"a","tool":"add","arguments":{"a":1,"b":2}},
		{"id":"yes","tool":"add","arguments":{"a":10,"b":"$ref:a.result"},"if":"$ref:a.result == 3"},
		{"id":"no","tool":"add","arguments":{"a":20,"b":"$ref:a.result"},"if":"$ref:a.result != 3"}],"output_steps":["yes","no"]}`, `13`},
	{"a failure that is handled", `{"steps":[{"id":"a","tool":"divide","arguments":{"a":1,"b":0}},
		{"id":"sorry","value":"$error:a.code","if":"$status:a == 'failed'"}],"output":"$ref:sorry"}`, `"tool_terminal"`},
	{"values", `{"steps":[{"id":"a","tool":"add","arguments":{"a":1,"b":2}},{"id":"v","value":{"n":{"$calc":"$ref:a.result * 1.5"}}}],"output":"$ref:v.n"}`, `4.5`},
	{"a plan within", `{"steps":[{"id":"p","arguments":{"n":4},"plan":{"steps":[{"id":"a","tool":"add","arguments":{"a":"$input.n","b":1}}],"output":"$ref:a.result"}}],"output":{"n":"$ref:p"}}`, `{"n":5}`},
	{"a plan for each", `{"steps":[{"id":"p","for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"},
		"plan":{"steps":[{"id":"a","tool":"add","arguments":{"a":"$input.n","b":1}}],"output":"$ref:a.result"}}],"output":"$ref:p[*].data"}`, `[2,3]`},
	{"a loop", `{"steps":[{"id":"l","tool":"add","arguments":{"a":"$index","b":"$last.result || 0"},"repeat":{"until":"$last.result >= 3","max":9}}],"output":"$ref:l.result"}`, `3`},
	{"a loop that collects", `{"steps":[{"id":"l","tool":"add","arguments":{"a":"$index","b":1},"repeat":{"max":3,"collect":true}}],"output":"$ref:l[*].result"}`, `[1,2,3]`},
	{"the state dialect", `{"calls":[{"_tool":"add","_outputPath":"†state.n","a":1,"b":2}],"output":"†state.n.result"}`, `3`},
}

// TestEvalOfLivingRuns: an answer is that of the branch that was taken, or of the output.
func TestEvalOfLivingRuns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range livingPlans {
		line, err := json.Marshal(map[string]any{"name": c.name, "plan": json.RawMessage(c.plan), "answer": json.RawMessage(c.answer)})
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	file := filepath.Join(t.TempDir(), "cases.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	stdout, stderr, code := execute(t, folder(t), "", "eval", "-o", "json", file)
	var r struct {
		Total, Right int
		Differed     []json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), stderr)
	require.Empty(t, r.Differed, "%s", stdout)
	require.Equal(t, []int{len(livingPlans), len(livingPlans)}, []int{r.Total, r.Right})
	require.Zero(t, code, stderr)
}

// living is a run of all that came with the second version of the language, in which a value fails after an amendment.
const living = `{"open":true,"concurrency":4,"steps":[
	{"id":"a","tool":"add","arguments":{"a":1,"b":2}},
	{"id":"no","tool":"add","arguments":{"a":1,"b":1},"if":"$ref:a.result > 3"},
	{"id":"v","value":{"$calc":"$ref:a.result * 2"}},
	{"id":"p","arguments":{"n":"$ref:v"},"plan":{"steps":[{"id":"in","tool":"add","arguments":{"a":"$input.n","b":1}}],"output":"$ref:in.result"}},
	{"id":"l","tool":"add","arguments":{"a":"$index","b":1},"repeat":{"until":"$last.result == 2","max":5}},
	{"id":"t","tool":"twice","arguments":{"n":5}},
	{"id":"q","tool":"ask","arguments":{"question":"How many?"}}],"output":{"p":"$ref:p","l":"$ref:l.result","t":"$ref:t","q":"$ref:q"}}`

// TestFrontsShowLivingRuns: "get", "watch" and "retry" of a run with conditions, values, plans within, loops, templates,
// questions and amendments.
func TestFrontsShowLivingRuns(t *testing.T) {
	t.Parallel()
	h := &byHand{t, folder(t)}
	developing(t, h.data)
	h.does(`{"name":"twice","description":"Twice as many.","plan":{"steps":[{"id":"x","value":{"$calc":"$input.n * 2"}}],"output":"$ref:x"}}`, "templates", "apply", "-")
	h.does(living, "submit", "--run", "r", "-")
	h.asked("r", "q", 0)
	var shown string
	require.Eventually(t, func() bool {
		shown = h.does("", "get", "r")
		return strings.Contains(shown, "9 succeeded")
	}, patience, 50e6, "%s", &shown)
	for _, words := range []string{"running", "its condition was false", "asking", "for an answer"} {
		require.Contains(t, shown, words)
	}
	h.answers("r", "q", "questions", "answer", "r", "q", "7")
	require.Contains(t, h.does("", "amend", "r", "--keep-open", "-o", "json"), `"scope":"=","revision":1`, "a program reads it")
	require.Contains(t, h.does(`{"id":"bad","value":{"$calc":"$ref:q / 0"}}`, "amend", "r", "--add", "-", "--close"), "revision 2")
	h.said("", "get", "r", "--wait", "1m")

	var doc outcome.Run
	look := func(run string) *outcome.Run {
		stdout, stderr, _ := h.said("", "get", run, "-o", "json")
		doc = outcome.Run{}
		require.NoError(t, json.Unmarshal([]byte(stdout), &doc), stderr)
		return &doc
	}
	ended := func(run string) {
		t.Helper()
		states := map[string]outcome.StepStatus{}
		for _, s := range look(run).Steps {
			states[s.ID] = s.Status
		}
		require.Equal(t, map[string]outcome.StepStatus{
			"a": outcome.StepSucceeded, "no": outcome.StepNotTaken, "v": outcome.StepSucceeded, "p": outcome.StepSucceeded, "l": outcome.StepSucceeded,
			"t": outcome.StepSucceeded, "q": outcome.StepSucceeded, "bad": outcome.StepFailed,
		}, states)
		require.JSONEq(t, `{"p":7,"l":2,"t":10,"q":7}`, string(doc.Outcome.Output))
	}
	ended("r")
	require.Equal(t, 2, doc.Revision)
	require.Equal(t, "in", strings.TrimPrefix(doc.Steps[3].Steps[0].ID, "p/"))
	require.Len(t, doc.Steps[4].Steps, 2, "iterations")
	shown, _, _ = h.said("", "get", "r")
	for _, words := range []string{"p/in", "l/=1", "t/x", "condition_failed", "not taken", "revision 2"} {
		require.Contains(t, shown, words)
	}
	for step, words := range map[string]string{"no": "$ref:a.result > 3", "v": "6", "p": "7", "l": "2", "t": "10", "q": "answered by", "bad": "division by zero", "p/in": "7", "l/=0": "1"} {
		stdout, stderr, _ := h.said("", "get", "r", "--step", step)
		require.Contains(t, stdout+stderr, words, step)
	}

	told := map[string]bool{}
	stdout, _, code := h.said("", "watch", "r", "-o", "json")
	require.Equal(t, 3, code, "it is partial")
	for line := range strings.Lines(stdout) {
		var e struct{ Kind, Step string }
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		told[e.Kind+" "+e.Step] = true
	}
	for _, e := range []string{"step no", "step v", "step p", "step l", "step t", "step q", "step bad", "amend ="} {
		require.True(t, told[e], "%s of %v", e, told)
	}

	_, _, code = h.said("", "retry", "r", "--id", "again")
	require.Equal(t, 3, code, "zero is what it was")
	ended("again")
	for _, i := range []int{0, 3, 4, 5, 6} {
		require.True(t, doc.Steps[i].Reused, "what succeeded is taken over, the answer too: %s", doc.Steps[i].ID)
	}
}
