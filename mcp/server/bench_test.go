package server_test

import (
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// BenchmarkCall measures a call of a tool that does nothing: over HTTP, through a stored plan, a worker and back.
func BenchmarkCall(b *testing.B) {
	for _, version := range versions {
		b.Run(version, func(b *testing.B) {
			w := newWorld(b, nil)
			s := w.connect(version, nil)
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				_, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "greet", Arguments: named{"Ada"}})
				require.NoError(b, err)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "ms-p50")
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "ms-p99")
		})
	}
}
