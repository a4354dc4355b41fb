//go:build !race

package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSimulatedAgents lets worlds live in which a run calls an agent, and no others.
func TestSimulatedAgents(t *testing.T) {
	total := stats{}
	for seed := int64(4); total["world"] < 300; seed += 11 {
		if seed%4 == 3 {
			continue
		}
		w, err := simulate(seed, none, false)
		require.NoError(t, err, "seed %d", seed)
		total.add(w.stats)
	}
	for _, what := range []string{"a planner was asked", "a run that defines its agent itself", "a round was amended", "a round was amended with what was locked", "an amendment of a round was answered", "an amendment of a round was read by another owner, or again", "a call of a round was discarded before it was ready", "an added call: succeeded", "an added call: failed", "of them, one whose rounds were amended", "a round was decided", "a round after another", "a round was made by two", "a part was stored", "a part was there already", "an agent compared with its script", "of them, one whose calls write to a state", "of them, one with a budget", "a word was heard", "somebody was asked about a round", "a round was approved of: approve", "a round was approved of: expire", "a round was refused", "a void answer about a round", "a planner was told why it is to plan anew", "a round that was cut short by its call", "a guard said no to a call", "a guard was asked", "a guard said no to a result", "an agent that was told something came to its end",
		"a call that shuts a gate", "a plan of a round was closed by its owner", "a planner of an agent below answered", "a planner was not asked for want of budget"} {
		require.NotZero(t, total[what], what)
		t.Logf("%d %s", total[what], what)
	}
}
