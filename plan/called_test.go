package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// withTemplates are a tool and templates that call it and each other, by name.
func withTemplates(t testing.TB, templates map[string]string) toolbox {
	t.Helper()
	box := toolbox{"work": {}, "pay": {Input: schema(t, `{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}`)}}
	for name, text := range templates {
		box[name] = plan.Tool{Plan: []byte(text)}
	}
	return box
}

func typedTemplate(t testing.TB, box toolbox, name, input, output string) {
	t.Helper()
	x := box[name]
	x.Input = schema(t, input)
	if output != "" {
		x.Output = schema(t, output)
	}
	box[name] = x
}

const refund = `{"steps":[{"id":"look","tool":"work","arguments":{"of":"$input.customer"}},
	{"id":"pay","tool":"pay","arguments":{"amount":"$input.amount"},"depends_on":["look"]}],"output":"$ref:pay.id"}`

func TestAStepMayCallATemplate(t *testing.T) {
	t.Parallel()
	box := withTemplates(t, map[string]string{"refund": refund})
	p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"refund","arguments":{"amount":5}},{"id":"b","tool":"refund","arguments":{"amount":"$ref:a"}}`)), box)
	require.Empty(t, r.Problems)
	require.Equal(t, 2, p.Language)
	require.Equal(t, []string{plan.Language2}, p.Needs())
	for _, i := range []int{0, 1} {
		require.Equal(t, "refund", p.Steps[i].Tool)
		require.NotNil(t, p.Steps[i].Template)
		require.Len(t, p.Steps[i].Plan.Steps, 2)
	}
	require.NotSame(t, p.Steps[0].Plan, p.Steps[1].Plan, "each call has a plan that nobody else numbers")
	require.Equal(t, []int{2, 4}, []int{p.Steps[0].Plan.Offset, p.Steps[1].Plan.Offset})
	s, _, found := p.Find("b/pay")
	require.True(t, found)
	require.Equal(t, "pay", s.Tool)
}

func TestAPlanThatWasAcceptedIsReadWithItsTemplates(t *testing.T) {
	t.Parallel()
	body := []byte(steps(`{"id":"a","tool":"refund"}`))
	p := plan.Accepted(body, map[string]json.RawMessage{"refund": json.RawMessage(refund)})
	require.NotNil(t, p)
	require.Len(t, p.Steps[0].Plan.Steps, 2)
	without := plan.Accepted(body, nil)
	require.Nil(t, without.Steps[0].Plan, "nobody says what it was")
}

func TestWhatIsWrongWithACallOfATemplate(t *testing.T) {
	t.Parallel()
	deep := map[string]string{"t9": `{"steps":[{"id":"x","tool":"work"}]}`}
	for i := range 9 {
		deep[fmt.Sprintf("t%d", i)] = fmt.Sprintf(`{"steps":[{"id":"x","tool":"t%d"}]}`, i+1)
	}
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"s%d","tool":"work"}`, i)
	}
	wide := `{"steps":[` + strings.Join(many, ",") + `]}`
	long := `{"steps":[{"id":"` + strings.Repeat("x", 64) + `","tool":"work"}]}`
	calls := func(n int, name string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`{"id":"c%d","tool":%q}`, i, name)
		}
		return strings.Join(all, ",")
	}
	box := withTemplates(t, deep)
	for name, text := range map[string]string{
		"lost": `{"steps":[{"id":"x","tool":"gone"},{"id":"y","tool":"pay","arguments":{"amount":"much"}}]}`,
		"self": `{"steps":[{"id":"x","tool":"self"}]}`, "ping": `{"steps":[{"id":"x","tool":"pong"}]}`, "pong": `{"steps":[{"id":"x","tool":"ping"}]}`,
		"wide": wide, "wider": `{"steps":[` + calls(5, "wide") + `]}`, "wide3": `{"steps":[` + calls(3, "wide") + `]}`, "long": long, "refund": refund,
		"timed": `{"steps":[{"id":"x","tool":"work"}],"timeout":"5s"}`, "none": `{"stops":[]}`,
	} {
		box[name] = plan.Tool{Plan: []byte(text)}
	}
	typedTemplate(t, box, "refund", `{"type":"object","properties":{"amount":{"type":"number"},"customer":{"type":"string"}},"required":["amount"],"additionalProperties":false}`,
		`{"type":"object","properties":{"id":{"type":"string"}},"additionalProperties":false}`)
	inIDs := strings.Repeat("y", 64)
	nest := func(n int, inner string) string {
		for range n {
			inner = `{"id":"` + inIDs + `","plan":{"steps":[` + inner + `]}}`
		}
		return inner
	}
	for _, c := range []struct {
		name, steps string
		code        fault.Code
		path, says  string
	}{
		{"lost a tool", `{"id":"a","tool":"lost"}`, fault.UnknownTool, "/steps/0/tool", `the template "lost" can't run: /steps/0/tool: there is no tool "gone"`},
		{"arguments of its own", `{"id":"a","tool":"lost"}`, fault.InvalidArguments, "/steps/0/tool", "/steps/1/arguments/amount"},
		{"itself", `{"id":"a","tool":"self"}`, fault.RecursivePlan, "/steps/0/tool", "self → self"},
		{"by another", `{"id":"a","tool":"ping"}`, fault.RecursivePlan, "/steps/0/tool", "ping → pong → ping"},
		{"too deep", `{"id":"a","tool":"t0"}`, fault.LimitExceeded, "/steps/0/tool", "call each other"},
		{"too deep together", nest(3, `{"id":"a","tool":"t4"}`), fault.LimitExceeded, "", "at most 8 are allowed"},
		{"too many steps", `{"id":"a","tool":"wider"}`, fault.LimitExceeded, "/steps/0/tool", "more than 10000 steps"},
		{"too many steps together", calls(5, "wide"), fault.LimitExceeded, "/steps/4/tool", "more than 10000 steps"},
		{"too many steps of templates within", calls(2, "wide3"), fault.LimitExceeded, "/steps/1/tool", "more than 10000 steps"},
		{"ids too long", nest(7, `{"id":"a","tool":"long"}`), fault.LimitExceeded, "", "at most"},
		{"retried", `{"id":"a","tool":"refund","arguments":{"amount":1},"retry":{"max_attempts":3}}`, fault.InvalidValue, "/steps/0/retry", "is a plan"},
		{"partial", `{"id":"a","tool":"refund","arguments":{"amount":1},"partial":true}`, fault.InvalidValue, "/steps/0/partial", ""},
		{"missing input", `{"id":"a","tool":"refund"}`, fault.InvalidArguments, "/steps/0/arguments", "amount"},
		{"more than its input", `{"id":"a","tool":"refund","arguments":{"amount":1,"x":2}}`, fault.InvalidArguments, "/steps/0/arguments/x", ""},
		{"nothing in its output", `{"id":"a","tool":"refund","arguments":{"amount":1}},{"id":"b","tool":"work","arguments":{"x":"$ref:a.number"}}`, fault.ImpossibleRef, "/steps/1/arguments/x", "number"},
		{"a timeout of its own", `{"id":"a","tool":"timed"}`, fault.InvalidValue, "/steps/0/tool", "no timeout of its own"},
		{"no plan", `{"id":"a","tool":"none"}`, fault.EmptyPlan, "/steps/0/tool", "no steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, r := plan.Parse([]byte(steps(c.steps)), box)
			require.Nil(t, p)
			i := slices.IndexFunc(r.Problems, func(x fault.Problem) bool { return x.Code == c.code })
			require.GreaterOrEqual(t, i, 0, "%+v", r.Problems)
			require.Contains(t, r.Problems[i].Message, c.says)
			if c.path != "" {
				require.Equal(t, c.path, r.Problems[i].Path)
			}
		})
	}
	p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"t2"}`)), box)
	require.NotNil(t, p, "%+v", r.Problems) // eight above the call
}

func TestATemplateIsCheckedByItself(t *testing.T) {
	t.Parallel()
	box := withTemplates(t, map[string]string{"refund": refund, "other": `{"steps":[{"id":"x","tool":"refund"}]}`})
	check := func(raw string) plan.Report {
		d, err := tool.ParseDefinition([]byte(raw))
		require.NoError(t, err)
		return plan.CheckTemplate(d, box)
	}
	const schema = `"inputSchema":{"type":"object","properties":{"amount":{"type":"number"}},"additionalProperties":false}`
	require.Empty(t, check(`{"name":"refund",`+schema+`,"plan":{"steps":[{"id":"a","tool":"pay","arguments":{"amount":"$input.amount"}}]}}`))
	r := check(`{"name":"refund",` + schema + `,"plan":{"steps":[{"id":"a","tool":"pay","arguments":{"amount":"$input.sum"}},
		{"id":"b","tool":"gone"},{"id":"c","tool":"other"},{"id":"d","tool":"work","if":"$input.fee > 1"}]}}`)
	at := map[string]fault.Code{}
	for _, x := range r.Problems {
		at[x.Path] = x.Code
	}
	require.Equal(t, map[string]fault.Code{
		"/plan/steps/0/arguments/amount": fault.ImpossibleRef, "/plan/steps/1/tool": fault.UnknownTool,
		"/plan/steps/2/tool": fault.RecursivePlan, "/plan/steps/3/if": fault.ImpossibleRef,
	}, at, "all at once")
	self := check(`{"name":"new","plan":{"steps":[{"id":"a","tool":"new"}]}}`)
	require.Equal(t, fault.RecursivePlan, self.Problems[0].Code, "nobody has it yet")
	require.Len(t, self.Problems, 1)
	open := check(`{"name":"refund","inputSchema":{"type":"object","properties":{"amount":{}}},"plan":{"steps":[{"id":"a","tool":"work","arguments":{"x":"$input.sum"}}]}}`)
	require.Empty(t, open.Problems)
	require.Equal(t, "/plan/steps/0/arguments/x", open.Warnings[0].Path)
	require.Contains(t, open.Warnings[0].Hint, "amount")
}

func TestADocumentMayCallATemplate(t *testing.T) {
	t.Parallel()
	box := withTemplates(t, map[string]string{"refund": refund, "crm/refund.v2": refund})
	typedTemplate(t, box, "refund", `{"type":"object","properties":{"amount":{"type":"number"},"note":{}},"required":["amount"]}`, "")
	p, r := plan.Parse([]byte(`{"template":"refund","input":{"amount":5,"note":"$ref:x costs ${input.y} {{a.b}}"},"timeout":"9s"}`), box)
	require.Empty(t, r)
	require.Equal(t, "refund", p.Steps[0].ID)
	require.NotNil(t, p.Output)
	require.True(t, p.TimeoutSet)
	args, err := p.NewResolver().Arguments(0, nil)
	require.Nil(t, err)
	require.JSONEq(t, `{"amount":5,"note":"$ref:x costs ${input.y} {{a.b}}"}`, string(args), "an input is data")
	p, r = plan.Parse([]byte(`{"template":"crm/refund.v2"}`), box)
	require.Empty(t, r)
	require.Equal(t, "crm_refund_v2", p.Steps[0].ID)
	for body, want := range map[string]string{
		`{"template":"refund"}`:                                    "invalid_arguments /input",
		`{"template":"refund","input":{"amount":"x"}}`:             "invalid_arguments /input/amount",
		`{"template":"refind","input":{"amount":1}}`:               "unknown_tool /template",
		`{"template":5}`:                                           "invalid_value /template",
		`{"template":"refund","input":[1]}`:                        "invalid_value /input",
		`{"template":"refund","arguments":{"amount":1}}`:           "unknown_field /arguments",
		`{"template":"refund","input":{"amount":1,"amount":2}}`:    "duplicate_key /input/amount",
		`{"template":"refund","input":{"amount":1},"timeout":5}`:   "invalid_value /timeout",
		`{"steps":[{"id":"a","tool":"work"}],"template":"refund"}`: "unknown_field /template",
		`{"steps":[{"id":"a","tool":"work","template":"refund"}]}`: "unknown_field /steps/0/template",
	} {
		_, r := plan.Parse([]byte(body), box)
		require.NotEmpty(t, r.Problems, body)
		require.Equal(t, want, string(r.Problems[0].Code)+" "+r.Problems[0].Path, "%s\n%+v", body, r.Problems)
	}
}
