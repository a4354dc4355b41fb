package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// found returns problems as "code path", in their order; one that stands in several places by each that it lists.
func found(problems []fault.Problem) []string {
	list := []string{}
	for _, p := range problems {
		if p.Count == 0 {
			p.Paths = []string{p.Path}
		}
		for _, path := range p.Paths {
			list = append(list, string(p.Code)+" "+path)
		}
	}
	return list
}

// steps wraps steps into a plan.
func steps(s string) string { return `{"steps":[` + s + `]}` }

func TestProblems(t *testing.T) {
	t.Parallel()
	const a = `{"id":"a","tool":"echo"}`
	tools := corpusTools(t)
	for name, c := range map[string]struct {
		plan string
		want []string // none: accepted
	}{
		"smallest":                       {steps(a), nil},
		"white space":                    {" \n\t\r" + steps(a) + "\n", nil},
		"no steps":                       {`{"x":1}`, []string{"empty_plan "}},
		"steps null":                     {`{"steps":null}`, []string{"empty_plan "}},
		"steps empty":                    {`{"steps":[],"output_steps":["a"]}`, []string{"empty_plan /steps", "unknown_output_step /output_steps/0"}},
		"steps a string":                 {`{"steps":"[]"}`, []string{"invalid_value /steps"}},
		"root a string":                  {`"{}"`, []string{"malformed_json "}},
		"two values":                     {steps(a) + `{}`, []string{"malformed_json "}},
		"unclosed":                       {`{"steps":[` + a, []string{"malformed_json "}},
		"wrong bracket":                  {`{"steps":[` + a + `}}`, []string{"malformed_json "}},
		"bad escape":                     {steps(`{"id":"a\x"}`), []string{"malformed_json "}},
		"key twice by escape":            {`{"steps":[` + a + `],"t\u0068ought":1,"thought":2}`, []string{"duplicate_key /thought"}},
		"key twice, deep":                {steps(`{"id":"a","tool":"echo","arguments":{"x":[{"k":1,"k":2}]}}`), []string{"duplicate_key /steps/0/arguments/x/0/k"}},
		"key thrice":                     {steps(`{"id":"a","tool":"echo","arguments":{"k":1,"k":2,"k":3}}`), []string{"duplicate_key /steps/0/arguments/k", "duplicate_key /steps/0/arguments/k"}},
		"key of half a pair":             {steps(`{"id":"a","tool":"echo","arguments":{"\ud800":1}}`), []string{"invalid_utf8 /steps/0/arguments/\uFFFD"}},
		"both halves":                    {steps(`{"id":"a","tool":"echo","arguments":{"x":"\ud83d\ude00"}}`), nil},
		"halves the wrong way":           {steps(`{"id":"a","tool":"echo","arguments":{"x":"\ude00\ud83d"}}`), []string{"invalid_utf8 /steps/0/arguments/x"}},
		"64 deep":                        {steps(`{"id":"a","tool":"echo","arguments":{"x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}}`), nil},
		"65 deep":                        {steps(`{"id":"a","tool":"echo","arguments":{"x":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}}`), []string{"malformed_json "}},
		"id missing and null":            {steps(`{"tool":"echo"},{"id":null,"tool":"echo"}`), []string{"invalid_id /steps/0", "invalid_id /steps/1"}},
		"id of 64":                       {steps(`{"id":"` + strings.Repeat("x", 64) + `","tool":"echo"}`), nil},
		"id by escape":                   {steps(`{"id":"\u0061","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}}`), nil},
		"id is true":                     {steps(`{"id":true,"tool":"echo"}`), []string{"invalid_value /steps/0/id"}},
		"id a number that is used":       {steps(`{"id":7,"tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":"$ref:7"},"depends_on":["7"]}`), []string{"invalid_value /steps/0/id"}},
		"tool null":                      {steps(`{"id":"a","tool":null}`), []string{"invalid_id /steps/0"}},
		"tool a number":                  {steps(`{"id":"a","tool":1}`), []string{"invalid_value /steps/0/tool"}},
		"tool of 129":                    {steps(`{"id":"a","tool":"` + strings.Repeat("x", 129) + `"}`), []string{"invalid_id /steps/0/tool"}},
		"recursive":                      {steps(`{"id":"a","tool":"execute_tool_plan"}`), []string{"recursive_plan /steps/0/tool"}},
		"three with one id":              {steps(a + `,` + a + `,` + a), []string{"duplicate_step /steps/1/id", "duplicate_step /steps/2/id"}},
		"arguments null":                 {steps(`{"id":"a","tool":"echo","arguments":null}`), nil},
		"arguments true":                 {steps(`{"id":"a","tool":"echo","arguments":true}`), []string{"invalid_arguments /steps/0/arguments"}},
		"arguments \"null\"":             {steps(`{"id":"a","tool":"echo","arguments":"null"}`), []string{"invalid_arguments /steps/0/arguments"}},
		"arguments of blanks":            {steps(`{"id":"a","tool":"echo","arguments":"  "}`), []string{"invalid_arguments /steps/0/arguments"}},
		"arguments, encoded twice":       {steps(`{"id":"a","tool":"echo","arguments":"\"{}\""}`), []string{"invalid_arguments /steps/0/arguments"}},
		"arguments, a reference":         {steps(a + `,{"id":"b","tool":"echo","arguments":"$ref:a"}`), []string{"invalid_arguments /steps/1/arguments"}},
		"arguments, reference as object": {steps(a + `,{"id":"b","tool":"add","arguments":{"$ref":"a"}}`), nil},
		"string arguments, schema":       {steps(`{"id":"a","tool":"add","arguments":"{\"a\":1,\"b\":\"2\"}"}`), []string{"invalid_arguments /steps/0/arguments/b"}},
		"string arguments, deep":         {steps(`{"id":"a","tool":"echo","arguments":"{\"x\":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}"}`), []string{"malformed_json /steps/0/arguments"}},
		"string arguments, 64 deep":      {steps(`{"id":"a","tool":"echo","arguments":"{\"x\":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}"}`), nil},
		"string arguments, key twice":    {steps(`{"id":"a","tool":"echo","arguments":"{\"x\":1,\"\\u0078\":2}"}`), []string{"duplicate_key /steps/0/arguments/x"}},
		"string arguments, half a pair":  {steps(`{"id":"a","tool":"echo","arguments":"{\"x\":\"\\ud800\"}"}`), []string{"invalid_utf8 /steps/0/arguments/x"}},
		"string arguments, unknown ref":  {steps(`{"id":"a","tool":"echo","arguments":"{\"x\":[{\"y\":\"$ref:zz\"}]}"}`), []string{"unknown_ref /steps/0/arguments/x/0/y"}},
		"schema, no arguments":           {steps(`{"id":"a","tool":"add"}`), []string{"invalid_arguments /steps/0/arguments", "invalid_arguments /steps/0/arguments"}},
		"schema, text for a number":      {steps(a + `,{"id":"b","tool":"add","arguments":{"a":1,"b":"= $ref:a"}}`), []string{"invalid_arguments /steps/1/arguments/b"}},
		"schema, escape is a string":     {steps(`{"id":"b","tool":"add","arguments":{"a":1,"b":"$$ref:a"}}`), []string{"invalid_arguments /steps/0/arguments/b"}},
		"schema beside a broken ref":     {steps(`{"id":"b","tool":"add","arguments":{"a":"$ref:","b":"2"}}`), []string{"invalid_ref /steps/0/arguments/a", "invalid_arguments /steps/0/arguments/b"}},
		"unknown tool is not checked":    {steps(`{"id":"b","tool":"nope","arguments":{"a":"$ref:zz"}}`), []string{"unknown_tool /steps/0/tool", "unknown_ref /steps/0/arguments/a"}},
		"depends_on a string":            {steps(a + `,{"id":"b","tool":"echo","depends_on":"a"}`), []string{"invalid_value /steps/1/depends_on"}},
		"depends_on null and empty":      {steps(`{"id":"a","tool":"echo","depends_on":null},{"id":"b","tool":"echo","depends_on":[]}`), nil},
		"depends_on twice":               {steps(a + `,{"id":"b","tool":"echo","depends_on":["a","a"]}`), nil},
		"depends_on of all kinds":        {steps(a + `,{"id":"b","tool":"echo","depends_on":["a",1,null,"zz","b"]}`), []string{"invalid_value /steps/1/depends_on/1", "invalid_value /steps/1/depends_on/2", "unknown_ref /steps/1/depends_on/3", "cycle /steps/1/depends_on/4"}},
		"output_steps null":              {`{"steps":[` + a + `],"output_steps":null}`, nil},
		"output_steps of all kinds":      {`{"steps":[` + a + `],"output_steps":["a","zz",1,"a",["a"]]}`, []string{"unknown_output_step /output_steps/1", "invalid_value /output_steps/2", "duplicate_output_step /output_steps/3", "invalid_value /output_steps/4"}},
		"options null":                   {`{"steps":[{"id":"a","tool":"echo","timeout":null,"retry":null,"optional":null}],"on_failure":null,"on_missing":null,"schedule":null,"timeout":null}`, nil},
		"options":                        {`{"steps":[{"id":"a","tool":"echo","timeout":"1ms","retry":{},"optional":true}],"on_failure":"stop","on_missing":"error","schedule":"waves","timeout":"168h"}`, nil},
		"options of wrong types":         {`{"steps":[{"id":"a","tool":"echo","timeout":5,"retry":3,"optional":1}],"on_failure":true,"on_missing":null,"schedule":"Waves","timeout":"1h30"}`, []string{"invalid_value /on_failure", "invalid_value /schedule", "invalid_value /timeout", "invalid_value /steps/0/timeout", "invalid_value /steps/0/retry", "invalid_value /steps/0/optional"}},
		"timeouts out of range":          {`{"steps":[{"id":"a","tool":"echo","timeout":"999us"}],"timeout":"168h1ns"}`, []string{"invalid_value /timeout", "invalid_value /steps/0/timeout"}},
		"timeout negative":               {`{"steps":[` + a + `],"timeout":"-1s"}`, []string{"invalid_value /timeout"}},
		"retry":                          {steps(`{"id":"a","tool":"echo","retry":{"max_attempts":20,"backoff":{"strategy":"linear","initial_ms":0,"max_ms":1,"jitter":1}}}`), nil},
		"retry, wrong":                   {steps(`{"id":"a","tool":"echo","retry":{"max_attempts":0,"backoff":{"strategy":"x","initial_ms":-1,"max_ms":1.5,"jitter":2}}}`), []string{"invalid_value /steps/0/retry/max_attempts", "invalid_value /steps/0/retry/backoff/strategy", "invalid_value /steps/0/retry/backoff/initial_ms", "invalid_value /steps/0/retry/backoff/max_ms", "invalid_value /steps/0/retry/backoff/jitter"}},
		"retry, upside down":             {steps(`{"id":"a","tool":"echo","retry":{"backoff":{"initial_ms":9,"max_ms":8}}}`), []string{"invalid_value /steps/0/retry/backoff/max_ms"}},
		"backoff a string":               {steps(`{"id":"a","tool":"echo","retry":{"backoff":"linear"}}`), []string{"invalid_value /steps/0/retry/backoff"}},
		"max_attempts as 3e0":            {steps(`{"id":"a","tool":"echo","retry":{"max_attempts":3e0}}`), nil},
		"problems everywhere":            {`{"steps":[{"id":"a b","tool":"nope","arguments":{"x":"$ref:zz"}}],"on_failure":"x"}`, []string{"invalid_value /on_failure", "invalid_id /steps/0/id", "unknown_tool /steps/0/tool", "unknown_ref /steps/0/arguments/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := plan.Parse([]byte(c.plan), tools)
			want := c.want
			if want == nil {
				want = []string{}
			}
			require.Equal(t, want, found(r.Problems), "%v", r.Problems)
			require.Equal(t, len(want) == 0, p != nil)
			for _, x := range r.Problems {
				require.NotEmpty(t, x.Message)
			}
		})
	}
}

