package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// A for_each step's item is no step: nothing refers to how it ended.
func TestAnItemEndsInNoWay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"$error:item", "$status:item", "see ${status:item}", "$ref:item || $error:item.code"} {
		p, r := plan.Parse([]byte(steps(`{"id":"s","tool":"t","for_each":{"in":[1]},"arguments":{"x":"`+text+`"}}`)), nil)
		require.Nil(t, p, text)
		require.Len(t, r.Problems, 1, text)
		require.Equal(t, "invalid_ref", string(r.Problems[0].Code), text)
		require.Equal(t, "/steps/0/arguments/x", r.Problems[0].Path, text)
		require.Contains(t, r.Problems[0].Hint, "$ref:item", text)
	}
}
