package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// What models write instead of the language's own fields: one problem each, whose hint has the right field with the
// value at hand, and nothing that only seems to be missing.
func TestAliasesSayWhatToWrite(t *testing.T) {
	t.Parallel()
	step := func(fields string) string {
		return steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo",` + fields + `}`)
	}
	for name, c := range map[string]struct{ plan, code, path, says string }{
		"args":               {step(`"args":{"x":1}`), "unknown_field", "/steps/1/args", `write "arguments": {"x":1}`},
		"dependencies":       {step(`"dependencies":["a"]`), "unknown_field", "/steps/1/dependencies", `write "depends_on": ["a"]`},
		"deps, a string":     {step(`"deps":"a"`), "unknown_field", "/steps/1/deps", `write "depends_on": ["a"]`},
		"dep":                {step(`"dep":"a, $ref:a"`), "unknown_field", "/steps/1/dep", `write "depends_on": ["a", "a"]`},
		"requires":           {step(`"requires":["a"]`), "unknown_field", "/steps/1/requires", `write "depends_on": ["a"]`},
		"prerequisites":      {step(`"prerequisites":["a"]`), "unknown_field", "/steps/1/prerequisites", `write "depends_on": ["a"]`},
		"wait_for":           {step(`"wait_for":["a"]`), "unknown_field", "/steps/1/wait_for", `write "depends_on": ["a"]`},
		"retries":            {step(`"retries":3`), "unknown_field", "/steps/1/retries", `write "retry": {"max_attempts": 4}`},
		"on_error, go on":    {step(`"on_error":"continue"`), "unknown_field", "/steps/1/on_error", `write "optional": true`},
		"on_error, stop":     {step(`"on_error":"stop"`), "unknown_field", "/steps/1/on_error", `"on_failure": "stop" beside "steps"`},
		"continue_on_error":  {step(`"continue_on_error":true`), "unknown_field", "/steps/1/continue_on_error", `write "optional": true`},
		"near miss":          {step(`"dependsOn":["a"]`), "unknown_field", "/steps/1/dependsOn", `write "depends_on": ["a"]`},
		"wrong level":        {step(`"on_failure":"stop"`), "unknown_field", "/steps/1/on_failure", `beside steps: "on_failure": "stop"`},
		"wrong level, go on": {step(`"on_failure":"continue"`), "unknown_field", "/steps/1/on_failure", `write "optional": true`},
		"outputs":            {`{"steps":[{"id":"a","tool":"echo"}],"outputs":"a"}`, "unknown_field", "/outputs", `write "output_steps": ["a"]`},
		"name for tool":      {steps(`{"id":"a","name":"echo"}`), "unknown_field", "/steps/0/name", `write "tool": "echo"`},
		"tool_name":          {steps(`{"id":"a","tool_name":"echo","name":"Say it"}`), "unknown_field", "/steps/0/tool_name", `write "tool": "echo"`},
		"action, tool null":  {steps(`{"id":"a","action":"echo","tool":null}`), "unknown_field", "/steps/0/action", `write "tool": "echo"`},
		"function":           {steps(`{"id":"a","function":{"name":"get_weather","arguments":{"location":"Oslo"}}}`), "unknown_field", "/steps/0/function", `write "tool": "get_weather", "arguments": {"location":"Oslo"}`},
		"function, string":   {steps(`{"id":"a","function":"echo"}`), "unknown_field", "/steps/0/function", `write "tool": "echo"`},
		"step_id":            {steps(`{"step_id":"a","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}}`), "unknown_field", "/steps/0/step_id", `write "id": "a"`},
		"name for id":        {steps(`{"name":"a1","tool":"echo"}`), "invalid_id", "/steps/0", `write "id": "a1"`},
		"type for tool":      {steps(`{"id":"a","type":"echo"}`), "invalid_id", "/steps/0", `write "tool": "echo"`},
		"tasks for steps":    {`{"tasks":[{"id":"a","tool":"echo"}]}`, "empty_plan", "", `write "steps" for "tasks"`},
		"wrapped":            {`{"plan":{"steps":[{"id":"a","tool":"echo"}]}}`, "empty_plan", "/plan", `under "plan", and nothing around it`},
		"wrapped steps":      {`{"plan":[{"id":"a","tool":"echo"}]}`, "empty_plan", "/plan", `write "steps" for "plan"`},
		"a call":             {`{"name":"execute_tool_plan","arguments":{"steps":[{"id":"a","tool":"echo"}]}}`, "empty_plan", "/arguments", `under "arguments"`},
		"a call, string":     {`{"type":"function","function":{"name":"execute_tool_plan","arguments":"{\"steps\":[]}"}}`, "empty_plan", "/function/arguments", `the string under "function.arguments"`},
		"a call, plan in it": {`{"tool":"execute_tool_plan","input":{"plan":{"steps":[]}}}`, "empty_plan", "/input/plan", `under "input.plan"`},
		"keyed by its name":  {`{"execute_tool_plan":{"steps":[]}}`, "empty_plan", "/execute_tool_plan", `under "execute_tool_plan"`},
		"steps a string":     {`{"steps":"[{\"id\":\"a\"}]","output_steps":["a"]}`, "invalid_value", "/steps", "the array itself"},
		"steps an object":    {`{"steps":{"a":{"tool":"echo"}}}`, "invalid_value", "/steps", `"id": "a"`},
		"one step":           {`{"steps":{"id":"a","tool":"echo"}}`, "invalid_value", "/steps", "put the step into an array"},
		"tool an object":     {steps(`{"id":"a","tool":{"name":"echo","arguments":{"x":1}}}`), "invalid_value", "/steps/0/tool", `write "tool": "echo", "arguments": {"x":1}`},
		"depends_on string":  {step(`"depends_on":"a"`), "invalid_value", "/steps/1/depends_on", `write "depends_on": ["a"]`},
		"output_steps":       {`{"steps":[{"id":"a","tool":"echo"}],"output_steps":"a"}`, "invalid_value", "/output_steps", `write "output_steps": ["a"]`},
		"id a number":        {steps(`{"id":1,"tool":"echo"}`), "invalid_value", "/steps/0/id", `write "id": "1"`},
		"optional":           {step(`"optional":"true"`), "invalid_value", "/steps/1/optional", "write true, without quotes"},
		"attempts":           {step(`"retry":{"max_attempts":"3"}`), "invalid_value", "/steps/1/retry/max_attempts", "write 3, without quotes"},
		"retry a number":     {step(`"retry":2`), "invalid_value", "/steps/1/retry", `write "retry": {"max_attempts": 3}`},
		"on_failure":         {`{"steps":[{"id":"a","tool":"echo"}],"on_failure":"STOP"}`, "invalid_value", "/on_failure", `write "stop"`},
		"timeout":            {step(`"timeout":30`), "invalid_value", "/steps/1/timeout", `write "30s" for 30 seconds`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := plan.Parse([]byte(c.plan), corpusTools(t))
			require.Nil(t, p)
			require.Equal(t, []string{c.code + " " + c.path}, found(r.Problems), "%v", r.Problems)
			require.Contains(t, r.Problems[0].Hint, c.says)
		})
	}
}

