package serve_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// scraped waits until a program's metrics hold all lines. Its observer is told a moment after what it tells of.
func scraped(t *testing.T, address string, lines ...string) {
	t.Helper()
	var page string
	defer func() {
		if t.Failed() {
			t.Log(page)
		}
	}()
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + address + "/metrics")
		require.NoError(t, err)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		page = "\n" + string(raw)
		for _, line := range lines {
			if !strings.Contains(page, "\n"+line+"\n") {
				return false
			}
		}
		return true
	}, 20*time.Second, 20*time.Millisecond)
}

// TestProgramsCount: what the programs that serve have done is on the page that a Prometheus server reads.
func TestProgramsCount(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	owner := start(t, "orchestrator", srv.URL(), "--health", "127.0.0.1:0", "--metrics-by-tenant")
	hosting := start(t, "toolworker", srv.URL(), "--health", "127.0.0.1:0")
	counting, working := owner.says(`address=(\S+)`)[1], hosting.says(`address=(\S+)`)[1]
	hosting.says("msg=ready")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	got, err := c.Run(ctx, []byte(`{"steps":[
		{"id":"a","tool":"add","arguments":{"a":1,"b":2}},
		{"id":"b","tool":"divide","arguments":{"a":"$ref:a.result","b":0}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, got.Errors)
	scraped(t, counting,
		`stepjet_steps_total{code="",status="succeeded",tenant="default",tool="add"} 1`,
		`stepjet_steps_total{code="tool_terminal",status="failed",tenant="default",tool="divide"} 1`,
		`stepjet_dead_letters_total{code="tool_terminal",tool="divide"} 1`,
		`stepjet_step_run_seconds_count{tool="add"} 1`,
		`stepjet_step_wait_seconds_count{tool="add"} 1`,
		`stepjet_runs_total{status="partial",tenant="default"} 1`,
	)
	scraped(t, counting,
		`stepjet_partitions_owned 64`, `stepjet_runs_active 0`, `stepjet_tool_demand{tool="add"} 0`, `stepjet_tool_limit{tool="add"} 4096`)
	scraped(t, working, `stepjet_worker_busy{tool="add"} 0`)
}
