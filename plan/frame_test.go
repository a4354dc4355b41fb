package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// within puts a step into so many plans of steps, whose ids have so many bytes.
func within(plans, idBytes int, each string) string {
	body := `{"id":"a","tool":"t"}`
	for i := range plans {
		id := fmt.Sprintf("%0*d", idBytes, i)
		body = fmt.Sprintf(`{"id":%q,%s"plan":{"steps":[%s]}}`, id, each, body)
	}
	return `{"steps":[` + body + `]}`
}

// TestHowDeepPlansMayBe: 8 within each other, and 512 bytes of ids down to a step, the numbers of items among them.
func TestHowDeepPlansMayBe(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Code{
		within(8, 4, ""):                        "",
		within(9, 4, ""):                        fault.LimitExceeded,
		within(8, 60, ""):                       "",
		within(8, 64, ""):                       fault.LimitExceeded,
		within(8, 60, `"for_each":{"in":[1]},`): fault.LimitExceeded,
	} {
		p, report := plan.Parse([]byte(body), nil)
		if want == "" {
			require.NotNil(t, p, "%v", report.Problems)
			require.Equal(t, []string{plan.Language2}, p.Needs())
			continue
		}
		require.Nil(t, p)
		require.Equal(t, want, report.Problems[0].Code, "%v", report.Problems)
	}
}

// TestWhatMayStandBesideAPlan, and what is seen within it: each wrong one is named in its place.
func TestWhatMayStandBesideAPlan(t *testing.T) {
	t.Parallel()
	const steps = `"plan":{"steps":[{"id":"b","tool":"t","arguments":{"x":"$input.x"}}]}`
	for beside, want := range map[string]string{
		`"id":"p","for_each":{"in":[1]},"if":"$status:a == 'succeeded'","approval":{"ask":"Now?"},"timeout":"1s","optional":true,"partial":true,"depends_on":["a"],"arguments":{"x":"$ref:item"},` + steps: "",
		`"id":"p","arguments":{"x":"$ref:a.x"},` + steps:                               "",
		`"id":"p","retry":{"max_attempts":2},` + steps:                                 "invalid_value /steps/1/retry",
		`"id":"p","tool":"t",` + steps:                                                 "invalid_value /steps/1/plan",
		`"id":"p","tool":"t","partial":true`:                                           "invalid_value /steps/1/partial",
		`"id":"p","plan":"think"`:                                                      "invalid_value /steps/1/plan",
		`"id":"p","plan":{"steps":[]}`:                                                 "empty_plan /steps/1/plan",
		`"id":"p","plan":{"steps":[{"id":"b","tool":"t","arguments":{"x":"$ref:a"}}]}`: "unknown_ref /steps/1/plan/steps/0/arguments/x",
		`"id":"p","plan":{"steps":[{"id":"b","tool":"t"},{"id":"b","tool":"t"}]}`:      "duplicate_step /steps/1/plan/steps/1/id",
		`"id":"p","tool":"t","arguments":{"x":"$input.x"}`:                             "invalid_ref /steps/1/arguments/x",
		`"id":"p","repeat":{"max":2},` + steps:                                         "",
		`"id":"p","plan":{"concurrency":0,"steps":[{"id":"b","tool":"t"}]}`:            "invalid_value /steps/1/plan/concurrency",
		`"id":"p","plan":{"on_failure":"stop","on_missing":"error","schedule":"waves","output":"$input","steps":[{"id":"b","tool":"t"}]}`: "",
	} {
		p, report := plan.Parse([]byte(`{"steps":[{"id":"a","tool":"t"},{`+beside+`}]}`), nil)
		if want == "" {
			require.NotNil(t, p, "%s: %v", beside, report.Problems)
			continue
		}
		require.Nil(t, p, beside)
		var all []string
		for _, x := range report.Problems {
			all = append(all, string(x.Code)+" "+x.Path)
		}
		require.Contains(t, strings.Join(all, ", "), want, beside)
	}
}

// TestHowThingsGetIntoAPlan: what stands around a plan is not seen in it, and whoever refers to it is told how it gets there.
func TestHowThingsGetIntoAPlan(t *testing.T) {
	t.Parallel()
	hint := func(body string) string {
		_, report := plan.Parse([]byte(`{"steps":[{"id":"a","tool":"t"},`+body+`]}`), nil)
		require.NotEmpty(t, report.Problems, body)
		return report.Problems[0].Hint
	}
	in := func(step string) string {
		return `{"id":"p","for_each":{"in":[1],"as":"one"},"plan":{"steps":[{"id":"b",` + step + `}]}}`
	}
	const how = `the plan of the step "p" sees its own steps and its input alone: write "arguments": {%q: "$ref:%[1]s"} beside that plan, and $input.%[1]s here`
	require.Equal(t, fmt.Sprintf(how, "a"), hint(in(`"tool":"t","arguments":{"x":"$ref:a.x"}`)))
	require.Equal(t, fmt.Sprintf(how, "a"), hint(in(`"tool":"t","if":"$ref:a.x > 1"`)))
	require.Equal(t, fmt.Sprintf(how, "one"), hint(in(`"tool":"t","arguments":{"x":"$ref:one"}`)))
	require.Contains(t, hint(in(`"plan":{"steps":[{"id":"c","value":"$ref:a"}]}`)), "hand $input.a on in the same way")
	require.Contains(t, hint(in(`"tool":"t","depends_on":["a"]`)), `let the step "p", which has this plan, depend on it`)
	require.Contains(t, hint(in(`"tool":"t","arguments":{"x":"$ref:none"}`)), "the steps are: b")
	require.Contains(t, hint(`{"id":"p","steps":[{"id":"b","tool":"t"}]}`), `write "plan": {"steps": [`)
	require.Contains(t, hint(`{"id":"p","output":1,"plan":{"steps":[{"id":"b","tool":"t"}]}}`), "move it into the plan of the step")
	require.Contains(t, hint(`{"id":"p","sub_plan":{"steps":[{"id":"b","tool":"t"}]}}`), `write "plan": {"steps":[`)
}

// TestTheInputInText: by any key, and all of it; where there is no input it is text.
func TestTheInputInText(t *testing.T) {
	t.Parallel()
	const text = `"<${input[\"a b\"]}> <${input}> $${input[0]}"`
	p, report := plan.Parse([]byte(`{"steps":[{"id":"p","arguments":{"a b":[1]},"plan":{"steps":[{"id":"a","value":`+text+`}]}},{"id":"q","value":`+text+`}]}`), nil)
	require.NotNil(t, p, "%v", report.Problems)
	inner := p.Steps[0].Plan
	value, err := inner.NewResolver().Input(func() ([]byte, bool) { return []byte(`{"a b":[1]}`), true }).Arguments(0, nil)
	require.Nil(t, err)
	require.JSONEq(t, `"<[1]> <{\"a b\":[1]}> ${input[0]}"`, string(value))
	value, err = p.NewResolver().Arguments(1, nil)
	require.Nil(t, err)
	require.JSONEq(t, `"<${input[\"a b\"]}> <${input}> $${input[0]}"`, string(value))
}
