package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// rawSteps splits a list of steps, written as JSON without the brackets.
func rawSteps(t *testing.T, list string) (all []json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte("["+list+"]"), &all))
	return all
}

func accepted(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, report := plan.Parse([]byte(text), nil)
	require.Empty(t, report.Problems, text)
	return p
}

// filled is what a step is handed, or is, where all that it refers to returned the same.
func filled(p *plan.Plan, step int) string {
	result := func(dep int) ([]byte, bool) {
		return fmt.Appendf(nil, `{"n":%d,"name":"%s","list":[{"n":1}],"data":{"n":2},"a":{"n":3}}`, dep, p.Steps[dep].ID), true
	}
	r := p.NewResolver().Fates(func(step int) plan.Fate { return plan.Fate{Status: p.Steps[step].ID} })
	if p.Steps[step].Value {
		value, err := r.Derive(step, 1<<20, &plan.Effort{Bytes: 1 << 20, Work: 1 << 20}, result)
		return fmt.Sprintf("%s %v", value, err)
	}
	value, err := r.Arguments(step, result)
	return fmt.Sprintf("%s %v", value, err)
}

func never(int) bool { return false }

// An amended plan is the plan that has all its steps from the beginning.
func TestAmendedPlanIsTheWhole(t *testing.T) {
	t.Parallel()
	steps := []string{
		`{"id":"a","tool":"x","arguments":{"n":1}}`,
		`{"id":"b","tool":"x","arguments":{"n":"$ref:a.n"},"if":"$ref:a.n > 0"}`,
		`{"id":"c","value":{"$calc":"$ref:a.n + 1"}}`,
		`{"id":"d","tool":"x","for_each":{"in":"$ref:a.list"},"arguments":{"n":"$ref:item","c":"$ref:c"}}`,
		`{"id":"e","tool":"x","arguments":{"text":"${ref:b.name} and ${ref:c}"},"depends_on":["d"],"optional":true}`,
		`{"id":"f","value":"$error:e"}`,
		`{"id":"g","plan":{"steps":[{"id":"a","tool":"x","arguments":{"n":"$input.n"}}]},"arguments":{"n":"$ref:a.n || $ref:b.n || 0"}}`,
		`{"id":"h","value":{"$calc":"sum($ref:d[*].data.n) + $ref:g.a.n"},"if":"$status:e != 'failed'"}`,
	}
	for _, end := range []string{``, `,"output_steps":["a"]`, `,"output":{"n":"$ref:a.n"}`} {
		whole := accepted(t, `{"concurrency":3,"steps":[`+strings.Join(steps, ",")+`]`+end+`}`)
		for cut := 1; cut < len(steps); cut++ {
			base := accepted(t, `{"concurrency":3,"steps":[`+strings.Join(steps[:cut], ",")+`]`+end+`}`)
			before := fmt.Sprintf("%+v", base.Steps)
			for _, parts := range [][]string{steps[cut:], {strings.Join(steps[cut:], ",")}} {
				p := base
				for _, part := range parts {
					x, report := p.Amend(&plan.Amendment{Add: rawSteps(t, part), Scope: subjects.RootScope, Offset: 100}, nil)
					require.Empty(t, report.Problems)
					p = x.Plan
				}
				require.Equal(t, whole.Depth, p.Depth)
				require.Equal(t, whole.Outputs, p.Outputs)
				require.Equal(t, whole.Output, p.Output)
				require.Len(t, p.Steps, len(whole.Steps))
				for i := range whole.Steps {
					one, other := whole.Steps[i], p.Steps[i]
					if one.Plan != nil {
						require.EqualExportedValues(t, one.Plan.Steps, other.Plan.Steps)
						one.Plan, other.Plan = nil, nil
					}
					require.Equal(t, append([]int{}, whole.Dependents(i)...), append([]int{}, p.Dependents(i)...))
					require.Equal(t, whole.Regarded(i), p.Regarded(i))
					require.EqualExportedValues(t, one, other, "%s after %d", one.ID, cut)
					require.Equal(t, filled(whole, i), filled(p, i), "%s after %d", one.ID, cut)
					at, ok := p.Index(one.ID)
					require.True(t, ok)
					require.Equal(t, i, at)
				}
			}
			require.Equal(t, before, fmt.Sprintf("%+v", base.Steps), "the plan itself stays as it is")
		}
	}
}

// stepsOf returns a plan that may be amended, with some steps.
func stepsOf(all []string) []byte {
	return []byte(`{"open":true,"steps":[` + strings.Join(all, ",") + `]}`)
}