// Which names are near misses, aliases, reserved, misplaced or simply unknown, at each level.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	in := map[string]string{
		"plan":    `{%s,"steps":[{"id":"a","tool":"echo"}]}`,
		"step":    `{"steps":[{%s,"id":"a","tool":"echo"}]}`,
		"retry":   `{"steps":[{"retry":{%s},"id":"a","tool":"echo"}]}`,
		"backoff": `{"steps":[{"retry":{"backoff":{%s}},"id":"a","tool":"echo"}]}`,
	}
	for level, names := range map[string]struct{ errors, warnings []string }{
		"plan": {
			errors: []string{"Steps", "step", "stepz", "output_step", "outputSteps", "OUTPUT-STEPS", "onFailure", "on_failur", "outputs", "timeouts",
				"schedul", "for_each", "if", "when", "version", "priority", "batch", "id", "tool", "arguments", "depends_on", "retry", "optional",
				"repeat", "until", "partial", "value", "agent", "ask", "template"},
			warnings: []string{"thought", "description", "name", "plan", "args", "input", "inputs", "params", "parameters", "needs", "after", "depends", "retries", "ids",
				"Version", "versions", "foreach", "values", "agents", "opened", "title", "$schema", ""},
		},
		"step": {
			errors: []string{"ID", "Id", "i_d", "Tool", "tools", "tol", "tooL", "argument", "Arguments", "args", "params", "parameters", "input", "inputs",
				"depends", "dependencies", "deps", "dep", "needs", "requires", "prerequisites", "wait_for", "after", "retries", "on_error", "continue_on_error", "dependsOn", "depend_on", "Retry", "retri", "timeOut", "Optional", "forEach", "foreach", "For_Each", "for-each", "foreachs", "when",
				"version", "priority", "batch", "steps", "output_steps", "on_failure", "on_missing", "schedule",
				"until", "open", "open_for", "ask", "template", "plans"},
			warnings: []string{"thought", "description", "ids", "name", "type", "arg", "Args", "outputs", "Output", "comment", "onFailure", "iff", "optionally", "tool_name", "function", "action", "step_id",
				"Needs", "waitfor", "priorities"},
		},
		"retry":   {errors: []string{"maxAttempts", "max_attempt", "MAX_ATTEMPTS", "back_off", "backof"}, warnings: []string{"attempts", "if", "until", "version", "timeout", "args", "id"}},
		"backoff": {errors: []string{"initialMs", "max_m", "Strategy", "jiter", "maxms"}, warnings: []string{"initial", "max", "factor", "batch", "steps"}},
	} {
		for _, name := range names.errors {
			body := fmt.Sprintf(in[level], fmt.Sprintf("%q:null", name))
			p, r := plan.Parse([]byte(body), nil)
			require.Nil(t, p, "%s in %s", name, level)
			require.Equal(t, []string{"unknown_field"}, codes(r.Problems), "%s in %s", name, level)
			require.NotEmpty(t, r.Problems[0].Hint)
			require.True(t, strings.HasSuffix(r.Problems[0].Path, "/"+name), r.Problems[0].Path)
			require.Empty(t, r.Warnings)
		}
		for _, name := range names.warnings {
			body := fmt.Sprintf(in[level], fmt.Sprintf("%q:[1]", name))
			p, r := plan.Parse([]byte(body), nil)
			require.NotNil(t, p, "%s in %s: %v", name, level, r.Problems)
			require.Len(t, r.Warnings, 1, "%s in %s", name, level)
			require.Equal(t, fault.UnknownField, r.Warnings[0].Code)
			require.True(t, strings.HasSuffix(r.Warnings[0].Path, "/"+name), r.Warnings[0].Path)
		}
	}
}

