package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// What is wrong with values is said all at once, each at its place.
func TestValueProblems(t *testing.T) {
	t.Parallel()
	const a = `{"id":"a","tool":"echo"},{"id":"e","tool":"echo","for_each":{"in":[1]}},`
	tools := corpusTools(t)
	for name, c := range map[string]struct {
		step string
		want []string // none: accepted
	}{
		"a number":             {`{"id":"v","value":1}`, nil},
		"false":                {`{"id":"v","value":false}`, nil},
		"text":                 {`{"id":"v","value":"of ${ref:a.x}"}`, nil},
		"options":              {`{"id":"v","value":[],"if":"$ref:a","depends_on":["a"],"optional":true,"for_each":{"in":"$ref:a"}}`, nil},
		"options that are nil": {`{"id":"v","value":[],"tool":null,"arguments":null,"timeout":null,"retry":null}`, nil},
		"null":                 {`{"id":"v","value":null}`, []string{"invalid_id /steps/2"}},
		"with everything":      {`{"id":"v","value":1,"tool":"nope","arguments":{},"timeout":"1s","retry":{"max_attempts":2}}`, []string{"invalid_value /steps/2/tool", "invalid_value /steps/2/arguments", "invalid_value /steps/2/timeout", "invalid_value /steps/2/retry"}},
		"labels":               {`{"id":"v","value":1,"name":"total","calc":"1","action":"add"}`, nil},
		"an unknown step":      {`{"id":"v","value":["$ref:b.x",{"$calc":"$ref:c + $ref:a"}]}`, []string{"unknown_ref /steps/2/value/0", "unknown_ref /steps/2/value/1/$calc"}},
		"itself":               {`{"id":"v","value":{"$calc":"$ref:v + 1"}}`, []string{"cycle /steps/2/value/$calc"}},
		"a cycle":              {`{"id":"v","value":{"x":{"$calc":"1 + $ref:w"}}},{"id":"w","value":"$ref:v"}`, []string{"cycle /steps/2/value/x/$calc"}},
		"entries":              {`{"id":"v","value":{"$calc":"sum($ref:e.total)"}}`, []string{"invalid_ref /steps/2/value/$calc"}},
		"an item":              {`{"id":"v","value":{"$calc":"$ref:item.x * 2"},"for_each":{"in":"$ref:a"}}`, nil},
		"an item's end":        {`{"id":"v","value":{"$calc":"$status:item"},"for_each":{"in":"$ref:a"}}`, []string{"invalid_ref /steps/2/value/$calc"}},
		"an item elsewhere":    {`{"id":"v","value":{"$calc":"$ref:item"}}`, []string{"unknown_ref /steps/2/value/$calc"}},
		"not a text":           {`{"id":"v","value":[{"$calc":5},{"$calc":null},{"$calc":["$ref:a"]}]}`, []string{"invalid_value /steps/2/value/0/$calc", "invalid_value /steps/2/value/1/$calc", "invalid_value /steps/2/value/2/$calc"}},
		"a minus in a path":    {`{"id":"v","value":{"$calc":"$ref:a.x-5"}}`, []string{"invalid_condition /steps/2/value/$calc"}},
		"another language's":   {`{"id":"v","value":[{"$calc":"{{a.x}} + 1"},"{{a.x}}"]}`, []string{"invalid_condition /steps/2/value/0/$calc", "invalid_ref /steps/2/value/1"}},
		"a reference in a key": {`{"id":"v","value":{"$ref:a":1}}`, []string{"invalid_ref /steps/2/value/$ref:a"}},
		"not judged by types":  {`{"id":"v","value":"$ref:s.nope"},{"id":"s","tool":"add","arguments":{"a":1,"b":2}},{"id":"t","tool":"add","arguments":{"a":"$ref:v.x","b":1}}`, nil},
		"$calc elsewhere":      {`{"id":"t","tool":"echo","arguments":{"x":{"$calc":"1 +"},"$calc":5}}`, nil},
		"calc for value":       {`{"id":"t","calc":"$ref:a.x * 2"}`, []string{"unknown_field /steps/2/calc"}},
		"value at the top":     {`{"id":"t","tool":"echo"}],"value":[1`, []string{"unknown_field /value"}},
	} {
		p, r := plan.Parse([]byte(steps(a+c.step)), tools)
		require.ElementsMatch(t, c.want, found(r.Problems), "%s: %v", name, r.Problems)
		require.Equal(t, c.want == nil, p != nil, name)
		if p != nil && strings.Contains(c.step, `"value"`) && name != "$calc elsewhere" {
			require.Equal(t, 2, p.Language, name)
			require.True(t, p.Steps[2].Value, name)
			require.Empty(t, p.Steps[2].Tool, name)
		}
	}
}

