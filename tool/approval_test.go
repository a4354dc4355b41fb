package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// What can't be told of a call asks: of what isn't there, of what has no parts, of what fails.
func TestAnApprovalThatCanNotBeDecidedIsWanted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		condition, arguments string
		wanted, why          bool
	}{
		{"", `{}`, false, false},
		{"always", `{}`, true, false},
		{"$args.amount > 100", `{"amount":101}`, true, false},
		{"$args.amount > 100", `{"amount":100}`, false, false},
		{"$args.amount > 100", `{}`, true, false},
		{"$args.amount > 100", `{"amount":null}`, true, false},
		{"$args.amount > 100", `{"amount":"500"}`, true, true},
		{"$args.amout > 100", `{"amount":5}`, true, false},
		{"not ($args.amount.x < 100)", `{"amount":5}`, true, true},
		{"$args.to.limit < $args.amount", `{"amount":7780,"to":"x"}`, true, true},
		{"$args.to.limit == 5", `{"to":"x"}`, true, true},
		{"$args.to.limit == 5", `{"to":null}`, false, false},
		{"$args.to.limit == 5", `{"to":{}}`, false, false},
		{"$args.list[0] > 5", `{"list":{"0":9}}`, true, true},
		{"($args.amount ?? 0) > 100", `{}`, false, false},
		{"$args.kind == 'wire' or $args.amount > 100", `{"kind":"wire"}`, true, false},
		{"$args.kind == 'wire' or $args.amount > 100", `{"kind":"card"}`, true, false},
		{"$args.kind == 'wire' and $args.amount > 100", `{"kind":"card"}`, false, false},
		{"$args.force", `{"force":true}`, true, false},
		{"$args.force", `{"force":false}`, false, false},
		{"$args.force", `{}`, true, false},
		{"$args.amount", `{"amount":[]}`, false, false},
		{"$args.amount + 1", `{"amount":1}`, true, true},
		{"sum($args.lines[*].amount) > 100", `{"lines":[{"amount":60},{"amount":60}]}`, true, false},
		{"sum($args.lines[*].amount) > 100", `{"lines":[{"amount":60},{"amount":6}]}`, false, false},
		{"sum($args.lines[*].amount) > 100", `{"lines":[]}`, false, false},
		{"len($args.lines[*].amount) > 100", `{"lines":[{"amount":60},{}]}`, true, false},
		{"len($args.lines[*].amount) > 100", `{"lines":{"amount":60}}`, true, true},
		{"len($args.lines[*].amount) > 100", `{"lines":[60]}`, true, true},
	} {
		contract := tool.Contract{Approval: tool.Approval(c.condition)}
		wanted, why := contract.WantsApproval([]byte(c.arguments))
		require.Equal(t, c.wanted, wanted, "%s of %s", c.condition, c.arguments)
		require.Equal(t, c.why, why != nil, "%s of %s: %v", c.condition, c.arguments, why)
	}
}

// The condition of a tool with a batch counts for both ways of calling it, whichever it speaks of.
func TestAnApprovalHoldsForBothFormsOfABatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		condition, arguments string
		wanted               bool
	}{
		{"$args.amount > 100", `{"amount":500}`, true},
		{"$args.amount > 100", `{"amount":5}`, false},
		{"$args.amount > 100", `{"payments":[{"amount":5},{"amount":500}]}`, true},
		{"$args.amount > 100", `{"payments":[ {"amount":5} , {"amount":7} ]}`, false},
		{"$args.amount > 100", `{"payments":[{"amount":5},7]}`, true},
		{"$args.amount > 100", `{"payments":{"amount":5}}`, true},
		{"$args.amount > 100", `{"payments":[]}`, false},
		{"$args.amount > 100", `{"payments":[{"amount":5},{}]}`, true},
		{"$args.to != 'me'", `{"to":"me","payments":[{"amount":5}]}`, false},
		{"$args.to != 'me'", `{"to":"me","payments":[{"to":"you"}]}`, true},
		{"sum($args.payments[*].amount) > 100", `{"amount":500}`, true},
		{"sum($args.payments[*].amount) > 100", `{"amount":5}`, false},
		{"sum($args.payments[*].amount) > 100", `{"payments":[{"amount":60},{"amount":60}]}`, true},
		{"$args.payments[0].amount > 100", `{"amount":500}`, true},
	} {
		contract := tool.Contract{Approval: tool.Approval(c.condition), Batch: &tool.Batch{Argument: "payments"}}
		wanted, _ := contract.WantsApproval([]byte(c.arguments))
		require.Equal(t, c.wanted, wanted, "%s of %s", c.condition, c.arguments)
	}
}

// A condition that asks for what no call has is refused where it is written, with what there is.
func TestAnApprovalOfWhatNoCallHas(t *testing.T) {
	t.Parallel()
	definition := func(condition string) error {
		_, err := tool.ParseDefinition(fmt.Appendf(nil, `{"name":"pay","inputSchema":{"type":"object","additionalProperties":false,"properties":{
			"amount":{"type":"number"},"lines":{"type":"array","items":{"type":"object","properties":{"price":{"type":"number"}}}}}},
			"x-orchestration":{"approval":%q}}`, condition))
		return err
	}
	for _, right := range []string{"$args.amount > 100", "sum($args.lines[*].price) > 5", "$args.lines[0].price > 5", "len($args) > 1"} {
		require.NoError(t, definition(right), right)
	}
	for wrong, hint := range map[string]string{
		"$args.amout > 100": "amount and lines", "$args.amount.x > 5": "declares", "sum($args.lines[*].prise) > 5": "price", "$args.lines.price > 5": "declares",
	} {
		err := definition(wrong)
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), wrong)
		require.Contains(t, fault.As(err).Hint, hint, wrong)
		require.Contains(t, err.Error(), "approval")
	}
	require.Error(t, definition("sum($args.a[*].b[*].c) > 5"))
	require.Error(t, definition("$args.[*] > 5"))
}

// A call with many items is not looked at for ever: who takes too long asks.
func TestAnApprovalOfManyItemsEnds(t *testing.T) {
	t.Parallel()
	item := `{"s":"` + strings.Repeat("a", 60_000) + `"}`
	contract := tool.Contract{Approval: "$args.s matches '(a|b|ab)*c'", Batch: &tool.Batch{Argument: "x"}}
	wanted, why := contract.WantsApproval([]byte(`{"x":[` + strings.Repeat(item+",", 1000) + item + `]}`))
	require.True(t, wanted)
	require.ErrorContains(t, why, "too long")
}
