package dryrun_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// toolsOf reads definitions, and takes their own contracts.
func toolsOf(t testing.TB, raw string) []dryrun.Tool {
	t.Helper()
	definitions, err := tool.ParseDefinitions([]byte(raw))
	require.NoError(t, err)
	all := make([]dryrun.Tool, len(definitions))
	for i, d := range definitions {
		c, err := d.Contract()
		require.NoError(t, err)
		all[i] = dryrun.Tool{Definition: d, Contract: c}
	}
	return all
}

func of(t testing.TB, body, tools string) *outcome.DryRun {
	t.Helper()
	d, err := dryrun.Of([]byte(body), toolsOf(t, tools), nil)
	require.NoError(t, err)
	return d
}

// tools are one of each kind: with an example, with a schema, with nothing said of what it returns.
const tools = `[
	{"name": "search", "annotations": {"readOnlyHint": true}, "outputSchema": {"type": "object", "properties": {"pages": {"type": "array", "items": {"type": "object"}}},
		"examples": [{"pages": [{"url": "a"}, {"url": "b"}, {"url": "c"}]}]}, "x-orchestration": {"max_concurrency": 2, "mode": "fan-out-bounded", "wait_timeout_ms": 2000}},
	{"name": "fetch", "inputSchema": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
		"outputSchema": {"type": "object", "properties": {"text": {"type": "string"}, "title": {"type": "string"}}, "required": ["text"]}, "x-orchestration": {"max_concurrency": 2}},
	{"name": "say", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
	{"name": "wipe", "annotations": {"destructiveHint": true}, "x-orchestration": {"delivery": "at_most_once"}},
	{"name": "rate", "outputSchema": {"type": "integer"}},
	{"name": "word", "outputSchema": {"examples": ["Rome"]}},
	{"name": "one", "outputSchema": {"const": 1}, "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 2}}}},
	{"name": "mail", "inputSchema": {"type": "object", "properties": {"to": {"type": "array", "items": {"type": "object"}}}, "required": ["to"]},
		"x-orchestration": {"batch": {"argument": "to", "max_items": 10, "max_wait_ms": 20}, "max_concurrency": 20}}]`

func stepOf(t testing.TB, d *outcome.DryRun, id string) outcome.DryStep {
	t.Helper()
	for _, s := range d.Steps {
		if s.ID == id {
			return s
		}
	}
	require.Fail(t, "no such step", id)
	return outcome.DryStep{}
}

func noticesOf(d *outcome.DryRun) (all []string) {
	for _, n := range d.Notices {
		all = append(all, fmt.Sprintf("%s %s%s: %s", n.Kind, n.Tool, n.Step, n.Message))
	}
	return all
}

func TestAListFromAnExample(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps": [
		{"id": "s", "tool": "search", "arguments": {}},
		{"id": "f", "tool": "fetch", "for_each": {"in": "$ref:s.pages", "as": "p"}, "arguments": {"url": "$ref:p.url"}},
		{"id": "w", "tool": "say", "arguments": {"text": "$ref:f[*].data.text", "first": "$ref:f[0].data.title"}}], "output_steps": ["f"], "timeout": "90s"}`, tools)
	require.Empty(t, d.Problems)
	require.Equal(t, [][]string{{"s"}, {"f"}, {"w"}}, d.Waves)
	require.Equal(t, 5, d.Calls)
	require.True(t, d.Guessed)
	require.Equal(t, outcome.Succeeded, d.Status)
	require.EqualValues(t, 90_000, d.TimeoutMS)
	f := stepOf(t, d, "f")
	require.Equal(t, 3, f.Calls)
	require.True(t, f.Guessed)
	require.JSONEq(t, `{"url":"a"}`, string(f.Arguments))
	require.Equal(t, []string{"s"}, f.DependsOn)
	require.JSONEq(t, `{"text":["","",""],"first":null}`, string(stepOf(t, d, "w").Arguments))
	require.Len(t, d.Doubts, 1, "%v", d.Doubts)
	require.Contains(t, d.Doubts[0].Message, "$ref:f[0].data.title found nothing")
	require.Equal(t, "/steps/2/arguments/first", d.Doubts[0].Path)
	result, _ := d.Results.Get("f")
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":{"text":""}},{"index":1,"status":"ok","data":{"text":""}},{"index":2,"status":"ok","data":{"text":""}}],"summary":{"ok":3,"error":0}}`, string(result))
	require.Equal(t, []string{
		"limit fetch: 3 calls are ready at once, and 2 may run at a time, over all runs",
		"wait search: a call that no worker takes within 2s fails",
		"timeout : the run is stopped 1m30s after its submission, with what it has until then",
		"guess f: the length of its list depends on what tools return; made up, it has 3 items",
	}, noticesOf(d))
	require.Equal(t, "fetch", d.Tools[0].Tool)
	require.Equal(t, 3, d.Tools[0].AtOnce)
	require.Equal(t, outcome.FromSchema, d.Tools[0].From)
	require.JSONEq(t, `{"text":""}`, string(d.Tools[0].Returns))
	require.Equal(t, outcome.FromNothing, d.Tools[1].From)
	require.Equal(t, outcome.FromExample, d.Tools[2].From)
}

