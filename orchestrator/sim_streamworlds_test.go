//go:build !race

package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSimulatedStreams lets worlds live in which a planner hands over steps while it writes, and no others.
func TestSimulatedStreams(t *testing.T) {
	t.Parallel()
	total := stats{}
	for seed := int64(4); total["world"] < 300; seed += 11 {
		if seed%4 == 3 || seed/11%6 != 3 {
			continue
		}
		w, err := simulate(seed, none, false)
		require.NoError(t, err, "seed %d", seed)
		total.add(w.stats)
	}
	for _, what := range []string{"a planner handed over steps", "a step began while its planner wrote", "an amendment of a planner was read", "steps were answered", "an amendment of an attempt that was over",
		"steps were refused: permission", "steps were refused: already_finished", "an answer that another worker had begun to write", "a planner was told what has begun", "worker died while it wrote",
		"an agent that streams compared with its script", "an object of a call that had begun"} {
		require.NotZero(t, total[what], what)
		t.Logf("%d %s", total[what], what)
	}
}