// A step says what it is worth, and the hint writes it where something else stands there.
func TestValueHints(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		`{"id":"v","value":{"$calc":"$ref:a.x-5"}}`:                  "write `$ref:a.x - 5` with spaces for a difference, or `$ref:a[\"x-5\"]` for the key",
		`{"id":"v","value":{"$calc":"{{a.x}} * 2"}}`:                 `write {"$calc": "$ref:a.x * 2"}`,
		`{"id":"v","value":{"$calc":"a.x * 2"}}`:                     `write {"$calc": "$ref:a.x * 2"}`,
		`{"id":"v","value":{"$calc":7}}`:                             `write 7 as it is, or "7" in an expression`,
		`{"id":"v","calc":"$ref:a.x * 2"}`:                           `write "value": {"$calc": "$ref:a.x * 2"}`,
		`{"id":"v","expression":"$ref:a.x * 2","name":"the double"}`: `write "value": {"$calc": "$ref:a.x * 2"}`,
		`{"id":"v","value":null}`:                                    `say which tool it calls: "tool": "…"; a value of null is written "value": {"$calc": "null"}`,
		`{"id":"v","approval":true}`:                                 `put the approval into the step that it is for; to ask by itself write "tool": "ask", "arguments": {"question": "…"}, without it`,
		`{"id":"v","value":1,"arguments":{}}`:                        "leave it out: a value calls nothing, and what it is made of stands in it",
	} {
		p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},`+step)), nil)
		require.Nil(t, p, step)
		require.Len(t, r.Problems, 1, "%s: %v", step, r.Problems)
		require.Equal(t, want, r.Problems[0].Hint, step)
	}
	for step, want := range map[string]string{
		`{"id":"v","tool":"echo","arguments":{"x":{"$calc":"$ref:a.x * 2"}}}`: `let a step compute it, {"id": "…", "value": {"$calc": "$ref:a.x * 2"}}, and refer to that`,
		`{"id":"v","tool":"echo","arguments":{"x":{"$error":"a"}}}`:           `write "$error:a"`,
		`{"id":"v","value":[{"$status":"a"}]}`:                                `write "$status:a"`,
		`{"id":"v","value":{"$calc":"1","unit":"kg"}}`:                        `to compute write {"$calc": "…"} and nothing else in the object; for the key write "$$calc"`,
		`{"id":"v","value":"$ref:a.x * 2"}`:                                   `to compute write {"$calc": "$ref:a.x * 2"}`,
		`{"id":"v","tool":"echo","arguments":{"x":"$ref:a.x * 2"}}`:           `let a step compute it, {"id": "…", "value": {"$calc": "$ref:a.x * 2"}}, and refer to that`,
	} {
		p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},`+step)), nil)
		require.NotNil(t, p, "%s: %v", step, r.Problems)
		hints := make([]string, len(r.Warnings))
		for i, w := range r.Warnings {
			hints[i] = w.Hint
		}
		require.Contains(t, hints, want, step)
	}
}

// A path into a value without parts fails the step in a calculation as it does elsewhere; before ?? it finds nothing.
func TestPathsIntoScalarsInCalculations(t *testing.T) {
	t.Parallel()
	const of = `{"items":{"p":5},"n":3,"list":[{"x":1},{"y":2}]}`
	for calc, want := range map[string]string{
		"sum($ref:a.items[*].price)":       "unresolved_ref",
		"sum($ref:a.n.price) + 1":          "unresolved_ref",
		"sum($ref:a.list[*].x.y)":          "unresolved_ref",
		"$ref:a.n.price == null":           "unresolved_ref",
		"false ? $ref:a.n.price : 1":       "1",
		"($ref:a.n.price ?? 0) + 1":        "1",
		"sum($ref:a.items[*].price) ?? 7":  "0",
		"sum($ref:a.list[*].x)":            "1",
		"$ref:a.m":                         "null",
		"sum($ref:a.m) + 1":                "1",
		"($ref:a.n.x ?? 1) + $ref:a.n.x":   "unresolved_ref",
		"$ref:a.items.p + $ref:a.n":        "8",
		"truthy($ref:a.n.price ?? $ref:a)": "true",
	} {
		got, err := derive(t, `{"id":"v","value":{"$calc":`+quoted(calc)+`}}`, of, 1000)
		if err != nil {
			got = string(err.Code)
		}
		require.Equal(t, want, got, calc)
	}
}