// With an example, what would go wrong does; with anything else it is a doubt, and the run goes on.
func TestWhatIsCertainFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		steps         string
		status        outcome.RunStatus
		errors        string // codes
		doubts, calls int
	}{
		{`{"id":"a","tool":"word"},{"id":"b","tool":"say","arguments":{"x":"$ref:a.name"}}`, outcome.Partial, "unresolved_ref", 0, 1},
		{`{"id":"a","tool":"one"},{"id":"b","tool":"one","arguments":{"n":"$ref:a"}},{"id":"c","tool":"say","arguments":{"x":"$ref:b"}}`, outcome.Partial, "invalid_arguments skipped", 0, 1},
		{`{"id":"a","tool":"say"},{"id":"b","tool":"one","arguments":{"n":"$ref:a"}}`, outcome.Succeeded, "", 1, 2},
		{`{"id":"a","tool":"rate"},{"id":"b","tool":"one","arguments":{"n":"$ref:a"}}`, outcome.Succeeded, "", 1, 2},
		{`{"id":"a","tool":"say"},{"id":"b","tool":"one","arguments":{"n":"$ref:a.n"}}`, outcome.Succeeded, "", 1, 2},
		{`{"id":"a","tool":"fetch","arguments":{"url":"u"}},{"id":"b","tool":"say","arguments":{"x":"$ref:a.title"}}`, outcome.Succeeded, "", 1, 2},
		{`{"id":"a","tool":"say"},{"id":"b","tool":"fetch","for_each":{"in":"$ref:a"},"arguments":{"url":"$ref:item"}}`, outcome.Succeeded, "", 2, 2},
		{`{"id":"a","tool":"word"},{"id":"b","tool":"fetch","for_each":{"in":"$ref:a"},"arguments":{"url":"$ref:item"}}`, outcome.Partial, "unresolved_ref", 0, 1},
		{`{"id":"a","tool":"one"},{"id":"b","tool":"one","for_each":{"in":["$ref:a",7]},"arguments":{"n":"$ref:item"}}`, outcome.Partial, "invalid_arguments", 0, 1},
		{`{"id":"a","tool":"fetch","for_each":{"in":[]},"arguments":{"url":"u"}}`, outcome.Succeeded, "", 0, 0},
		{`{"id":"a","tool":"fetch","for_each":{"in":[{}]},"arguments":{"url":"$ref:item.u"}},{"id":"b","tool":"say","depends_on":["a"],"optional":true}`, outcome.Failed, "invalid_arguments skipped", 0, 0},
	} {
		d := of(t, `{"steps":[`+c.steps+`]}`, tools)
		require.Empty(t, d.Problems, c.steps)
		var codes []string
		for _, e := range d.Errors {
			codes = append(codes, string(e.Code))
		}
		require.Equal(t, c.errors, strings.Join(codes, " "), c.steps)
		require.Equal(t, c.status, d.Status, c.steps)
		require.Len(t, d.Doubts, c.doubts, "%s: %v", c.steps, d.Doubts)
		require.Equal(t, c.calls, d.Calls, c.steps)
	}
}

