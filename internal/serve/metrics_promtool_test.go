//go:build promtool

package serve_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// TestPrometheusReadsWhatProgramsTell has Prometheus' own tool read and judge the pages of an orchestrator and a worker
// that have done something. "make deploy" runs it.
func TestPrometheusReadsWhatProgramsTell(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	owner := start(t, "orchestrator", srv.URL(), "--health", "127.0.0.1:0", "--metrics-by-tenant")
	hosting := start(t, "toolworker", srv.URL(), "--health", "127.0.0.1:0")
	addresses := []string{owner.says(`address=(\S+)`)[1], hosting.says(`address=(\S+)`)[1]}
	hosting.says("msg=ready")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.Run(ctx, []byte(`{"steps":[{"id":"a","tool":"add","arguments":{"a":1,"b":2}},
		{"id":"b","tool":"divide","arguments":{"a":"$ref:a.result","b":0}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	scraped(t, addresses[0], `stepjet_steps_total{code="",status="succeeded",tenant="default",tool="add"} 1`,
		`stepjet_runs_total{status="partial",tenant="default"} 1`)
	for _, address := range addresses {
		judge := exec.CommandContext(ctx, "promtool", "check", "metrics", "--extended")
		judge.Stdin = strings.NewReader(page(t, address))
		said, err := judge.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), "stepjet_build_info")
	}
}
