package worker

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/cost"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
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

// TestLogsOfAStepNameItsSampledTrace: who reads a line finds the trace, where somebody keeps it.
func TestLogsOfAStepNameItsSampledTrace(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	says := func(flags string) string {
		var out bytes.Buffer
		x := &execution{
			e:         &engine{log: slog.New(slog.NewTextHandler(&out, nil))},
			attempt:   subjects.Attempt{Run: subjects.NewRun("acme", "r"), Generation: 1, Tool: "t", Step: "s", Number: 2},
			step:      wire.Step{Trace: wire.Trace{Parent: "00-" + id + "-b7ad6b7169203331-" + flags}},
			delivered: 3,
		}
		x.log().Info("x")
		return out.String()
	}
	require.Contains(t, says("01"), "delivery=3 trace_id="+id)
	require.Contains(t, says("00"), "delivery=3\n")
}
