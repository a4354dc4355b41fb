package agentbench

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/bench"
)

// BenchmarkRounds is what a round costs with the server, an orchestrator, a worker and a client in one process: seconds of a
// processor and bytes allocated, of 64 agents at once in loops of so many rounds. Wall times of a busy machine say little.
func BenchmarkRounds(b *testing.B) {
	for _, l := range []loop{{Rounds: 50, Calls: 1, Bytes: 16}, {Rounds: 50, Calls: 3, Bytes: 16}, {Rounds: 500, Calls: 3, Bytes: 16}} {
		b.Run(fmt.Sprintf("rounds=%d/calls=%d", l.Rounds, l.Calls), func(b *testing.B) {
			w, err := newWorld(b.Context(), testEnv(b), bench.Embedded)
			require.NoError(b, err)
			defer w.Close()
			require.NoError(b, w.herd(b.Context(), l, 64))
			var before, after runtime.MemStats
			var rounds, cpu float64
			runtime.ReadMemStats(&before)
			for b.Loop() {
				agents := 6400 / l.Rounds
				used := processor()
				require.NoError(b, w.herd(b.Context(), l, agents))
				cpu += (processor() - used).Seconds()
				rounds += float64(agents * l.Rounds)
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(cpu*1e6/rounds, "cpu-us/round")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/rounds, "B/round")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/rounds, "allocs/round")
		})
	}
}

// processor is the time that this process has had of processors.
func processor() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
