package agents_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator/agents"
)

// TestSelectedAsInRunsOfBefore: entries that a tool has selected, whose conditions about objects ask for more than these, are there in
// runs that need to know of such, and in no others: so owners of all versions have the same entries.
func TestSelectedAsInRunsOfBefore(t *testing.T) {
	t.Parallel()
	a := define(t, `"tools":["pay",{"unfold":"api","description":"Pass level.","select":"find"}]`)
	for _, knows := range []bool{true, false} {
		l := &agents.Loop{Definition: a, Objects: knows, Rounds: []*agents.Round{{Answer: []byte(`{"steps":[{"id":"o","tool":"api"}]}`)}}}
		d, err := l.Decide("a/=0")
		require.Nil(t, err)
		require.Empty(t, d.Problems)
		l.Rounds[0].Record = d
		l.Rounds[0].Calls = []agents.Call{{Path: "o", Single: true, Seq: 3, Status: "succeeded", Arguments: json.RawMessage(`{}`),
			Value: json.RawMessage(`[{"tool":"late","artifact":{"type":"T","when":"$round > 0"}}]`)}}
		l.Rounds = append(l.Rounds, &agents.Round{Answer: []byte(`{"steps":[{"id":"l","tool":"late"}]}`)})
		d, err = l.Decide("a/=1")
		require.Nil(t, err)
		if knows {
			require.Empty(t, d.Problems)
			continue
		}
		require.Len(t, d.Problems, 1)
		require.Equal(t, fault.UnknownTool, d.Problems[0].Code)
	}
}
