package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// repeat puts n parts, each with its number, between commas.
func repeat(n int, form string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(form, "%d", fmt.Sprint(i))
	}
	return strings.Join(list, ",")
}

// A refused plan costs no more than its size: neither time nor memory nor an endless report.
func TestRefusedPlansAreCheap(t *testing.T) {
	tools := corpusTools(t)
	long := strings.Repeat("k", 500_000)
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"deep":                   {strings.Repeat("[", 1_000_000), []string{"malformed_json"}},
		"deep objects":           {strings.Repeat(`{"a":`, 200_000), []string{"malformed_json"}},
		"deep in string":         {steps(`{"id":"a","tool":"echo","arguments":"` + strings.Repeat("[", 900_000) + `"}`), []string{"malformed_json"}},
		"unknown refs":           {steps(repeat(9_900, `{"id":"step_%d","tool":"echo","arguments":{"x":"$ref:stip_%d"}}`)), []string{"unknown_ref"}},
		"unknown tools":          {steps(repeat(9_900, `{"id":"s%d","tool":"ekko%d"}`)), []string{"unknown_tool"}},
		"unknown outputs":        {`{"steps":[` + repeat(5_000, `{"id":"s%d","tool":"echo"}`) + `],"output_steps":[` + repeat(50_000, `"t%d"`) + `]}`, []string{"unknown_output_step"}},
		"unknown depends_on":     {steps(`{"id":"a","tool":"echo","depends_on":[` + repeat(90_000, `"t%d"`) + `]}`), []string{"unknown_ref"}},
		"unknown fields":         {steps(`{"id":"a","tool":"echo",` + repeat(50_000, `"field%d":1`) + `}`), nil},
		"near misses":            {steps(repeat(9_900, `{"ID":"s%d","tools":"echo","args":{}}`)), []string{"unknown_field"}},
		"broken refs in one":     {steps(`{"id":"a","tool":"echo","arguments":{"x":[` + repeat(60_000, `"$ref:%d."`) + `]}}`), []string{"invalid_ref"}},
		"broken refs in text":    {steps(`{"id":"a","tool":"echo","arguments":{"x":"` + strings.Repeat("$ref:a[ ", 100_000) + `"}}`), []string{"invalid_ref"}},
		"open brackets in text":  {steps(`{"id":"a","tool":"echo","arguments":{"x":"x ` + strings.Repeat(`$ref:a[\"`, 100_000) + `"}}`), []string{"invalid_ref"}},
		"braces in text":         {steps(`{"id":"a","tool":"echo","arguments":{"x":"` + strings.Repeat("${ref:", 150_000) + `"}}`), []string{"invalid_ref"}},
		"dollars":                {steps(`{"id":"a","tool":"echo","arguments":{"x":"` + strings.Repeat("$", 900_000) + `ref:"}}`), nil},
		"dollars and text":       {steps(`{"id":"a","tool":"echo","arguments":{"x":"` + strings.Repeat("$$ ", 300_000) + `$$ref:"}}`), nil},
		"refs in one string":     {steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":"` + strings.Repeat("$ref:a ", 140_000) + `"}}`), []string{"limit_exceeded"}},
		"alternatives":           {steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":"$ref:a` + strings.Repeat("||$ref:a", 120_000) + `"}}`), []string{"limit_exceeded"}},
		"keys used twice":        {steps(`{"id":"a","tool":"echo","arguments":{` + strings.Repeat(`"k":1,`, 100_000) + `"k":1}}`), []string{"duplicate_key"}},
		"escaped keys twice":     {steps(`{"id":"a","tool":"echo","arguments":{` + strings.Repeat(`"\u006b":1,`, 80_000) + `"k":1}}`), []string{"duplicate_key"}},
		"bad text":               {steps(`{"id":"a","tool":"echo","arguments":{"x":[` + repeat(80_000, `"\ud800"`) + `]}}`), []string{"invalid_utf8"}},
		"all one cycle":          {steps(repeat(9_900, `{"id":"s%d","tool":"echo","depends_on":["s0","s1","s9899"],"arguments":{"x":"$ref:s5"}}`)), []string{"cycle"}},
		"self references":        {steps(repeat(9_900, `{"id":"s%d","tool":"echo","depends_on":["s%d"],"arguments":{"x":"$ref:s%d"}}`)), []string{"cycle"}},
		"one id":                 {steps(repeat(9_900, `{"id":"s","tool":"echo"}`)), []string{"duplicate_step"}},
		"empty steps":            {steps(repeat(9_900, `{}`)), []string{"invalid_id"}},
		"too many steps":         {steps(repeat(300_000, `{}`)), []string{"limit_exceeded"}},
		"schema":                 {steps(repeat(9_900, `{"id":"s%d","tool":"add","arguments":{"a":"x","b":"$ref:s%d.x y"}}`)), []string{"cycle", "invalid_arguments"}},
		"long key, many places":  {steps(`{"id":"a","tool":"add","arguments":{"` + long + `":[` + repeat(20_000, `"$ref:q%d"`) + `]}}`), []string{"limit_exceeded", "unknown_ref"}},
		"long key, many strings": {steps(`{"id":"a","tool":"echo","arguments":{"` + long + `":[` + repeat(20_000, `"\udc00"`) + `]}}`), []string{"invalid_utf8"}},
		"long names":             {steps(`{"id":"` + long + `","tool":"` + long[:400_000] + `"}`), []string{"invalid_id"}},
		"line feeds":             {strings.Repeat("\n", 1_000_000), []string{"malformed_json"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(c.body), plan.MaxBytes)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			p, r := plan.Parse([]byte(c.body), tools)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if c.want == nil {
				require.NotNil(t, p, "%v", first(r.Problems))
			} else {
				require.Nil(t, p)
				require.Equal(t, c.want, codes(r.Problems), "%v", first(r.Problems))
			}
			require.LessOrEqual(t, len(r.Problems), plan.MaxProblems+20)
			require.LessOrEqual(t, len(r.Warnings), plan.MaxWarnings+1)
			size := 0
			for _, x := range r.Problems {
				size += len(x.Path) + len(x.Message) + len(x.Hint)
			}
			require.Less(t, size, 4<<20, "the report")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(300<<20), "bytes allocated")
			require.Less(t, took, 20*time.Second) // milliseconds to a tenth of a second, without the race detector and other load
		})
	}
}

