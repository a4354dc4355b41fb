package ui_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What tools took and came to is counted from runs that are over: attempts, items and what stands in plans within, each
// once.
func TestToolsHaveFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.run("acme", "counted", `{"steps":[
		{"id":"s","tool":"sleep","for_each":{"in":[20,20,20,80],"as":"ms"},"arguments":{"ms":"$ref:ms"}},
		{"id":"f","tool":"fail","arguments":{"until_attempt":3,"message":"no"},"retry":{"max_attempts":3,"backoff":{"strategy":"constant","initial_ms":1}}},
		{"id":"no","tool":"fail","arguments":{"message":"no","terminal":true}},
		{"id":"never","tool":"echo","arguments":{"x":"$ref:no"}},
		{"id":"sub","plan":{"output_steps":["x"],"steps":[{"id":"x","tool":"echo","arguments":{"v":1}}]}}]}`)
	w.run("beta", "other", `{"steps":[{"id":"a","tool":"echo","arguments":{}}]}`)
	type figure struct {
		Tool          string
		Calls, Failed int
		PerMinute     float64 `json:"per_minute"`
		P50           float64 `json:"p50_ms"`
		P99           float64 `json:"p99_ms"`
		WaitP99       float64 `json:"wait_p99_ms"`
		Codes         map[string]int
	}
	type figures struct {
		Tools []figure
		Runs  int
		Since time.Time
	}
	w.settled(2)
	f := get[figures](w, "figures?tenant=acme")
	require.Equal(t, 1, f.Runs)
	require.False(t, f.Since.IsZero())
	by := map[string]figure{}
	for _, x := range f.Tools {
		by[x.Tool] = x
	}
	require.Len(t, by, 3, fmt.Sprint(by))
	require.Equal(t, 4, by["sleep"].Calls)
	require.GreaterOrEqual(t, by["sleep"].P50, 18.) // within nine percent
	require.GreaterOrEqual(t, by["sleep"].P99, 73.)
	require.GreaterOrEqual(t, by["sleep"].WaitP99, 0.)
	require.Zero(t, by["sleep"].Failed)
	require.Equal(t, 4, by["fail"].Calls)
	require.Equal(t, 3, by["fail"].Failed)
	require.Equal(t, map[string]int{"tool_failed": 2, "tool_terminal": 1}, by["fail"].Codes)
	require.Equal(t, 1, by["echo"].Calls, "a step that was skipped is no call, nor is another tenant's")
	require.Positive(t, by["echo"].PerMinute)
	require.Empty(t, get[figures](w, "figures?tenant=nobody").Tools)
	require.Equal(t, f.Tools, get[figures](w, "figures?tenant=acme&hours=1").Tools)
	refused(w, w.request(http.MethodGet, "/api/v1/figures?tenant=no/tenant", nil), http.StatusBadRequest)
	for _, hours := range []string{"0", "169", "x"} {
		refused(w, w.request(http.MethodGet, "/api/v1/figures?tenant=acme&hours="+hours, nil), http.StatusBadRequest)
	}
}
