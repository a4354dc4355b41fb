package jsonmend

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func answers(v json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(v, &o) == nil && (o["steps"] != nil || o["output"] != nil)
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, want string
		repaired   bool
	}{
		{` {"output": 1} `, `{"output":1}`, false},
		{"```json\n{\"output\": 1}\n```", `{"output":1}`, false},
		{"```{\"output\": 1}```", `{"output":1}`, false},
		{"Here {you} are:\n\n  ```json\n  {\"output\": 1}\n  ```\n", `{"output":1}`, false},
		{"Here it is, and the fence is never closed:\n```\n{\"output\": [1]}", `{"output":[1]}`, false},
		{"First:\n```python\nx = {\"output\": 2}\n```\nthen\n```\n{\"output\": 1}\n```", `{"output":1}`, false},
		{`{output: 'b', // c ] }` + "\n" + `"d": [1, 2,], /* } */ e: "it's", }`, `{"output":"b","d":[1,2],"e":"it's"}`, true},
		{`{“output”: “a } b”, 'c': 'it\'s }',}`, `{"output":"a } b","c":"it's }"}`, true},
		{`{"output": "x" "b": "}"}`, `{"output":"x","b":"}"}`, true},
		{`{output: http://x.org/a, b: 1}`, `{"output":"http://x.org/a","b":1}`, true},
		{`{"output": 1}}]; `, `{"output":1}`, true},
	} {
		r := Value(c.text, answers)
		require.Equal(t, Read{Value: json.RawMessage(c.want), Repaired: c.repaired}, r, "%s", c.text)
	}
}

// TestFlaws: what was cut off is not made whole, and nothing is picked out of words.
func TestFlaws(t *testing.T) {
	t.Parallel()
	one := `{"steps":[{"tool":"pay"}]}`
	for _, c := range []struct {
		text string
		flaw Flaw
	}{
		{``, Words},
		{`none at all`, Words},
		{`[note] the tide is high`, Words},
		{`[note the tide`, Words},
		{`[1] Lewis, Tides, 1999`, Words},
		{`"To be or not to be" is a question.`, Words},
		{"Write\n```json\n{\"a\": 1}\n```", Words},
		{"Write\n```js\n{ a(); }\n```\nand be happy", Words},
		{`if (x) { y({"a": 1}) }`, Words},
		{`a :-{ face`, Words},
		{`[1, 2]`, Unwanted},
		{`{"a": 1}`, Unwanted},
		{`{a: 1}`, Unwanted},
		{`42`, Unwanted},
		{"```json\n{\"a\": 1}\n```", Unwanted},
		{`{you} are welcome`, Unreadable},
		{"Here:\n```json\n{\"output\" }\n```", Words},
		{`{"steps": [1}, ]`, CutOff},
		{`{"output": [1, 2, ...]}`, Unreadable},
		{`{"x["a")'}`, Unreadable}, // no bracket is made up
		{`{“[)"a"}`, Unreadable},
		{`[`, CutOff},
		{`[1`, CutOff},
		{`[{"tool": "effect", "argum`, CutOff},
		{strings.Repeat("[", 100_000), CutOff},
		{`"half`, CutOff},
		{`"half\"`, CutOff},
		{`{"output": "half of an ans`, CutOff},
		{`{"steps": [{"id": "e", "tool": "pay", "arguments": {"name": "whole", "amount": 100`, CutOff},
		{`{"steps": [{"id": "e", "tool": "pay", "arguments": {"name": "whole", "amount": 100}]}`, CutOff},
		{`{steps: [{'tool': 'pay', 'name': 'ha`, CutOff},
		{`{steps: [{'tool': 'pay', 'name': 'ha}]}`, CutOff},
		{`{"steps": [] // and so on }`, CutOff},
		{`{"steps": [] /* and so on }`, CutOff},
		{"```json\n{\"steps\": [{\"tool\": \"pay\"", CutOff},
		{"```json\n{\"steps\": [{\"tool\": \"pay\"\n```", CutOff},
		{"Here it is:\n```json\n[{\"tool\": \"effect\", \"argum", CutOff},
		{"Here it is: {\"steps\": [{\"tool\": \"pay\"", CutOff},
		{"Here it is: {\"st", CutOff},
		{`The page tried to make me call ` + one + ` but I refuse. The answer is 42.`, Amid},
		{`I do ` + one, Amid},
		{one + "\nas you said", Amid},
		{"The page said\n```json\n" + one + "\n```\nbut I refuse.", Amid},
		{"I was told " + one + ".\n```json\n{\"a\": 1}\n```", Amid},
		{`Do not do ` + one + ` but do {"steps":[{"tool":"effect"}]}`, Several},
		{one + one, Several},
		{`{"a": 1} ` + one, Amid},
		{"Not " + one + " but\n```json\n" + one + "\n```", Several},
		{"```json\n" + one + "\n```\n```json\n" + one + "\n```", Several},
	} {
		r := Value(c.text, answers)
		require.Equal(t, c.flaw, r.Flaw, "%.90s", c.text)
		require.Equal(t, c.flaw == Unwanted, r.Value != nil, "%.90s", c.text)
		message, hint := r.Flaw.Told()
		require.Equal(t, c.flaw == Words || c.flaw == Unwanted, message == "" || hint == "")
	}
}

// TestCutOffAnywhere: no beginning of an answer that would have done something is one, however it was written.
func TestCutOffAnywhere(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{
		`{"steps": [{"id": "e", "tool": "pay", "arguments": {"name": "a } ] b", "amount": 100}}], "output": "\"x"}`,
		`{steps: [{'id': 'e', "tool": 'pay', arguments: {name: "it's", amount: 100,},},], // so ]} be it` + "\n" + `"output": “x”}`,
		"Here it is:\n```json\n{\"steps\": [{\"tool\": \"pay\"}]}\n```",
	} {
		require.Equal(t, None, Value(whole, answers).Flaw, whole)
		end := strings.LastIndexByte(whole, '}')
		for i := range end {
			r := Value(whole[:i], answers)
			require.NotEqual(t, None, r.Flaw, whole[:i])
			v, ok := Repair(whole[:i])
			require.False(t, ok, "%s made of %s", v, whole[:i])
		}
	}
}

// TestCost: no text of the longest answer takes long, whatever a planner repeats in it.
func TestCost(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	for _, s := range []string{
		"[", "{", `{"a":`, "{}", "```", "```\n", "```{", "```\n{", "\n```json\n{}\n```", `"`, `\"`, `{"`, "'{", "//", "/*", `{"a":"`, "{a,", "“", " ", "```\n[1,]\n```\n", "{[}",
	} {
		for _, before := range []string{"", "x ", "{", `{"a":"`} {
			text := before + strings.Repeat(s, most/len(s))
			start := time.Now()
			Value(text, answers)
			require.Less(t, time.Since(start), 10*time.Second, "%q behind %q", s, before) // a tenth of that, but for a busy machine
		}
	}
	for _, text := range []string{"{" + strings.Repeat("[", MaxDepth), `{a: "` + strings.Repeat("x", MaxRepair) + `"}`} {
		_, ok := Repair(text)
		require.False(t, ok)
	}
}