// A misspelt field is read as what it was meant to be, so that nothing is reported as missing that isn't.
func TestNearMissesRaiseNoSecondProblem(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(`{"step":[{"ID":"a","Tool":"get_weather","args":{"location":"Tokyo"}},
		{"id":"b","tool":"echo","parameters":{"x":"$ref:a","y":"$ref:zz"},"needs":["a"]}],"outputSteps":["b"]}`), corpusTools(t))
	require.Nil(t, p)
	require.Equal(t, []string{"unknown_field /step", "unknown_field /outputSteps", "unknown_field /step/0/ID", "unknown_field /step/0/Tool",
		"unknown_field /step/0/args", "unknown_field /step/1/parameters", "unknown_field /step/1/needs", "unknown_ref /step/1/parameters/y"}, found(r.Problems))
}

func TestPlanFields(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(`{"steps":[
		{"id":"a","tool":"x:y/z.w-1","timeout":"1m30s","optional":true,"retry":{"max_attempts":5,"backoff":{"strategy":"constant","initial_ms":500,"max_ms":600,"jitter":0.5}}},
		{"id":"b","tool":"echo","depends_on":["a"],"optional":false}],
		"output_steps":["b","a"],"on_failure":"stop","on_missing":"error","schedule":"waves","timeout":"2h"}`), nil)
	require.Empty(t, r.Problems)
	require.Empty(t, r.Warnings)
	require.Equal(t, plan.Stop, p.OnFailure)
	require.Equal(t, plan.MissingError, p.OnMissing)
	require.Equal(t, plan.Waves, p.Schedule)
	require.Equal(t, 2*time.Hour, p.Timeout)
	require.True(t, p.TimeoutSet)
	require.Equal(t, []int{1, 0}, p.Outputs)
	require.Equal(t, 2, p.Depth)
	a := p.Steps[0]
	require.Equal(t, "x:y/z.w-1", a.Tool)
	require.Equal(t, 90*time.Second, a.Timeout)
	require.True(t, a.Optional)
	require.Equal(t, &tool.Retry{MaxAttempts: 5, Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 500 * time.Millisecond, Max: 600 * time.Millisecond, Jitter: 0.5}}, a.Retry)
	require.Equal(t, []int{1}, p.Dependents(0))
	i, ok := p.Index("b")
	require.True(t, ok)
	require.Equal(t, 1, i)
	_, ok = p.Index("zz")
	require.False(t, ok)

	d := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t"}`))
	require.Equal(t, plan.Continue, d.OnFailure)
	require.Equal(t, plan.MissingNull, d.OnMissing)
	require.Equal(t, plan.Dataflow, d.Schedule)
	require.Equal(t, 168*time.Hour, d.Timeout)
	require.False(t, d.TimeoutSet)
	require.Equal(t, []int{0, 1}, d.Outputs)
	require.Nil(t, d.Steps[0].Retry)
	require.Zero(t, d.Steps[0].Timeout)
	require.False(t, d.Steps[0].HasRefs)
}

