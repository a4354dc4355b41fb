//go:build !race

package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSimulatedAgents lets worlds live in which a run calls an agent, and no others. -seeds are those that it picks them of.
func TestSimulatedAgents(t *testing.T) {
	n := 6600
	if *simSeeds > 0 {
		n = *simSeeds
	}
	total, failed := simulateAll(*simFrom, n, func(seed int64) bool { return (&world{seed: seed}).withAgents() }, none)
	if len(failed) > 0 {
		t.Fatalf("%d of %d worlds went wrong: %v\n%s", len(failed), total["world"], failed[:min(len(failed), 20)], report(failed[0], none))
	}
	if *simSeeds > 0 {
		t.Logf("%d worlds\n%s", total["world"], total)
		return
	}
	for _, what := range []string{"a planner was asked", "a run that defines its agent itself", "a round was amended", "a round was amended with what was locked", "an amendment of a round was answered", "an amendment of a round was read by another owner, or again", "a call of a round was discarded before it was ready", "an added call: succeeded", "an added call: failed", "an added call referred to more of an earlier round", "of them, one whose rounds were amended", "a round was decided", "a round after another", "a round was made by two", "a part was stored", "a part was there already", "a request had its last part in it", "a request had a part in it that was not stored yet", "an agent compared with its script", "of them, one whose calls write to a state", "of them, one with a budget", "a word was heard", "somebody was asked about a round", "a round was approved of: approve", "a round was approved of: expire", "a round was refused", "a void answer about a round", "a planner was told why it is to plan anew", "a round that was cut short by its call", "a guard said no to a call", "a guard was asked", "a call passed two people", "a guard said no to a result", "a summary was asked for", "a summary stands", "a planner was told a summary", "a request behind a cut", "a request that begins as the one before", "an agent that was told something came to its end",
		"a call that shuts a gate", "a plan of a round was closed by its owner", "a planner of an agent below answered", "a planner was not asked for want of budget", "an object went to a sink", "an object went to a sink again", "an object was where it belongs", "an object that is taken, for what is around it", "an object that is not taken, for what is around it"} {
		require.NotZero(t, total[what], what)
		t.Logf("%d %s", total[what], what)
	}
}