func TestAFailureStopsARunThatSaysSo(t *testing.T) {
	t.Parallel()
	d := of(t, `{"on_failure":"stop","steps":[{"id":"a","tool":"word"},{"id":"b","tool":"say","arguments":{"x":"$ref:a.x"}},{"id":"c","tool":"say","depends_on":["a"]},
		{"id":"d","tool":"say","depends_on":["c"]},{"id":"e","tool":"say","for_each":{"in":[1,2,3]},"depends_on":["a"]}]}`, tools)
	require.Equal(t, outcome.Partial, d.Status)
	require.Equal(t, outcome.StepFailed, stepOf(t, d, "b").Status)
	require.Equal(t, outcome.StepCancelled, stepOf(t, d, "d").Status)
	require.Equal(t, outcome.StepCancelled, stepOf(t, d, "e").Status)
}

// Conditions are decided by what is made up, which is said; how a step ended can be referred to.
func TestConditions(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps":[{"id":"a","tool":"rate"},{"id":"b","tool":"say","if":"$ref:a > 0"},{"id":"c","tool":"say","arguments":{"x":"$ref:b"}},
		{"id":"d","tool":"say","if":"$ref:a == 0","arguments":{"t":"$status:b, ${status:a}"}},
		{"id":"e","tool":"one","arguments":{"n":"$ref:f"}},{"id":"f","tool":"one"},{"id":"g","tool":"say","arguments":{"why":"$error:e"}}]}`, tools)
	require.Empty(t, d.Problems)
	require.Equal(t, outcome.Succeeded, d.Status)
	require.Equal(t, []string{"b", "c"}, d.NotTaken)
	require.True(t, d.Guessed)
	require.Equal(t, 4, d.Calls)
	require.JSONEq(t, `{"t":"not_taken, succeeded"}`, string(stepOf(t, d, "d").Arguments))
	require.Contains(t, string(stepOf(t, d, "g").Arguments), `"code":"invalid_arguments"`)
	require.Equal(t, []string{
		"condition b: what tools return decides whether it is taken; made up, it is not taken",
		"condition d: what tools return decides whether it is taken; made up, it is taken",
	}, noticesOf(d))
}

// Values are derived from what is made up. What goes wrong with them proves something only where all that they refer to
// is certain.
func TestValues(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps":[{"id":"a","tool":"one"},{"id":"b","value":{"$calc":"$ref:a + 1"}},{"id":"c","tool":"say","arguments":{"n":"$ref:b"}},
		{"id":"f","tool":"fetch","arguments":{"url":"x"}},{"id":"g","value":{"$calc":"$ref:f.text * 2"}},{"id":"h","value":{"$calc":"$ref:w / 0"}},{"id":"w","tool":"one","arguments":{"n":"$ref:b"}},
		{"id":"i","value":{"$calc":"$ref:p.x"},"for_each":{"in":"$ref:s.pages","as":"p"}},{"id":"s","tool":"search"},{"id":"m","value":["$ref:f.title"]}],
		"output_steps":["b","i"]}`, tools)
	require.Empty(t, d.Problems)
	require.Equal(t, `2`, string(stepOf(t, d, "b").Value))
	require.JSONEq(t, `{"n":2}`, string(stepOf(t, d, "c").Arguments))
	require.Equal(t, 5, d.Calls)
	require.Len(t, d.Tools, 4)
	require.Contains(t, string(d.Results[1].JSON), `"summary":{"ok":3,"error":0}`)
	require.Equal(t, outcome.Partial, d.Status)
	var doubts []string
	for _, p := range d.Doubts {
		doubts = append(doubts, string(p.Code)+" "+p.Path)
	}
	require.Equal(t, []string{"condition_failed /steps/4/value", "unresolved_ref /steps/9/value/0"}, doubts)
}

// What takes long is derived as an orchestrator would do it beside its loop, and what would never end is cut.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	steps := `{"id":"v0","value":"` + strings.Repeat("x", 1<<19) + `"}`
	for i := range 7 {
		steps += fmt.Sprintf(`,{"id":"v%d","value":["$ref:v%d","$ref:v%[2]d"]}`, i+1, i)
	}
	d := of(t, `{"steps":[`+steps+`],"output_steps":["v0"]}`, tools)
	require.Empty(t, d.Problems)
	require.Equal(t, outcome.Partial, d.Status)
	require.Equal(t, fault.TooLarge, d.Errors[0].Code)
	long := `{"$calc":"sum($ref:l, $ref:l, $ref:l) + product($ref:l)"},`
	d = of(t, `{"steps":[{"id":"l","value":`+listOf(2_000)+`},{"id":"v","value":[`+strings.TrimSuffix(strings.Repeat(long, 1_000), ",")+`]}]}`, tools)
	require.Empty(t, d.Problems)
	require.NotEmpty(t, d.Cut)
}