// The plan must not change when the caller reuses the buffer that it was read from.
func TestPlanKeepsNothingOfItsBody(t *testing.T) {
	t.Parallel()
	body := []byte(diamond)
	p, r := plan.Parse(body, nil)
	require.Empty(t, r.Problems)
	clear(body)
	require.Equal(t, "tokyo", p.Steps[0].ID)
	args, err := p.Arguments(0, nil)
	require.Nil(t, err)
	require.Equal(t, `{"location":"Tokyo"}`, string(args))
	clear(args)
	again, err := p.Arguments(0, nil)
	require.Nil(t, err)
	require.Equal(t, `{"location":"Tokyo"}`, string(again))
}

func TestLimits(t *testing.T) {
	t.Parallel()
	_, r := plan.ParseLimited([]byte(diamond), nil, plan.Limits{MaxBytes: len(diamond) - 1})
	require.Equal(t, []string{"limit_exceeded "}, found(r.Problems))
	p, _ := plan.ParseLimited([]byte(diamond), nil, plan.Limits{MaxBytes: len(diamond)})
	require.NotNil(t, p)

	p, _ = plan.Parse(large(plan.MaxSteps), nil)
	require.NotNil(t, p)
	_, r = plan.Parse(large(plan.MaxSteps+1), nil)
	require.Equal(t, []string{"limit_exceeded /steps"}, found(r.Problems))

	refs := func(n int) string {
		return steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"x":"` + strings.Repeat("${ref:a}", n-2) + `","y":"$ref:a || $ref:a"}}`)
	}
	require.NotNil(t, parsed(t, refs(plan.MaxRefs)))
	_, r = plan.Parse([]byte(refs(plan.MaxRefs+1)), nil)
	require.Equal(t, []string{"limit_exceeded /steps/1/arguments"}, found(r.Problems))

	path := func(n int) string {
		return steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"x":"$ref:a.` + strings.Repeat("k", n-1) + `"}}`)
	}
	require.NotNil(t, parsed(t, path(plan.MaxPath)))
	_, r = plan.Parse([]byte(path(plan.MaxPath+1)), nil)
	require.Equal(t, []string{"limit_exceeded /steps/1/arguments/x"}, found(r.Problems))
}

