package saved_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/saved"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

const run = `{"steps": [
  {"id": "look", "tool": "look", "arguments": {"customer": "ann", "tags": ["a", {"b": true}], "z": 1, "a": 2}},
  {"id": "pay", "tool": "pay", "arguments": {"amount": 50.0, "to": "$ref:look.account", "customer": "ann"}}
], "timeout": "9s", "approval": true, "output": "$ref:pay"}`

func TestConstantsBecomeInputs(t *testing.T) {
	t.Parallel()
	raw, err := saved.Template("refund", "Refunds.", []byte(run), []saved.Input{
		{"pay.amount", "amount"}, {"look.customer", "customer"}, {"pay.customer", "customer"}, {"look.tags[1].b", "flag"},
	})
	require.NoError(t, err)
	d, err := tool.ParseDefinition(raw)
	require.NoError(t, err)
	require.EqualValues(t, tool.AlwaysApprove, d.Orchestration.Approval, "who had to approve the plan approves its calls")
	require.JSONEq(t, `{"type":"object","properties":{"amount":{"type":"number","examples":[50.0]},"customer":{"type":"string","examples":["ann"]},
		"flag":{"type":"boolean","examples":[true]}},"required":["amount","customer","flag"],"additionalProperties":false}`, string(d.InputSchema))
	require.Contains(t, string(d.Plan), `"tags":["a",{"b":"$input.flag"}],"z":1,"a":2`, "what is left keeps its order")
	require.Empty(t, plan.CheckTemplate(d, nil).Problems)
	p, _ := plan.ParseLimited([]byte(`{"template":"refund","input":{"amount":1,"customer":"bob","flag":false}}`), nil,
		plan.Limits{Templates: map[string]*plan.Template{"refund": {Name: "refund", Plan: d.Plan}}})
	require.Len(t, p.Steps[0].Plan.Steps, 2)
}

func TestWhatIsNoConstantBecomesNoInput(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{
		"pay.to": "no constant", "pay": "no place", "gone.x": "no step", "pay.none": "nothing at", "pay.amount.x": "nothing at",
		"look.tags": "another input", "pay.": "no place", "look.tags[7]": "nothing at", "look.tags[": "no place",
	} {
		_, err := saved.Template("x", "", []byte(run), []saved.Input{{"look.tags[0]", "first"}, {path, "name"}})
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), path)
		require.Contains(t, err.Error(), says, path)
	}
	_, err := saved.Template("x", "", []byte(run), []saved.Input{{"look.z", "n"}, {"look.a", "n"}})
	require.ErrorContains(t, err, "stands for 1 in one place and for 2")
	_, err = saved.Template("x", "", []byte(run), []saved.Input{{"look.z", "a name"}})
	require.ErrorContains(t, err, "no name")
	_, err = saved.Template("x", "", []byte(`{"template":"refund"}`), nil)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}
