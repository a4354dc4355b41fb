package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/telemetry/metrics"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestWhatIsHeldIsLookedAt(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{})
	now := &orchestrator.Now{Partitions: 32, Runs: 7, Behind: 250 * time.Millisecond, Tools: []tool.Demand{
		{Tool: "idle", Limit: 8}, {Tool: "wide", Steps: 5000, Held: 3000, Queued: 1000, Leased: 1000, Limit: 1000, OldestMS: 1500},
	}}
	var err error
	m.Orchestrator(func(context.Context) (*orchestrator.Now, error) { return now, err })
	m.Worker(func() []worker.Load { return []worker.Load{{Tool: "wide", Slots: 16, Busy: 3}} })
	counted(
		t, m,
		`stepjet_partitions_owned 32`, `stepjet_runs_active 7`, `stepjet_cursor_lag_seconds 0.25`,
		`stepjet_tool_demand{tool="idle"} 0`, `stepjet_tool_demand{tool="wide"} 5000`,
		`stepjet_tool_limit{tool="wide"} 1000`, `stepjet_tool_leased{tool="wide"} 1000`,
		`stepjet_tool_oldest_ready_seconds{tool="wide"} 1.5`,
		`stepjet_worker_slots{tool="wide"} 16`, `stepjet_worker_busy{tool="wide"} 3`,
	)
	problems, lint := promlint.New(strings.NewReader(scrape(t, m, "text/plain"))).Lint()
	require.NoError(t, lint)
	require.Empty(t, problems)
	for i := range 2000 {
		now.Tools = append(now.Tools, tool.Demand{Tool: fmt.Sprint("t", i)})
	}
	require.Equal(t, 1000, strings.Count(scrape(t, m, "text/plain"), "\nstepjet_tool_demand{"))
	err = errors.New("no server")
	page := scrape(t, m, "text/plain")
	require.NotContains(t, page, "partitions_owned", "nothing is better than what is not so")
	require.Contains(t, page, "stepjet_worker_slots")
}