// An argument that stands beside the arguments, and is called value, is no value.
func TestAnArgumentCalledValue(t *testing.T) {
	t.Parallel()
	tools := catalog{"json_get": schema(t, `{"type":"object","properties":{"value":{}},"required":["value"]}`)}
	_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"json_get","value":{"x":1}}`)), tools)
	require.Equal(t, []string{"invalid_value /steps/0/tool"}, found(r.Problems))
	require.Equal(t, `if it is an argument, write "arguments": {"value": {"x":1}}`, r.Problems[0].Hint)
}

// A plan of before is read as it was: "value" was a field that nobody knew.
func TestValueOfLanguage1(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		steps(`{"id":"a","tool":"echo","value":{"$calc":"$ref:nobody"}}`),
		`{"value":1,"steps":[{"id":"a","tool":"echo","arguments":{"x":{"$calc":"1 +","$$calc":2}}}]}`,
	} {
		p, r := plan.ParseLimited([]byte(text), nil, plan.Limits{Language1: true})
		require.NotNil(t, p, "%s: %v", text, r.Problems)
		require.Equal(t, 1, p.Language)
		require.Equal(t, "echo", p.Steps[0].Tool)
	}
	p, _ := plan.Parse([]byte(steps(`{"id":"a","tool":"echo","arguments":{"$$calc":{"$calc":"1"}}}`)), nil)
	require.Equal(t, 1, p.Language)
	args, err := p.Arguments(0, nil)
	require.Nil(t, err)
	require.Equal(t, `{"$$calc":{"$calc":"1"}}`, string(args), "in arguments it is data")
}

// derive returns what the last step of a plan comes to, whose first step returned a value.
func derive(t *testing.T, step, of string, room int64) (string, *fault.Error) {
	t.Helper()
	p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},{"id":"f","tool":"echo"},`+step)), nil)
	require.NotNil(t, p, "%s: %v", step, r.Problems)
	effort := plan.FullEffort
	fates := func(step int) plan.Fate {
		if step == 1 {
			return plan.Fate{Status: "failed", Error: fault.New(fault.ToolFailed, "no")}
		}
		return plan.Fate{Status: "succeeded"}
	}
	v, err := p.NewResolver().Fates(fates).Derive(2, room, &effort, func(dep int) ([]byte, bool) { return []byte(of), dep == 0 })
	return string(v), err
}

