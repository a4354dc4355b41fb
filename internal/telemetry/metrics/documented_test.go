package metrics_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/telemetry/metrics"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// TestEveryMetricIsDocumented: the page for operators names the metrics there are, all of them, and no others.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	m := everything()
	names := func(pattern, text string) (all []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	require.Equal(
		t, names(`(?m)^# TYPE (stepjet_[a-z_]+) `, scrape(t, m, "text/plain")), names("`(stepjet_[a-z_]+)`", string(page)),
	)
}

// everything has a value of each metric.
func everything() *metrics.Metrics {
	m := metrics.New(metrics.Options{})
	events(m)
	m.Orchestrator(func(context.Context) (*orchestrator.Now, error) {
		return &orchestrator.Now{Tools: []tool.Demand{{Tool: "a"}}}, nil
	})
	m.Worker(func() []worker.Load { return []worker.Load{{Tool: "a"}} })
	return m
}
