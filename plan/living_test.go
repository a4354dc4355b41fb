package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// TestFieldsOfLivingRuns: each field that came with the second version of the language, with a value that is none of
// its, where it does not belong, and beside what it can't stand with. Each is one problem in its place, with a hint.
func TestFieldsOfLivingRuns(t *testing.T) {
	t.Parallel()
	top := func(field string) string { return `{` + field + `,"steps":[{"id":"a","tool":"echo"}]}` }
	step := func(field string) string {
		return steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo",` + field + `}`)
	}
	inner := func(field string) string { return steps(`{"id":"p","plan":` + top(field) + `}`) }
	of := func(field string) string {
		return steps(`{"id":"p",` + field + `,"plan":` + steps(`{"id":"a","tool":"echo"}`) + `}`)
	}
	approval := func(field string) string { return step(`"approval":{"ask":"Go?",` + field + `}`) }
	for text, want := range map[string]string{
		step(`"if":5`):                "invalid_value /steps/1/if",
		step(`"if":true`):             "invalid_value /steps/1/if",
		step(`"if":["$ref:a"]`):       "invalid_value /steps/1/if",
		step(`"if":{"==":[1,2]}`):     "invalid_value /steps/1/if",
		step(`"if":""`):               "invalid_condition /steps/1/if",
		step(`"if":"$ref:a >"`):       "invalid_condition /steps/1/if",
		step(`"if":"$ref:a.x-5 > 1"`): "invalid_condition /steps/1/if",
		step(`"if":"$ref:z"`):         "unknown_ref /steps/1/if",
		step(`"if":"$status:z"`):      "unknown_ref /steps/1/if",
		step(`"if":"$ref:b"`):         "cycle /steps/1/if",
		top(`"if":"1 == 1"`):          "unknown_field /if",
		inner(`"if":"1 == 1"`):        "unknown_field /steps/0/plan/if",

		top(`"value":1`):   "unknown_field /value",
		inner(`"value":1`): "unknown_field /steps/0/plan/value",

		step(`"approval":5`):                              "invalid_value /steps/1/approval",
		step(`"approval":"yes"`):                          "invalid_value /steps/1/approval",
		step(`"approval":[]`):                             "invalid_value /steps/1/approval",
		step(`"approval":{"ask":5}`):                      "invalid_value /steps/1/approval/ask",
		step(`"approval":{"ask":"$ref:z?"}`):              "invalid_ref /steps/1/approval/ask",
		approval(`"timeout":"soon"`):                      "invalid_value /steps/1/approval/timeout",
		approval(`"timeout":"1s","on_timeout":"explode"`): "invalid_value /steps/1/approval/on_timeout",
		top(`"approval":5`):                               "invalid_value /approval",
		top(`"approval":{"ask":"$ref:a?"}`):               "invalid_value /approval/ask",
		inner(`"approval":true`):                          "invalid_value /steps/0/plan/approval",

		of(`"partial":5`):       "invalid_value /steps/0/partial",
		step(`"partial":true`):  "invalid_value /steps/1/partial",
		top(`"partial":true`):   "unknown_field /partial",
		inner(`"partial":true`): "unknown_field /steps/0/plan/partial",

		top(`"repeat":{"max":2}`):                "unknown_field /repeat",
		inner(`"repeat":{"max":2}`):              "unknown_field /steps/0/plan/repeat",
		top(`"until":"$last"`):                   "unknown_field /until",
		step(`"repeat":{"max":2,"every":"-1s"}`): "invalid_value /steps/1/repeat/every",

		top(`"concurrency":0`):     "invalid_value /concurrency",
		top(`"concurrency":1.5`):   "invalid_value /concurrency",
		top(`"concurrency":10001`): "invalid_value /concurrency",
		step(`"concurrency":2`):    "unknown_field /steps/1/concurrency",

		top(`"output":"$ref:z"`):  "unknown_ref /output",
		step(`"output":"$ref:a"`): "unknown_field /steps/1/output",

		top(`"open":5`):                       "invalid_value /open",
		top(`"open":"yes"`):                   "invalid_value /open",
		inner(`"open":"yes"`):                 "invalid_value /steps/0/plan/open",
		step(`"open":true`):                   "unknown_field /steps/1/open",
		top(`"open_for":"1s"`):                "invalid_value /open_for",
		top(`"open":false,"open_for":"1s"`):   "invalid_value /open_for",
		top(`"open":true,"open_for":5`):       "invalid_value /open_for",
		top(`"open":true,"open_for":"0s"`):    "invalid_value /open_for",
		top(`"open":true,"open_for":"9999h"`): "invalid_value /open_for",
		step(`"open_for":"1s"`):               "unknown_field /steps/1/open_for",

		top(`"template":"x"`):   "unknown_field /template",
		inner(`"template":"x"`): "unknown_field /steps/0/plan/template",
		step(`"template":"x"`):  "unknown_field /steps/1/template",
		step(`"template":5`):    "unknown_field /steps/1/template",
		step(`"input":{"x":1}`): "unknown_field /steps/1/input",
	} {
		p, r := plan.Parse([]byte(text), nil)
		require.Nil(t, p, text)
		require.Equal(t, []string{want}, found(r.Problems), "%s: %v", text, r.Problems)
		require.NotEmpty(t, r.Problems[0].Hint, text)
	}
	// What is not known is ignored with a warning, as elsewhere, where it decides nothing.
	for text, want := range map[string]string{
		approval(`"colour":"red"`):                   "unknown_field /steps/1/approval/colour",
		step(`"repeat":{"max":2,"colour":"red"}`):    "unknown_field /steps/1/repeat/colour",
		step(`"for_each":{"in":[1],"colour":"red"}`): "unknown_field /steps/1/for_each/colour",
		inner(`"colour":"red"`):                      "unknown_field /steps/0/plan/colour",
	} {
		p, r := plan.Parse([]byte(text), nil)
		require.NotNil(t, p, "%s: %v", text, r.Problems)
		require.Equal(t, []string{want}, found(r.Warnings), text)
	}
	_, r := plan.Parse([]byte(`{"open":"x","concurrency":0,"output":"$ref:z","if":"1","steps":[{"id":"b","tool":"echo","if":5,"approval":5,"partial":true,"repeat":3,"open":true}]}`), nil)
	require.ElementsMatch(t, []string{
		"invalid_value /open", "invalid_value /concurrency", "unknown_ref /output", "unknown_field /if", "invalid_value /steps/0/if",
		"invalid_value /steps/0/approval", "invalid_value /steps/0/partial", "invalid_value /steps/0/repeat", "unknown_field /steps/0/open",
	}, found(r.Problems), "all at once: %v", r.Problems)
}

