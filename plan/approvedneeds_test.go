package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// TestOpenPlansThatAreApproved: who closes such a plan amends it, so that whoever goes on with it has to know what an
// amendment of an approved plan is. Nobody else has to before there is one.
func TestOpenPlansThatAreApproved(t *testing.T) {
	t.Parallel()
	both := []string{plan.ApprovedAmendments, plan.Language2}
	for body, needs := range map[string][]string{
		`{"approval":true,"open":true,"steps":[{"id":"a","tool":"t"}]}`:                                both,
		`{"approval":true,"steps":[{"id":"p","plan":{"open":true,"steps":[{"id":"a","tool":"t"}]}}]}`:  both,
		`{"approval":true,"steps":[{"id":"a","tool":"t"}]}`:                                            {plan.Language2},
		`{"open":true,"steps":[{"id":"a","approval":true,"tool":"t"}]}`:                                {plan.Language2},
		`{"approval":false,"steps":[{"id":"p","plan":{"open":true,"steps":[{"id":"a","tool":"t"}]}}]}`: {plan.Language2},
		`{"steps":[{"id":"a","tool":"t"}]}`:                                                            nil,
	} {
		p, report := plan.Parse([]byte(body), nil)
		require.NotNil(t, p, "%s: %v", body, report.Problems)
		require.Equal(t, needs, p.Needs(), body)
	}
}
