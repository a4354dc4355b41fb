package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// A word of the language of conditions is that word, also where a step is called so.
func TestAStepMayBeCalledLikeAWordOfConditions(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"null", "true", "and", "in", "contains"} {
		p, r := plan.Parse([]byte(steps(`{"id":"`+id+`","tool":"t"},{"id":"b","tool":"t",`+
			`"if":"$ref:`+id+` == null and ($ref:`+id+` in [1] or $ref:`+id+` contains true)"}`)), nil)
		require.NotNil(t, p, "%s: %v", id, r.Problems)
	}
}

// A key in quotes is one, also where a step is called so.
func TestAKeyOfAConditionMayBeCalledLikeAStep(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t",`+
		`"if":"$ref:a[\"a.x\"] == 1 or $ref:a[\"a|b\"].x"}`)), nil)
	require.NotNil(t, p, "%v", r.Problems)
}
