package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/cost"
)

func TestWithoutAnObserverNothingIsAllocated(t *testing.T) {
	x := &execution{e: &engine{}}
	require.Zero(t, testing.AllocsPerRun(100, func() { x.e.tell.execute(x, false) }))
}

// TestWithoutAnObserverAStepCostsNothingMore: a tenth of the percent of a step's processor time that telemetry may cost
// where it is off (59 µs is the least that was ever measured, docs/performance.md).
func TestWithoutAnObserverAStepCostsNothingMore(t *testing.T) {
	x := &execution{e: &engine{}}
	each := cost.Each(1_000_000, func() { x.e.tell.execute(x, false) })
	t.Logf("%v a step", each)
	require.Less(t, each, 59*time.Nanosecond)
}