func TestDerive(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", 40)
	for step, want := range map[string]string{
		`"value":{"$calc":"$ref:a.n * 2"}`:                                             `0.2`,
		`"value":{"$calc":"0.1 + 0.2"}`:                                                `0.3`,
		`"value":{"$calc":"$ref:a.nope * 2"}`:                                          `null`,
		`"value":{"$calc":"sum($ref:a.l[*].p)"}`:                                       `3.5`,
		`"value":{"$calc":"round(sum($ref:a.l[*].p) * 1.19, 2)"}`:                      `4.17`,
		`"value":{"$calc":"product($ref:a.none)"}`:                                     `1`,
		`"value":{"$calc":"min($ref:a.none)"}`:                                         `null`,
		`"value":{"$calc":"1.50"}`:                                                     `1.5`,
		`"value":{"$calc":"$ref:a.raw"}`:                                               `1.50`,
		`"value":{"$calc":"` + digits + ` + 1"}`:                                       `1` + strings.Repeat("0", 40),
		`"value":{"$calc":"$ref:f ?? 3"}`:                                              `3`,
		`"value":{"$calc":"$status:f == 'failed' ? upper($ref:a.s) : 1"}`:              `"É"`,
		`"value":{"$calc":"[$ref:a.n, 1.0, 'x', null]"}`:                               `[0.1,1,"x",null]`,
		`"value":{"a":[{"$calc":"1+1"},"$ref:a.n"],"b":"of ${ref:a.n}"}`:               `{"a":[2,0.1],"b":"of 0.1"}`,
		`"value":{"$$calc":{"\u0024calc":"2 * 3"},"$$ref":1,"$calc2":{"x":"$$ref:a"}}`: `{"$calc":6,"$ref":1,"$calc2":{"x":"$ref:a"}}`,
		`"value":{"$ref":"a.l"}`:                                                       `[{"p":1.5},{"p":2},{}]`,
		"\"value\": { \"a b\" :\n [ 1 , \"\\\" x\" ,\t\"$ref:a.n\" ] , \"c\" : \" ${ref:a.n} \\\\\" , \"d\": \" \" }": `{"a b":[1,"\" x",0.1],"c":" 0.1 \\","d":" "}`,
		`"value":{"$text":"$ref:a"}`:                                    `"$ref:a"`,
		`"value":"$error:f.code"`:                                       `"tool_failed"`,
		`"value":{"$calc":"1","x":2}`:                                   `{"$calc":"1","x":2}`,
		`"value":"$ref:i.p","for_each":{"in":"$ref:a.l","as":"i"}`:      `[{"index":0,"status":"ok","data":1.5},{"index":1,"status":"ok","data":2},{"index":2,"status":"ok","data":null}]`,
		`"value":{"$calc":"$ref:item * $ref:a.n"},"for_each":{"in":[]}`: `[]`,
	} {
		got, err := derive(t, `{"id":"v",`+step+`}`, `{"n":0.1,"raw":1.50,"s":"é","l":[{"p":1.5},{"p":2},{}]}`, plan.MaxValues)
		require.Nil(t, err, step)
		require.Equal(t, want, got, step)
	}
}

func TestDeriveFails(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, c := range []struct {
		step, of string
		code     fault.Code
		message  string
	}{
		{`"value":{"$calc":"$ref:a + 1"}`, `"1"`, fault.ConditionFailed, "is a string"},
		{`"value":{"x":{"$calc":"1 / $ref:a"}}`, `0`, fault.ConditionFailed, "division by zero"},
		{`"value":{"$calc":"$ref:a * $ref:a"}`, `1e4000`, fault.ConditionFailed, "10^6144"},
		{`"value":{"$calc":"len($ref:a)"}`, big, fault.ConditionFailed, "more than 1048576 bytes"},
		{`"value":{"$calc":"len($ref:a)"}`, `[0` + strings.Repeat(",0", 10_000) + `]`, fault.ConditionFailed, "more than 10000 items"},
		{`"value":{"$calc":"$ref:i + 1"},"for_each":{"in":"$ref:a","as":"i"}`, `[1,2,"three"]`, fault.ConditionFailed, "item 2: "},
		{`"value":"$ref:i","for_each":{"in":"$ref:a","as":"i"}`, `{"x":1}`, fault.UnresolvedRef, "there is no list"},
		{`"value":"$ref:a.x.y"`, `{"x":1}`, fault.UnresolvedRef, "which has no key"},
		{`"value":["$ref:a"]`, strings.Repeat("[", 64) + strings.Repeat("]", 64), fault.TooLarge, "nested more than 64 deep"},
		{`"value":["$ref:a","$ref:a"]`, big, fault.TooLarge, "there is room for 2000000"},
		{`"value":["$ref:i"],"for_each":{"in":["$ref:a","$ref:a"],"as":"i"}`, big, fault.TooLarge, "item 1: the value would have"},
	} {
		_, err := derive(t, `{"id":"v",`+c.step+`}`, c.of, 2_000_000)
		require.NotNil(t, err, c.step)
		require.Equal(t, c.code, err.Code, "%s: %s", c.step, err)
		require.Contains(t, err.Message, c.message, c.step)
	}
}