func TestNotices(t *testing.T) {
	t.Parallel()
	d := of(t, `{"schedule":"waves","steps":[{"id":"w","tool":"wipe","timeout":"2s"},{"id":"m","tool":"mail","for_each":{"in":`+listOf(2_000)+`},"arguments":{"to":[]},"timeout":"1h"},
		{"id":"l","tool":"word"},{"id":"k","tool":"say","arguments":{"t":["$ref:l","`+strings.Repeat("x", 300<<10)+`"]}}]}`, tools)
	require.Equal(t, []string{
		"limit mail: 2000 calls are ready at once, and 20 may run at a time, over all runs",
		"batch mail: a worker gathers up to 10 single calls into one, for up to 20ms",
		"destructive wipe: may destroy or overwrite, as it says of itself; 1 call",
		"at_most_once wipe: a call whose worker dies ends with outcome_unknown, and is not tried again",
		"timeout w: fails 2s after it is ready, queue and retries included; one execution of its tool may take 5m0s",
		"timeout m: fails 1h0m0s after it is ready, queue and retries included",
		"large m: 2000 items, and as many calls",
		"large k: arguments of 307217 bytes, which travel by the object store",
	}, noticesOf(d))
	k := stepOf(t, d, "k")
	require.Nil(t, k.Arguments)
	require.Greater(t, k.ArgumentBytes, 300<<10)
}

func listOf(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }

func TestAPlanWithProblemsHasNothingElse(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]fault.Code{
		`{"steps":[{"id":"a","tool":"nobody"}]}`:                                                    fault.UnknownTool,
		`{"steps":[{"id":"a","tool":"fetch"},{"id":"b","tool":"say","arguments":{"x":"$ref:zz"}}]}`: fault.InvalidArguments,
		`nonsense`:                           fault.MalformedJSON,
		``:                                   fault.MalformedJSON,
		strings.Repeat(" ", plan.MaxBytes+1): fault.LimitExceeded,
	} {
		d := of(t, body, tools)
		require.False(t, d.Valid())
		require.Equal(t, code, d.Problems[0].Code)
		d.Problems, d.Warnings = nil, nil
		require.Equal(t, outcome.DryRun{}, *d)
	}
}

// The whole form survives a round trip, so that programs may keep it.
func TestTheFormOfADryRun(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps":[{"id":"a","tool":"word"},{"id":"b","tool":"say","arguments":{"x":"$ref:a.x"}}]}`, tools)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	var again outcome.DryRun
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, *d, again)
}

// The largest plans are told of soon, and what is too much is cut and says so.
func TestLargePlans(t *testing.T) {
	t.Parallel()
	var chain, wide, lists strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&wide, `{"id":"s%d","tool":"say"},`, i)
		if i > 0 {
			fmt.Fprintf(&chain, `,{"id":"s%d","tool":"word","arguments":{"x":"$ref:s%d"}}`, i, i-1)
		}
	}
	for i := range 300 {
		fmt.Fprintf(&lists, `,{"id":"f%d","tool":"say","for_each":{"in":"$ref:all"}}`, i)
	}
	large := strings.Replace(tools, `"examples": ["Rome"]`, `"examples": ["`+strings.Repeat("Rome", 10_000)+`"]`, 1)
	for _, c := range []struct {
		name, body, tools string
		calls             int
		cut               string
	}{
		{"a chain", `{"steps":[{"id":"s0","tool":"word"}` + chain.String() + `]}`, tools, 10_000, ""},
		{"side by side", `{"steps":[` + strings.TrimSuffix(wide.String(), ",") + `]}`, tools, 10_000, ""},
		{"a long list", `{"steps":[{"id":"all","tool":"word","for_each":{"in":` + listOf(10_000) + `}},{"id":"b","tool":"say","arguments":{"x":"$ref:all[*].data"}}]}`, tools, 10_001, ""},
		{"many long lists", `{"steps":[{"id":"all","tool":"word","for_each":{"in":` + listOf(3_300) + `}}` + lists.String() + `]}`, tools, 0, "there are more than 200000 items of lists"},
		{"large results", `{"steps":[{"id":"all","tool":"word","for_each":{"in":` + listOf(10_000) + `}},{"id":"b","tool":"say","arguments":{"x":"$ref:all[*].data"}}]}`, large, 0, `the made-up results of all items of "all" are too large together`},
		{"large arguments", `{"steps":[{"id":"a","tool":"word"},{"id":"b","tool":"say","for_each":{"in":` + listOf(10_000) + `},"arguments":{"x":["$ref:a","$ref:a","$ref:a"]}}]}`, large, 0, "there is too much to resolve: more than 256 MiB of arguments and lists"},
	} {
		began := time.Now()
		d := of(t, c.body, c.tools)
		t.Log(c.name, time.Since(began))
		require.Empty(t, d.Problems, c.name)
		require.Equal(t, c.cut, d.Cut, c.name)
		if c.cut != "" {
			require.Empty(t, d.Status, c.name)
			require.Empty(t, d.Results, c.name)
			continue
		}
		require.Equal(t, c.calls, d.Calls, c.name)
		require.Equal(t, outcome.Succeeded, d.Status, c.name)
	}
}