// A label beside the field that it could mean is a foreign field, and what an alias stood for is read as the field.
func TestLabelsBesideFields(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(`{"name":"demo","steps":[{"id":"a","tool":"echo","name":"Say hello","function":{"name":"x"},"action":"go","step_id":"b","tool_name":null}]}`), corpusTools(t))
	require.NotNil(t, p, "%v", r.Problems)
	require.Len(t, r.Warnings, 6)

	_, r = plan.Parse([]byte(steps(`{"id":"a","function":{"name":"get_weather","arguments":{"location":7,"x":"$ref:zz"}},"name":"label"}`)), corpusTools(t))
	require.Equal(t, []string{"unknown_field /steps/0/function", "unknown_ref /steps/0/function/arguments/x", "invalid_arguments /steps/0/function/arguments/location"}, found(r.Problems))
	require.Len(t, r.Warnings, 1)

	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":1,"y":"{{a.x}}","z":["<a>"]}}`)), corpusTools(t))
	require.Equal(t, []string{"invalid_ref /steps/1/arguments/y", "invalid_ref /steps/1/arguments/z/0"}, found(r.Problems), "the place of marks without a dollar")

	_, r = plan.Parse([]byte(steps(`{"type":"echo","note":"n","key":"k1"}`)), corpusTools(t))
	require.Equal(t, []string{"invalid_id /steps/0", "invalid_id /steps/0"}, found(r.Problems))
	require.Len(t, r.Warnings, 1, "a field that a problem tells of is no warning any more")
	require.Equal(t, "/steps/0/note", r.Warnings[0].Path)
}

// The nearest id, and all of them on a tie: those of earlier steps first, never the step itself, each with the path.
func TestHintsForIDs(t *testing.T) {
	t.Parallel()
	numbered := `{"id":"var_1","tool":"echo"},{"id":"var_2","tool":"echo"},{"id":"var_3","tool":"echo","arguments":{"x":REF}},{"id":"var_4","tool":"echo"}`
	for ref, want := range map[string]string{
		`"$ref:var_7.result"`:       `did you mean "$ref:var_1.result", "$ref:var_2.result" or "$ref:var_4.result"?`,
		`"$ref:var2.result[0]"`:     `did you mean "$ref:var_2.result[0]"?`,
		`"$ref:Var_4"`:              `did you mean "$ref:var_4"?`,
		`"it is ${ref:vars_1.x}"`:   `did you mean ${ref:var_1.x}?`,
		`{"$ref":"vr_1.x"}`:         `did you mean {"$ref": "var_1.x"}?`,
		`"$ref:zzzzzz.x"`:           `the steps are: var_1, var_2, var_3, var_4`,
		`"$ref:var_1_result.x.y.z"`: `did you mean "$ref:var_1.x.y.z"?`,
	} {
		_, r := plan.Parse([]byte(steps(replaced(numbered, ref))), corpusTools(t))
		require.Len(t, r.Problems, 1, ref)
		require.Equal(t, want, r.Problems[0].Hint, ref)
	}
	_, r := plan.Parse([]byte(steps(`{"id":"d","tool":"echo","arguments":{"x":"$ref:s3"}},{"id":"s1","tool":"echo","depends_on":["s9"]},{"id":"s2","tool":"echo"}`)), corpusTools(t))
	require.Equal(t, `did you mean "$ref:s1" or "$ref:s2"?`, r.Problems[0].Hint)
	require.Equal(t, `did you mean "s2"?`, r.Problems[1].Hint, "not the step itself")
}

