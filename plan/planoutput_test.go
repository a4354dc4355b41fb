package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

const twoSteps = `"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","for_each":{"in":[1]}},{"id":"c","tool":"t"}]`

// TestAPlansOutput: any JSON with references, resolved like arguments; what it refers to are the output steps.
func TestAPlansOutput(t *testing.T) {
	t.Parallel()
	results := map[int]string{0: `{"x":[1,2]}`, 1: `[{"index":0,"status":"ok","data":7}]`}
	result := func(dep int) ([]byte, bool) { return []byte(results[dep]), results[dep] != "" }
	for output, want := range map[string]string{
		`"$ref:a"`:       `{"x":[1,2]}`,
		`{"$ref":"a.x"}`: `[1,2]`,
		`{"n":"$ref:a.x[1]","all":["${ref:b[0].data} of it"],"no":"$ref:c"}`: `{"n":2,"all":["7 of it"],"no":null}`,
		`"$ref:c || $ref:a.x"`:              `[1,2]`,
		`"{\"x\": \"$ref:a.x[0]\"}"`:        `"{\"x\": \"1\"}"`,
		`{"$text":"$ref:a"}`:                `"$ref:a"`,
		`12`:                                `12`,
		`"$status:c"`:                       `"skipped"`,
		`{"in":[["$ref:b[*].data"]],"t":1}`: `{"in":[[[7]]],"t":1}`,
	} {
		p, report := plan.Parse([]byte(`{"output":`+output+`,`+twoSteps+`}`), nil)
		require.NotNil(t, p, "%s: %v", output, report.Problems)
		require.Len(t, p.Steps, 3)
		require.Equal(t, []string{plan.Language2}, p.Needs())
		fates := func(int) plan.Fate { return plan.Fate{Status: "skipped"} }
		got, err := p.NewResolver().Fates(fates).Output(false, result)
		require.Nil(t, err, output)
		require.Equal(t, want, string(got), output)
		for _, o := range p.Outputs {
			require.Contains(t, output, "ref", "a status is no result: %v", o)
		}
	}
}

// TestWhatIsMissingInAnOutput: null in a run that did not succeed, whatever the plan says of missing values.
func TestWhatIsMissingInAnOutput(t *testing.T) {
	t.Parallel()
	p, _ := plan.Parse([]byte(`{"on_missing":"error","output":["$ref:a","$ref:c"],`+twoSteps+`}`), nil)
	require.Equal(t, []int{0, 2}, p.Outputs)
	result := func(dep int) ([]byte, bool) { return []byte(`1`), dep == 0 }
	_, err := p.NewResolver().Output(false, result)
	require.Equal(t, fault.UnresolvedRef, err.Code)
	got, err := p.NewResolver().Output(true, result)
	require.Nil(t, err)
	require.Equal(t, `[1,null]`, string(got))
	_, err = p.NewResolver().Limit(5).Output(true, result)
	require.Equal(t, fault.TooLarge, err.Code)
	require.GreaterOrEqual(t, p.MostOutput(func(int) int64 { return 1 }), int64(len(got)))
}

// TestAWrongOutput: what is wrong is said as of arguments, in its place, and all at once.
func TestAWrongOutput(t *testing.T) {
	t.Parallel()
	const body = `{"output_steps":["a"],"output":{"x":"$ref:aa","y":["$ref:b.x","{{a.x}}","$input.q"],"$ref:k":1},"concurrency":0,` + twoSteps + `}`
	p, report := plan.Parse([]byte(body), nil)
	require.Nil(t, p)
	at := map[string]fault.Code{}
	for _, x := range report.Problems {
		at[x.Path] = x.Code
		require.Empty(t, x.Step)
	}
	require.Equal(t, map[string]fault.Code{
		"/output_steps": fault.InvalidValue, "/output/x": fault.UnknownRef, "/output/y/0": fault.InvalidRef, "/output/y/1": fault.InvalidRef,
		"/output/y/2": fault.InvalidRef, "/output/$ref:k": fault.InvalidRef, "/concurrency": fault.InvalidValue,
	}, at, "%v", report.Problems)
	for _, wrong := range []string{`"2"`, `1.5`, `-1`, `10001`, `[]`, `true`} {
		p, report := plan.Parse([]byte(`{"concurrency":`+wrong+`,`+twoSteps+`}`), nil)
		require.Nil(t, p, wrong)
		require.Equal(t, "/concurrency", report.Problems[0].Path)
		require.Equal(t, fault.InvalidValue, report.Problems[0].Code)
	}
	p, _ = plan.Parse([]byte(`{"concurrency":null,"output":null,`+twoSteps+`}`), nil)
	require.NotNil(t, p)
	require.Nil(t, p.Needs(), "null is absent")
	require.Len(t, p.Outputs, 3)
	p, report = plan.Parse([]byte(`{"steps":[{"id":"a","tool":"t","output":"$ref:b","concurrency":2}]}`), nil)
	require.Nil(t, p)
	require.Len(t, report.Problems, 2, "they are a plan's: %v", report.Problems)
}

// TestAnOutputOfBefore: a run of language 1 goes on with what its plan meant then.
func TestAnOutputOfBefore(t *testing.T) {
	t.Parallel()
	body := []byte(`{"output":{"x":"$ref:nobody"},"concurrency":"many","outptu":1,"output_steps":["a"],"steps":[{"id":"a","tool":"t","output":"r","concurrency":[]}]}`)
	p, report := plan.ParseLimited(body, nil, plan.Limits{Language1: true})
	require.NotNil(t, p, "%v", report.Problems)
	require.Nil(t, p.Output)
	require.Zero(t, p.Concurrency)
	require.Equal(t, []int{0}, p.Outputs)
	require.Len(t, report.Warnings, 5)
}