// TestWhatGuardsAStepIsNotIgnoredInItsOptions: a condition or an approval that stands in a for_each or a repeat would
// decide nothing, and the step would run that was not to.
func TestWhatGuardsAStepIsNotIgnoredInItsOptions(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]struct{ each, loop string }{
		`"approval":true`:      {`write "approval": true beside "for_each"`, `write "approval": true beside "repeat"`},
		`"confirm":"Sure?"`:    {`write "approval": true beside "for_each"`, `write "approval": true beside "repeat"`},
		`"if":"$ref:item > 1"`: {"let the step that makes the list leave the others out", ""},
	} {
		for kind, hint := range map[string]string{`"for_each":{"in":[1],`: c.each, `"repeat":{"max":2,`: c.loop} {
			if hint == "" { // of a loop it is a slip of until
				continue
			}
			text := []byte(steps(`{"id":"a","tool":"echo",` + kind + field + `}}`))
			p, r := plan.Parse(text, nil)
			require.Nil(t, p, "%s", text)
			require.Len(t, r.Problems, 1, "%s: %v", text, r.Problems)
			require.Equal(t, "unknown_field", string(r.Problems[0].Code))
			require.Contains(t, r.Problems[0].Hint, hint, "%s", text)
			require.NotNil(t, plan.Accepted(text, nil), "a run of before goes on")
		}
	}
	p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"echo","for_each":{"in":[1],"approval":null}}`)), nil)
	require.NotNil(t, p, "%v", r.Problems)
}