// The nearest tool: by letters, by what is part of it, by its beginning, by a word.
func TestHintsForTools(t *testing.T) {
	t.Parallel()
	tools := catalog{}
	for _, n := range []string{"add", "subtract", "multiply", "divide", "remainder", "get_weather", "send_email", "send_alert", "text_upper", "text_lower"} {
		tools[n] = schema(t, ``)
	}
	for name, want := range map[string]string{
		"multiplication": `did you mean "multiply"?`,
		"division":       `did you mean "divide"?`,
		"addition":       `did you mean "add"?`,
		"substract":      `did you mean "subtract"?`,
		"weather_lookup": `did you mean "get_weather"?`,
		"fetchWeather":   `did you mean "get_weather"?`,
		"send_sms":       `did you mean "send_alert" or "send_email"?`,
		"TextUpper":      `did you mean "text_upper"?`,
		"translate":      `there are: add, divide, get_weather, multiply, remainder, send_alert, send_email, subtract, text_lower, text_upper`,
	} {
		_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"`+name+`"}`)), tools)
		require.Len(t, r.Problems, 1)
		require.Equal(t, want, r.Problems[0].Hint, name)
	}
}

func replaced(steps, ref string) string { return strings.ReplaceAll(steps, "REF", ref) }

// What is wrong with arguments says what to write, also where the cause stands beside them.
func TestHintsForArguments(t *testing.T) {
	t.Parallel()
	const a = `{"id":"a","tool":"echo"},`
	for name, c := range map[string]struct{ plan, path, says string }{
		"number as text":         {steps(`{"id":"b","tool":"add","arguments":{"a":"63","b":1}}`), "/steps/0/arguments/a", "write 63, without quotes"},
		"another name":           {steps(`{"id":"b","tool":"get_weather","arguments":{"city":"Oslo"}}`), "/steps/0/arguments", `rename "city" to "location"`},
		"beside the arguments":   {steps(`{"id":"b","tool":"get_weather","location":"Oslo"}`), "/steps/0/arguments", `write "arguments": {"location": "Oslo"}; "location" stands beside it`},
		"beside, misspelt":       {steps(`{"id":"b","tool":"get_weather","locatoin":"Oslo","arguments":{}}`), "/steps/0/arguments", `write "arguments": {"location": "Oslo"}`},
		"beside others":          {steps(`{"id":"b","tool":"add","arguments":{"a":1},"b":2}`), "/steps/0/arguments", `add "b": 2 to "arguments"`},
		"an operator behind":     {steps(a + `{"id":"b","tool":"add","arguments":{"a":"$ref:a.n + 5","b":1}}`), "/steps/1/arguments/a", `write "$ref:a.n" alone`},
		"braces within":          {steps(a + `{"id":"b","tool":"add","arguments":{"a":"about ${ref:a.n[0]}","b":1}}`), "/steps/1/arguments/a", `write "$ref:a.n[0]" alone`},
		"foreign marks in text":  {steps(a + `{"id":"b","tool":"add","arguments":{"a":"about {{a.n}} or so","b":1}}`), "/steps/1/arguments/a", `${ref:a.n}`},
		"in arguments as string": {steps(`{"id":"b","tool":"add","arguments":"{\"a\":\"63\",\"b\":1}"}`), "/steps/0/arguments/a", "write 63, without quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := plan.Parse([]byte(c.plan), corpusTools(t))
			require.Equal(t, []string{"invalid_arguments " + c.path}, found(r.Problems), "%v", r.Problems)
			require.Contains(t, r.Problems[0].Hint, c.says)
			require.Empty(t, r.Warnings)
		})
	}
}

// Who looks for a tool that asks a person is told of the one that is in no catalog.
func TestHintsForTheToolThatAsks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ask_user", "askHuman", "human_input", "get_user_input", "ask_question"} {
		_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"`+name+`"}`)), corpusTools(t))
		require.Len(t, r.Problems, 1)
		require.Equal(t, `write "tool": "ask", "arguments": {"question": "…"}, which asks a person`, r.Problems[0].Hint, name)
	}
	p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"ask","arguments":{"question":"…"}}`)), corpusTools(t))
	require.NotNil(t, p, "%v", r.Problems)
	near := catalog{"ask_users": schema(t, ``)}
	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"ask_user"}`)), near)
	require.Equal(t, `did you mean "ask_users"?`, r.Problems[0].Hint)
}
