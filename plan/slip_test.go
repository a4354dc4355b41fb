package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// What a writer takes for a guard or a branch is never ignored. Each case has the plan that its hint leads to.
func TestWhatSeemsToGuardIsRefused(t *testing.T) {
	t.Parallel()
	step := func(fields string) string {
		return steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo",` + fields + `},{"id":"c","tool":"echo"},{"id":"d","tool":"echo"}`)
	}
	top := func(fields string) string { return `{"steps":[{"id":"a","tool":"echo"}],` + fields + `}` }
	in := func(kind, fields string) string {
		return steps(`{"id":"a","tool":"echo"},{"id":"b",` + kind + `,` + fields + `}`)
	}
	for name, c := range map[string]struct{ plan, path, hint, then string }{
		"requires_approval":   {step(`"requires_approval":true`), "/steps/1/requires_approval", `write "approval": true`, step(`"approval": true`)},
		"with a text":         {step(`"confirm":"Pay now?"`), "/steps/1/confirm", `write "approval": {"ask": "Pay now?"}`, step(`"approval": {"ask": "Pay now?"}`)},
		"with a word":         {step(`"human_approval":"required"`), "/steps/1/human_approval", `write "approval": true`, step(`"approval": true`)},
		"with a condition":    {step(`"needs_approval":"$ref:a.n > 100"`), "/steps/1/needs_approval", `write "approval": true; a person is asked each time`, step(`"approval": true`)},
		"false":               {step(`"approve":false`), "/steps/1/approve", `leave it out`, step(`"optional":false`)},
		"of a plan":           {top(`"require_approval":true`), "/require_approval", `write "approval": true`, top(`"approval": true`)},
		"of a plan, refers":   {top(`"confirm":"Pay ${ref:a.x}?"`), "/confirm", `write "approval": true;`, top(`"approval": true`)},
		"of a question":       {in(`"tool":"ask","arguments":{"question":"x"}`, `"approval_required":true`), "/steps/1/approval_required", "leave it out", in(`"tool":"ask"`, `"arguments":{"question":"x"}`)},
		"of a value":          {in(`"value":1`, `"confirm":true`), "/steps/1/confirm", "leave it out", in(`"value":1`, `"optional":false`)},
		"guard":               {step(`"guard":"$ref:a.n > 1"`), "/steps/1/guard", `write "if": "$ref:a.n > 1"`, step(`"if": "$ref:a.n > 1"`)},
		"precondition":        {step(`"precondition":"$ref:a.n > 1"`), "/steps/1/precondition", `write "if": "$ref:a.n > 1"`, step(`"if": "$ref:a.n > 1"`)},
		"preconditions, ids":  {step(`"preconditions":["a","c"]`), "/steps/1/preconditions", `write "depends_on": ["a", "c"]`, step(`"depends_on": ["a", "c"]`)},
		"where":               {step(`"where":"$ref:a.n > 1"`), "/steps/1/where", `write "if": "$ref:a.n > 1"`, step(`"if": "$ref:a.n > 1"`)},
		"where, of items":     {step(`"for_each":{"in":"$ref:a.l"},"where":"$ref:item.n > 1"`), "/steps/1/where", `let the step that makes the list leave the others out`, step(`"for_each":{"in":"$ref:a.l"}`)},
		"then":                {step(`"if":"$ref:a.n > 1","then":"c"`), "/steps/1/then", `write "if": "$status:b == 'succeeded'" in step "c"`, strings.Replace(step(`"if":"$ref:a.n > 1"`), `"c",`, `"c","if": "$status:b == 'succeeded'",`, 1)},
		"else":                {step(`"if":"$ref:a.n > 1","else":["c","d"]`), "/steps/1/else", `write "if": "$status:b == 'not_taken'" in each of the steps "c", "d"`, strings.NewReplacer(`"c",`, `"c","if": "$status:b == 'not_taken'",`, `"d",`, `"d","if": "$status:b == 'not_taken'",`).Replace(step(`"if":"$ref:a.n > 1"`))},
		"else, a step":        {step(`"if":"$ref:a.n > 1","else":{"tool":"echo"}`), "/steps/1/else", "each step of that branch", step(`"if":"$ref:a.n > 1"`)},
		"on_error, stop":      {top(`"on_error":"abort"`), "/on_error", `write "on_failure": "stop"`, top(`"on_failure": "stop"`)},
		"on_error, go on":     {top(`"on_error":"continue"`), "/on_error", `write "on_failure": "continue"`, top(`"on_failure": "continue"`)},
		"on_error, a handler": {top(`"on_error":"a"`), "/on_error", `write "if": "$status:<id> == 'failed'"`, top(`"timeout":"9s"`)},
		"fail_fast":           {top(`"fail_fast":true`), "/fail_fast", `write "on_failure": "stop"`, top(`"on_failure": "stop"`)},
		"condition of a plan": {top(`"condition":"$ref:a.n > 1"`), "/condition", `write "if" in each step`, top(`"timeout":"9s"`)},
		"then of a plan":      {top(`"then":["a"]`), "/then", `write "if" in each step`, top(`"timeout":"9s"`)},
		"inputs":              {top(`"inputs":{"n":1}`), "/inputs", `{"id": "inputs", "value": {"n":1}}, and refer to "$ref:inputs"`, steps(`{"id": "inputs", "value": {"n":1}},{"id":"a","tool":"echo","arguments":{"x":"$ref:inputs.n"}}`)},
		"approval, question":  {step(`"approval":{"question":"Pay ${ref:a.n}?"}`), "/steps/1/approval/question", `write "ask": "Pay ${ref:a.n}?"`, step(`"approval":{"ask": "Pay ${ref:a.n}?"}`)},
		"approval, message":   {top(`"approval":{"message":"All of it?"}`), "/approval/message", `write "ask": "All of it?"`, top(`"approval":{"ask": "All of it?"}`)},
		"steps and calls":     {top(`"calls":[{"_tool":"echo","x":1}]`), "/calls", `write each call as a step`, steps(`{"id":"a","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":1}}`)},
		"wrong within a wish": {step(`"confirm":{"timeout":"24h","prompt":"Go?"}`), "/steps/1/confirm/prompt", `write "ask": "Go?"`, step(`"approval":{"timeout":"24h","ask":"Go?"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := plan.Parse([]byte(c.plan), corpusTools(t))
			require.Nil(t, p)
			require.Contains(t, found(r.Problems), "unknown_field "+c.path, "%v", r.Problems)
			last := r.Problems[len(r.Problems)-1]
			require.Equal(t, c.path, last.Path, "%v", r.Problems)
			require.Contains(t, last.Hint, c.hint)
			for _, x := range r.Problems {
				require.Equal(t, "unknown_field", string(x.Code), "%v", r.Problems)
			}
			p, r = plan.Parse([]byte(c.then), corpusTools(t))
			require.NotNil(t, p, "%s: %v", c.then, r.Problems)
			require.Empty(t, r.Warnings)

			_, r = plan.ParseLimited([]byte(c.plan), corpusTools(t), plan.Limits{Language1: true})
			for _, x := range r.Problems {
				require.NotEqual(t, "unknown_field", string(x.Code), "a run of before goes on: %v", r.Problems)
			}
		})
	}
}

// Beside the question an approval may say more of it, and null stands for nothing.
func TestLabelsOfAnApproval(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(steps(`{"id":"b","tool":"echo","then":null,"approval":{"ask":"Go?","reason":"dear","message":null}}`)), nil)
	require.NotNil(t, p, "%v", r.Problems)
	require.Len(t, r.Warnings, 3)
}

// A plan is written in one form; null is none of them.
func TestAPlanOfBothForms(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(`{"steps":[],"calls":[{"_tool":"echo"}]}`), nil)
	require.Equal(t, []string{"unknown_field /calls", "empty_plan /steps"}, found(r.Problems))
	for _, x := range r.Problems {
		require.Contains(t, x.Hint, `leave "steps" out`)
	}
	p, r := plan.Parse([]byte(`{"steps":null,"calls":[{"_tool":"echo"}]}`), nil)
	require.NotNil(t, p, "%v", r.Problems)
	require.Len(t, p.Steps, 1)
	_, r = plan.Parse([]byte(`{"calls":[{"id":"a","tool":"echo"}]}`), nil)
	require.Equal(t, `write "steps" for "calls"`, r.Problems[0].Hint)
}