// inTheWhole are problems of an amendment as those of the whole plan, in which so many steps stand before it.
func inTheWhole(problems []fault.Problem, before int) []fault.Problem {
	move := func(path string) string {
		rest, _ := strings.CutPrefix(path, "/add/")
		number, rest, _ := strings.Cut(rest+"/", "/")
		n, err := strconv.Atoi(number)
		if err != nil {
			return path
		}
		return strings.TrimSuffix(fmt.Sprintf("/steps/%d/%s", n+before, rest), "/")
	}
	for i := range problems {
		p := &problems[i]
		p.Path = move(p.Path)
		for k := range p.Paths {
			p.Paths[k] = move(p.Paths[k])
		}
	}
	return problems
}

// What is wrong with the last part of a plan is the same whether that is added or stood there from the beginning: what
// the tools of steps declare holds for those that are added, too.
func TestAmendmentsHaveTheProblemsOfTheWhole(t *testing.T) {
	t.Parallel()
	tools := typedTools(t)
	maps.Copy(tools, dependentTools(t))
	right := []string{
		`"tool":"add","arguments":{"a":1,"b":2}`, `"tool":"list"`, `"tool":"shout"`, `"tool":"any"`, `"tool":"search"`, `"tool":"find"`,
		`"tool":"add","for_each":{"in":[1]},"arguments":{"a":"$ref:item","b":1}`, `"value":[1]`, `"plan":{"steps":[{"id":"in","tool":"add","arguments":{"a":1,"b":1}}]}`,
	}
	paths := []string{``, `.result`, `.reslt`, `.items`, `.items[0].id`, `.items[*].id`, `.items.id`, `[0].data`, `[0].data.result`, `[*].data.x`, `[0]`, `.in`, `.more`, `.hits[0].score`, `.open`}
	uses := []string{
		`"tool":"add","arguments":{"a":"$ref:%s","b":1}`, `"tool":"shout","arguments":{"text":"$ref:%s"}`, `"tool":"shout","arguments":{"text":"it is ${ref:%s}"}`,
		`"tool":"shout","for_each":{"in":"$ref:%s"},"arguments":{"text":"$ref:item.id"}`, `"tool":"any","if":"$ref:%s > 1"`, `"value":{"$calc":"$ref:%s + 1"}`,
		`"tool":"fetch","arguments":{"document_id":"$ref:%s"}`, `"tool":"load","arguments":{"document_id":"$ref:%s"}`, `"tool":"round","arguments":{"n":"$ref:%s || 1"}`,
		`"plan":{"steps":[{"id":"in","tool":"add","arguments":{"a":"$input.x","b":"text"}}]},"arguments":{"x":"$ref:%s"}`,
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	codes := map[fault.Code]int{}
	for range 1000 {
		all := make([]string, 0, 8)
		for i := range 2 + rnd.IntN(3) {
			all = append(all, fmt.Sprintf(`{"id":"s%d",%s}`, i, right[rnd.IntN(len(right))]))
		}
		for range 1 + rnd.IntN(4) {
			n := len(all)
			use := fmt.Sprintf(uses[rnd.IntN(len(uses))], fmt.Sprintf("s%d%s", rnd.IntN(n+1), paths[rnd.IntN(len(paths))]))
			all = append(all, fmt.Sprintf(`{"id":"s%d",%s}`, n, use))
		}
		_, whole := plan.Parse(stepsOf(all), tools)
		for cut := 1; cut < len(all); cut++ {
			p, report := plan.Parse(stepsOf(all[:1]), tools)
			require.Empty(t, report.Problems)
			if cut > 1 {
				x, _ := p.Amend(&plan.Amendment{Add: rawSteps(t, strings.Join(all[1:cut], ",")), Scope: subjects.RootScope}, tools)
				if x == nil {
					break // it isn't the last part that is wrong
				}
				p = x.Plan
			}
			x, report := p.Amend(&plan.Amendment{Add: rawSteps(t, strings.Join(all[cut:], ",")), Scope: subjects.RootScope}, tools)
			checked, again := plan.Check(p, &plan.Amendment{Add: rawSteps(t, strings.Join(all[cut:], ",")), Scope: subjects.RootScope}, tools)
			require.Equal(t, x == nil, checked == nil)
			require.Equal(t, report, again, "what is only looked at has the same problems")
			require.Equal(t, len(whole.Problems) > 0, x == nil)
			require.Equal(t, whole.Problems, inTheWhole(report.Problems, cut), "%s\nfrom %d on", stepsOf(all), cut)
			for _, problem := range report.Problems {
				codes[problem.Code]++
			}
		}
	}
	for _, code := range []fault.Code{fault.ImpossibleRef, fault.MissingDependency, fault.InvalidArguments, fault.InvalidRef, fault.Cycle} {
		require.NotZero(t, codes[code], "%s of %v", code, codes)
	}
}

// What was taken over from the run that is tried again is held against nothing that tools declare by now.
func TestAmendmentsTakeWhatIsThere(t *testing.T) {
	t.Parallel()
	tools := typedTools(t)
	base := accepted(t, string(stepsOf([]string{`{"id":"a","tool":"add"}`, `{"id":"b","tool":"add"}`})))
	add := rawSteps(t, `{"id":"c","tool":"add","arguments":{"a":"$ref:a","b":1}},{"id":"d","tool":"add","arguments":{"a":1,"b":"$ref:b.x"}},
		{"id":"e","plan":{"steps":[{"id":"a","tool":"list"},{"id":"x","tool":"any","arguments":{"n":"$ref:a.items.id"}}]}}`)
	_, report := base.Amend(&plan.Amendment{Scope: subjects.RootScope, Add: add, Done: func(step int) bool { return base.Steps[step].ID == "a" }}, tools)
	var got []string
	for _, p := range report.Problems {
		got = append(got, string(p.Code)+" "+p.Path)
	}
	require.Equal(t, []string{"impossible_ref /add/1/arguments/b", "impossible_ref /add/2/plan/steps/1/arguments/n"}, got)
}

// A step that is written again keeps its number, and those that refer to it refer to what it is now.
func TestAmendWritesAgain(t *testing.T) {
	t.Parallel()
	base := accepted(t, `{"concurrency":1,"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":{"n":"$ref:a.n"}},{"id":"c","tool":"x","arguments":{"n":"$ref:b.n"}}]}`)
	again := func(step int) bool { return base.Steps[step].ID == "b" }
	x, report := base.Amend(&plan.Amendment{
		Add: rawSteps(t, `{"id":"d","tool":"z","arguments":{"n":"$ref:b.n"}},{"id":"b","tool":"y","depends_on":["a2"]},{"id":"a2","value":1}`), Again: again, Scope: "=",
	}, nil)
	require.Empty(t, report.Problems)
	require.Equal(t, []int{3, 1, 4}, x.Added)
	p := x.Plan
	require.Equal(t, "y", p.Steps[1].Tool)
	require.Equal(t, []int{4}, p.Steps[1].Deps)
	require.Equal(t, []int{2, 3}, p.Dependents(1))
	require.Empty(t, p.Dependents(0))
	require.Equal(t, []int{1}, base.Dependents(0))
	require.Equal(t, 3, p.Depth)
	require.Equal(t, []int{0, 1, 2, 3, 4}, p.Outputs)
	whole := accepted(t, `{"concurrency":1,"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"y","depends_on":["a2"]},{"id":"c","tool":"x","arguments":{"n":"$ref:b.n"}},`+
		`{"id":"d","tool":"z","arguments":{"n":"$ref:b.n"}},{"id":"a2","value":1}]}`)
	require.EqualExportedValues(t, whole.Steps, p.Steps)
}

func TestAmendProblems(t *testing.T) {
	t.Parallel()
	base := accepted(t, `{"concurrency":1,"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":{"n":"$ref:a.n"}}]}`)
	isB := func(step int) bool { return base.Steps[step].ID == "b" }
	isA := func(step int) bool { return base.Steps[step].ID == "a" }
	for name, c := range map[string]struct {
		a    plan.Amendment
		want []string
	}{
		"no step":       {plan.Amendment{Add: rawSteps(t, `1`)}, []string{"invalid_value /add/0"}},
		"no id":         {plan.Amendment{Add: rawSteps(t, `{"tool":"x"}`)}, []string{"invalid_id /add/0"}},
		"id used":       {plan.Amendment{Add: rawSteps(t, `{"id":"a","tool":"x"}`)}, []string{"duplicate_step /add/0/id"}},
		"id twice":      {plan.Amendment{Add: rawSteps(t, `{"id":"c","tool":"x"},{"id":"c","tool":"x"}`)}, []string{"duplicate_step /add/1/id"}},
		"again twice":   {plan.Amendment{Again: isB, Add: rawSteps(t, `{"id":"b","tool":"x"},{"id":"b","tool":"x"}`)}, []string{"duplicate_step /add/1/id"}},
		"all at once":   {plan.Amendment{Add: rawSteps(t, `{"id":"c","tool":"x","if":"1 +"},{"id":"d","tool":"x","arguments":{"x":"$ref:e"}}`)}, []string{"invalid_condition /add/0/if", "unknown_ref /add/1/arguments/x"}},
		"cycle":         {plan.Amendment{Add: rawSteps(t, `{"id":"c","tool":"x","depends_on":["d"]},{"id":"d","tool":"x","depends_on":["c"]}`)}, []string{"cycle /add/0/depends_on/0"}},
		"cycle by old":  {plan.Amendment{Again: isA, Add: rawSteps(t, `{"id":"a","tool":"x","depends_on":["b"]}`)}, []string{"cycle /add/0/depends_on/0"}},
		"gone":          {plan.Amendment{Gone: isA, Add: rawSteps(t, `{"id":"c","tool":"x","arguments":{"x":"$ref:a"}}`)}, []string{"unknown_ref /add/0"}},
		"output":        {plan.Amendment{Output: []byte(`"$ref:zz"`)}, []string{"unknown_ref /output"}},
		"output steps":  {plan.Amendment{OutputSteps: []string{"a", "zz"}}, []string{"unknown_output_step /output_steps/1"}},
		"inner":         {plan.Amendment{Add: rawSteps(t, `{"id":"c","plan":{"steps":[{"id":"d","tool":"x","arguments":{"x":"$ref:a"}}]}}`)}, []string{"unknown_ref /add/0/plan/steps/0/arguments/x"}},
		"no json":       {plan.Amendment{Add: []json.RawMessage{[]byte(`{`)}}, []string{"malformed_json "}},
		"input at root": {plan.Amendment{Add: rawSteps(t, `{"id":"c","tool":"x","arguments":{"x":"$input.y"}}`)}, []string{"invalid_ref /add/0/arguments/x"}},
	} {
		c.a.Scope = "="
		x, report := base.Amend(&c.a, nil)
		require.Nil(t, x, name)
		var got []string
		for _, p := range report.Problems {
			got = append(got, string(p.Code)+" "+p.Path)
		}
		require.Equal(t, c.want, got, name)
	}
	_, report := base.Amend(&plan.Amendment{Scope: "s", Add: rawSteps(t, `{"id":"c","tool":"x","arguments":{"x":"$input.y"}}`)}, nil)
	require.Empty(t, report.Problems)
	_, report = base.Amend(&plan.Amendment{Scope: "=", Again: isB, Gone: isB, Add: rawSteps(t, `{"id":"b","tool":"x"},{"id":"c","tool":"x","arguments":{"x":"$ref:b"}}`)}, nil)
	require.Empty(t, report.Problems, "what is written again is there")
	many := strings.TrimSuffix(strings.Repeat(`{"id":"c","tool":"x"},`, plan.MaxSteps), ",")
	_, report = base.Amend(&plan.Amendment{Scope: "=", Add: rawSteps(t, many)}, nil)
	require.Equal(t, fault.LimitExceeded, report.Problems[0].Code)
}

// Whatever an amendment holds, reading it comes to a plan or to problems.
func TestAmendSurvivesAnything(t *testing.T) {
	t.Parallel()
	base := accepted(t, `{"concurrency":1,"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":{"n":"$ref:a.n"}}]}`)
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{`{"id":"c","tool":"x"}`, `{"id":"b","tool":"x","arguments":{"x":"$ref:c"}}`, `[]`, `null`, `{"id":7}`, `{"id":"d","value":"$ref:b"}`,
		`{"id":"e","plan":{"steps":[{"id":"a","value":1}]}}`, `{"id":"a","tool":"x","for_each":{"in":"$ref:b"},"arguments":{"x":"$ref:item"}}`, `{"id":"c","value":{"$calc":"1+$ref:a"}}`}
	outs := []string{``, `"$ref:c"`, `{"x":["$ref:a"]}`, `"$ref:"`, `1`}
	for range 3000 {
		a := plan.Amendment{Scope: "=", Again: func(int) bool { return rnd.IntN(2) == 0 }, Gone: never}
		for range rnd.IntN(4) {
			a.Add = append(a.Add, json.RawMessage(parts[rnd.IntN(len(parts))]))
		}
		if o := outs[rnd.IntN(len(outs))]; o != "" {
			a.Output = json.RawMessage(o)
		}
		x, report := base.Amend(&a, nil)
		require.Equal(t, x == nil, len(report.Problems) > 0)
		if x == nil {
			continue
		}
		for i := range x.Plan.Steps {
			for _, d := range x.Plan.Steps[i].Deps {
				require.Contains(t, x.Plan.Dependents(d), i)
				require.Less(t, x.Plan.Steps[d].Depth, x.Plan.Steps[i].Depth)
			}
		}
	}
}