// TestValueBombs: whatever a plan asks for, one value takes a bounded time and is bounded in memory.
func TestValueBombs(t *testing.T) {
	t.Parallel()
	list := `[1` + strings.Repeat(",1", 9_000) + `]`
	long := `[1] in [` + strings.TrimSuffix(strings.Repeat("$ref:a,", 90), ",") + `]`
	for name, step := range map[string]string{
		"one that looks at the same again and again": `"value":{"$calc":"` + long + `"}`,
		"many of them":         `"value":[` + strings.TrimSuffix(strings.Repeat(`{"$calc":"sum($ref:a, $ref:a, $ref:a) + product($ref:a)"},`, 2_000), ",") + `]`,
		"one for each of many": `"value":{"$calc":"sum($ref:a, $ref:a) + $ref:i"},"for_each":{"in":"$ref:a","as":"i"}`,
	} {
		_, err := derive(t, `{"id":"v",`+step+`}`, list, plan.MaxValues)
		require.NotNil(t, err, name)
		require.Contains(t, []fault.Code{fault.ConditionFailed, fault.TooLarge}, err.Code, name)
	}
	for name, step := range map[string]string{
		"too many nodes":         `{"$calc":"1` + strings.Repeat("+1", 200) + `"}`,
		"too many brackets":      `{"$calc":"` + strings.Repeat("(", 600) + `1` + strings.Repeat(")", 600) + `"}`,
		"too long a text":        `{"$calc":"'` + strings.Repeat("x", 20_000) + `'"}`,
		"a pattern that repeats": `{"$calc":"$ref:a matches '(a{1000}){1000}'"}`,
	} {
		_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},{"id":"v","value":`+step+`}`)), nil)
		require.Equal(t, []string{"invalid_condition /steps/1/value/$calc"}, found(r.Problems), name)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"$calc":"1"},`, 5_000), ",")
	_, r := plan.Parse([]byte(steps(`{"id":"v","value":[`+many+`]}`)), nil)
	require.Equal(t, []string{"limit_exceeded /steps/0/value"}, found(r.Problems))
}

// TestDeriveSaysWhatItTook: who gives less effort learns that it was not enough, and the same from any resolver.
func TestDeriveSaysWhatItTook(t *testing.T) {
	t.Parallel()
	p, _ := plan.Parse([]byte(steps(`{"id":"a","tool":"echo"},{"id":"v","value":[{"$calc":"sum($ref:a.x)"},"$ref:a.y"]}`)), nil)
	result := func(int) ([]byte, bool) { return []byte(`{"x":[1,2,3],"y":"` + strings.Repeat("y", 1000) + `"}`), true }
	took := plan.FullEffort
	_, err := p.NewResolver().Derive(1, 1<<20, &took, result)
	require.Nil(t, err)
	exact := plan.Effort{Bytes: plan.FullEffort.Bytes - took.Bytes, Work: plan.FullEffort.Work - took.Work}
	for _, c := range []struct {
		of    plan.Effort
		spent bool
	}{{exact, false}, {plan.Effort{Bytes: exact.Bytes - 1, Work: exact.Work}, true}, {plan.Effort{Bytes: exact.Bytes, Work: exact.Work - 1}, true}} {
		effort := c.of
		_, err := p.NewResolver().Derive(1, 1<<20, &effort, result)
		require.Equal(t, c.spent, effort.Spent(), fmt.Sprint(c.of))
		require.Equal(t, c.spent, err != nil)
	}
}

// A dependency is looked for through values, and a reference in $calc is one.
func TestValuesCarryData(t *testing.T) {
	t.Parallel()
	for step, want := range map[string][]string{
		`{"id":"v","value":{"id":"$ref:s.hits[0].document_id"}},{"id":"f","tool":"fetch","arguments":{"document_id":"$ref:v.id"}}`: {},
		`{"id":"v","value":{"$calc":"$ref:s.hits[0].document_id"}},{"id":"f","tool":"fetch","arguments":{"document_id":"$ref:v"}}`: {},
		`{"id":"v","value":{"$calc":"1"},"depends_on":["s"]},{"id":"f","tool":"fetch","arguments":{"document_id":"$ref:v"}}`:       {"missing_dependency /steps/2/tool"},
	} {
		_, r := plan.Parse([]byte(steps(`{"id":"s","tool":"search"},`+step)), dependentTools(t))
		require.Equal(t, want, found(r.Problems), "%s: %v", step, r.Problems)
	}
}