// counting is a catalog that counts what it is asked.
type counting struct {
	catalog
	lookups map[string]int
	names   int
}

func (c *counting) Lookup(name string) (plan.Tool, bool) {
	c.lookups[name]++
	return c.catalog.Lookup(name)
}

func (c *counting) Names() []string {
	c.names++
	return c.catalog.Names()
}

// A catalog may change at any time, so a plan is read against one answer for each tool.
func TestCatalogIsAskedOnce(t *testing.T) {
	t.Parallel()
	c := &counting{corpusTools(t), map[string]int{}, 0}
	_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"add","arguments":{"a":1,"b":2}},{"id":"b","tool":"add","arguments":{"a":1,"b":"$ref:a"}},{"id":"c","tool":"x1"},{"id":"d","tool":"x2"}`)), c)
	require.Equal(t, []string{"unknown_tool"}, codes(r.Problems))
	require.Equal(t, map[string]int{"add": 1, "x1": 1, "x2": 1}, c.lookups)
	require.Equal(t, 1, c.names)
}

// Package subjects says what a name is, and those who take names ask it.
func TestNamesAreThoseOfSubjects(t *testing.T) {
	t.Parallel()
	names := []string{"", "a", "A-b_9", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 128), strings.Repeat("x", 129)}
	for c := range 256 {
		names = append(names, "a"+string([]byte{byte(c)}))
	}
	for _, n := range names {
		d := tool.Definition{Name: n, Description: "d", InputSchema: []byte(`{"type":"object"}`)}
		require.Equal(t, subjects.ValidTool(n), d.Validate() == nil, "%q", n)
		body := steps(fmt.Sprintf(`{"id":%s,"tool":"t"}`, quoted(n)))
		p, _ := plan.Parse([]byte(body), nil)
		require.Equal(t, subjects.ValidStepID(n), p != nil, "%q", n)
	}
}

// quoted writes a JSON string with the bytes of s as they are, but for those that JSON wants escaped.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}
