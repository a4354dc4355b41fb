package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// TestAnAgentGetsItsInputAsItIs: what looks like a reference in it is text, since a person or a program has written it that
// never saw a plan.
func TestAnAgentGetsItsInputAsItIs(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`{"topic":"costs $ref:x"}`, `{"topic":"${ref:foo} and $$ref:x"}`, `{"$ref":"x","a":["$input.x",{"$calc":"1 + 1"}]}`, `{"n":1.50, "t":"{{x}}"}`, `{}`,
	} {
		body, err := client.AgentPlan("a", []byte(input))
		require.NoError(t, err)
		p, report := plan.Parse(body, nil)
		require.Empty(t, report.Problems, input)
		got, bad := p.Arguments(0, func(int) ([]byte, bool) { panic("there is nothing to refer to") })
		require.Nil(t, bad, input)
		require.JSONEq(t, input, string(got))
	}
	_, err := client.AgentPlan("a", []byte(`[1]`))
	require.Equal(t, fault.InvalidArguments, fault.CodeOf(err))
}
