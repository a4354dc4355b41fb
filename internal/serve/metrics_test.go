package serve_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
)

// page returns what a program tells whoever scrapes it.
func page(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(raw)
}

// scraped waits until a program's metrics hold all lines. Its observer is told a moment after what it tells of.
func scraped(t *testing.T, address string, lines ...string) {
	t.Helper()
	var said string
	defer func() {
		if t.Failed() {
			t.Log(said)
		}
	}()
	require.Eventually(t, func() bool {
		said = "\n" + page(t, address)
		for _, line := range lines {
			if !strings.Contains(said, "\n"+line+"\n") {
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

// TestEachToolHasOneSeriesOfDemand: a scaler fails on a tool without one, and takes the first of two. So each
// orchestrator has exactly one of each tool that is registered, whether anybody hosts it or wants it or not.
func TestEachToolHasOneSeriesOfDemand(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	var addresses []string
	for range 2 {
		addresses = append(addresses, start(t, "orchestrator", srv.URL(), "--health", "127.0.0.1:0").says(`address=(\S+)`)[1])
	}
	start(t, "toolworker", srv.URL(), "--health", "127.0.0.1:0").says("msg=ready")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	store, err := kv.Open(ctx, natstest.Connect(t, srv))
	require.NoError(t, err)
	_, err = store.Requests.RequestRegister(ctx, []byte(`{"name":"hosted_by_nobody","description":"test","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	_, err = c.Submit(ctx, []byte(`{"steps":[{"id":"a","tool":"hosted_by_nobody","for_each":{"in":[1,2,3],"as":"x"}}]}`), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	known, err := c.Tools(ctx)
	require.NoError(t, err)
	require.Greater(t, len(known), 20)
	line := regexp.MustCompile(`(?m)^stepjet_tool_demand\{tool="([^"]+)"\} (\d+)$`)
	require.Eventually(t, func() bool {
		wanted := 0
		for _, address := range addresses {
			seen := map[string]bool{}
			for _, m := range line.FindAllStringSubmatch(page(t, address), -1) {
				require.False(t, seen[m[1]], "two of %s", m[1])
				seen[m[1]] = true
				n, err := strconv.Atoi(m[2])
				require.NoError(t, err)
				if m[1] == "hosted_by_nobody" {
					wanted += n
				} else {
					require.Zero(t, n, m[1])
				}
			}
			for _, x := range known {
				if !seen[x.Name] {
					return false // it has not heard of it yet
				}
			}
			require.Len(t, seen, len(known))
		}
		return wanted == 3
	}, 2*time.Minute, 50*time.Millisecond)
}