func first(problems []fault.Problem) []fault.Problem { return problems[:min(len(problems), 5)] }

func TestReportsAreCapped(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(`{"steps":[`+repeat(3000, `{"id":"s%d","tool":"nope%d"}`)+`,{"id":"x","tool":"echo","arguments":{"x":"$ref:zz"}}],"output_steps":["q","q2"]}`), corpusTools(t))
	require.Len(t, r.Problems, plan.MaxProblems+3)
	require.Equal(t, []string{"unknown_output_step", "unknown_ref", "unknown_tool"}, codes(r.Problems), "every code appears")
	last := r.Problems[len(r.Problems)-1]
	require.Equal(t, "2001 more problems are not listed", last.Message)

	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"echo",`+repeat(300, `"field%d":1`)+`}`)), nil)
	require.Empty(t, r.Problems)
	require.Len(t, r.Warnings, plan.MaxWarnings+1)
	require.Equal(t, "200 more warnings are not listed", r.Warnings[plan.MaxWarnings].Message)
}

// Problems that differ only in their place are one: ten thousand equal ones do not hide what else is wrong.
func TestEqualProblemsAreOne(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(`{"steps":[`+repeat(9_998, `{"id":"s%d","tool":"nope"}`)+`,{"id":"x","tool":"echo","arguments":{"x":"$ref:zz"}},{"id":"y","tool":"echo","arguments":{"x":"$ref:zz"}}]}`), corpusTools(t))
	require.Len(t, r.Problems, 2)
	p := r.Problems[0]
	require.Equal(t, 9_998, p.Count)
	require.Equal(t, 9_998, p.Places())
	require.Equal(t, "/steps/0/tool", p.Path)
	require.Equal(t, "s0", p.Step, "the step of the first place")
	require.Equal(t, []string{"/steps/0/tool", "/steps/1/tool", "/steps/2/tool", "/steps/3/tool", "/steps/4/tool"}, p.Paths)
	require.Equal(t, 2, r.Problems[1].Count)
	require.Equal(t, "x", r.Problems[1].Step)

	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"nope"},{"id":"b","tool":"other"}`)), corpusTools(t))
	require.Len(t, r.Problems, 2, "what is worded otherwise stands by itself")
	require.Zero(t, r.Problems[0].Count)
	require.Nil(t, r.Problems[0].Paths)
	require.Equal(t, "b", r.Problems[1].Step)

	_, r = plan.Parse([]byte(`{"steps":[{"id":"a b","tool":"nope"}],"on_failure":"x"}`), corpusTools(t))
	require.Empty(t, r.Problems[0].Step, "of the plan itself")
	require.Empty(t, r.Problems[1].Step, "an id that is none")
}

// Thousands of steps, each of which asks a schema for as much as one may, are stopped together.
func TestSchemasOfAllStepsShareTheirSteps(t *testing.T) {
	t.Parallel()
	tools := catalog{"t": schema(t, `{"type":"object","properties":{"x":{"allOf":[`+repeat(100, `{"contains":{"const":%d}}`)+`]}}}`)}
	step := `{"id":"s%d","tool":"t","arguments":{"x":[` + repeat(100, `%d`) + `]}}`
	p, r := plan.Parse([]byte(steps(strings.ReplaceAll(step, "s%d", "one"))), tools)
	require.NotNil(t, p, "%v", r.Problems)
	start := time.Now()
	all := make([]string, 2_000)
	for i := range all {
		all[i] = strings.ReplaceAll(step, "s%d", fmt.Sprintf("s%d", i))
	}
	p, r = plan.Parse([]byte(steps(strings.Join(all, ","))), tools)
	require.Nil(t, p)
	require.Equal(t, []string{"invalid_arguments"}, codes(r.Problems))
	require.Contains(t, r.Problems[0].Message, "too many steps")
	require.Contains(t, r.Problems[0].Hint, "simplify the tool's schema")
	require.Less(t, time.Since(start), 3*time.Minute) // ten seconds alone, over 60 on a busy machine; that it stops is what counts
}