// The steps of a composite are called within it: with all its items, and with what the input holds.
func TestAPlanOfAStep(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps": [
		{"id": "s", "tool": "search", "arguments": {}},
		{"id": "each", "for_each": {"in": "$ref:s.pages", "as": "page"}, "arguments": {"url": "$ref:page.url", "n": 2},
			"plan": {"steps": [
				{"id": "get", "tool": "fetch", "arguments": {"url": "$input.url"}},
				{"id": "tell", "tool": "one", "arguments": {"n": "$input.n"}},
				{"id": "both", "value": ["$ref:get.text", "$ref:tell", "$input.url"]}], "output": "$ref:both"}},
		{"id": "w", "tool": "say", "arguments": {"all": "$ref:each[*].data"}}], "output_steps": ["w"]}`, tools)
	require.Empty(t, d.Problems)
	require.Empty(t, d.Cut)
	require.Equal(t, 8, d.Calls)
	require.Equal(t, [][]string{{"s"}, {"each"}, {"w"}}, d.Waves)
	each := stepOf(t, d, "each")
	require.Equal(t, outcome.StepSucceeded, each.Status)
	require.Len(t, each.Steps, 3)
	get, tell, both := each.Steps[0], each.Steps[1], each.Steps[2]
	require.Equal(t, []string{"each/get", "each/tell", "each/both"}, []string{get.ID, tell.ID, both.ID})
	require.Equal(t, []string{"each/get", "each/tell"}, both.DependsOn)
	require.Equal(t, 3, get.Calls)
	require.JSONEq(t, `{"url":"a"}`, string(get.Arguments))
	require.JSONEq(t, `{"n":2}`, string(tell.Arguments))
	require.JSONEq(t, `["",1,"a"]`, string(both.Value))
	require.JSONEq(t, `{"all":[["",1,"a"],["",1,"b"],["",1,"c"]]}`, string(stepOf(t, d, "w").Arguments))
}

// What is wrong within a composite has its place in the document, and is certain as far as the input is.
func TestAPlanOfAStepThatFails(t *testing.T) {
	t.Parallel()
	inner := func(n string) string {
		return `{"steps": [{"id": "r", "tool": "rate"}, {"id": "p", "arguments": {"n": ` + n + `},
			"plan": {"steps": [{"id": "a", "tool": "one", "arguments": {"n": "$input.n"}}]}}]}`
	}
	d := of(t, inner("1"), tools)
	require.Equal(t, []string{"p", "p/a"}, []string{d.Errors[0].Step, d.Errors[1].Step})
	require.Equal(t, fault.SubPlanFailed, d.Errors[0].Code)
	require.Empty(t, d.Doubts)
	d = of(t, inner(`"$ref:r"`), tools)
	require.Empty(t, d.Errors)
	require.Len(t, d.Doubts, 1)
	require.Equal(t, "/steps/1/plan/steps/0/arguments/n", d.Doubts[0].Path)
	require.Equal(t, "p/a", d.Doubts[0].Step)
	d = of(t, `{"steps": [{"id": "p", "plan": {"steps": [{"id": "r", "tool": "rate"}]}},
		{"id": "b", "tool": "one", "arguments": {"n": "$ref:p.r"}}]}`, tools)
	require.Empty(t, d.Errors, "what is called within is made up, so what comes of it is")
	require.Len(t, d.Doubts, 1)
}

// What rounds of an agent may ask people is told before it runs: of each round, by its planner and guards, and by the
// contracts of what it can call, through agents and templates below.
func TestWhatRoundsMayAsk(t *testing.T) {
	t.Parallel()
	const tools = `[{"name": "plans"}, {"name": "pay", "x-orchestration": {"approval": "$args.amount > 100"}}, {"name": "wipe", "x-orchestration": {"approval": "always"}},
		{"name": "book", "x-orchestration": {"asks": true}}, {"name": "free"},
		{"name": "t", "inputSchema": {"type": "object"}, "plan": {"steps": [{"id": "i", "tool": "wipe"}]}},
		{"name": "clerk", "agent": {"planner": {"tool": "plans"}, "tools": ["book", "free"], "approval": "plan"}},
		{"name": "desk", "agent": {"planner": {"tool": "plans"}, "tools": ["pay", "t", "ask", {"unfold": "more", "description": "M.", "tools": ["clerk"]}],
			"guards": [{"on": "output", "when": "$round > 0", "else": "ask"}, {"on": "call", "when": "$round > 0"}]}},
		{"name": "quiet", "agent": {"planner": {"tool": "plans"}, "tools": ["free"]}}]`
	d := of(t, `{"steps": [{"id": "a", "tool": "desk"}, {"id": "b", "tool": "quiet"}]}`, tools)
	require.Empty(t, d.Problems)
	var got []string
	for _, n := range d.Notices {
		require.Equal(t, outcome.NoticeQuestion, n.Kind, n.Message)
		got = append(got, n.Tool+": "+n.Message)
	}
	require.Equal(t, []string{
		"desk: its planner may ask a person, who is then waited for",
		"desk: its guards may ask a person, about: output",
		"pay: its calls wait for a person's approval, where $args.amount > 100, in rounds of the agent desk",
		"clerk: a person approves of each of its rounds before anything of it runs, in rounds of the agent desk",
		"wipe: its calls wait for a person's approval, in rounds of the agent desk",
		"book: may ask a person in the middle of a call, in rounds of the agent desk",
	}, got)
}

// An agent that the plan defines itself is one call, as that of one of the registry is, and what is wrong with it is told
// where it stands in the plan.
func TestAnAgentOfThePlan(t *testing.T) {
	t.Parallel()
	d := of(t, `{"steps": [{"id": "s", "tool": "search"}, {"id": "a", "agent": {"planner": {"tool": "say"}, "tools": ["fetch"], "inputSchema": {"type": "object", "required": ["of"]},
		"outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}, "arguments": {"of": "$ref:s.pages"}},
		{"id": "b", "tool": "one", "arguments": {"n": "$ref:a.n"}}]}`, tools)
	require.Empty(t, d.Problems)
	require.Equal(t, [][]string{{"s"}, {"a"}, {"b"}}, d.Waves)
	require.Equal(t, 3, d.Calls)
	a := stepOf(t, d, "a")
	require.Equal(t, "=a", a.Tool)
	require.JSONEq(t, `{"of":[{"url":"a"},{"url":"b"},{"url":"c"}]}`, string(a.Arguments))
	d = of(t, `{"steps": [{"id": "a", "agent": {"planner": {"tool": "sey"}, "tools": ["fetsh"], "max_rounds": -1}, "arguments": {}}, {"id": "b", "tool": "one", "arguments": {"n": 1}}]}`, tools)
	var places []string
	for _, p := range d.Problems {
		places = append(places, p.Path)
	}
	require.ElementsMatch(t, []string{"/steps/0/agent/planner/tool", "/steps/0/agent/tools/0", "/steps/0/agent/max_rounds", "/steps/1/arguments/n"}, places)
	d = of(t, `{"steps": [{"id": "a", "agent": {"planner": {"tool": "say"}, "tools": [{"group": "web"}, "fetsh"]}}]}`, tools)
	require.Empty(t, d.Problems, "what is in a group is not known here, and so are the tools")
}
