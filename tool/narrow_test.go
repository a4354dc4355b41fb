package tool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

func TestATenantOverridesNothingThatIsShared(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"tenants":["acme"]}`, `{"tenants":[]}`, `{"x-orchestration":{"max_concurrency":1}}`, `{"x-orchestration":{"mode":"sequential-only"}}`,
		`{"x-orchestration":{"retry":{"backoff":{"strategy":"none"}}}}`, `{"x-orchestration":{"delivery":"at_most_once"}}`, `{"x-orchestration":{"batch":{"max_items":1}}}`,
		`{"x-orchestration":{"error_propagation":"fail-fast"}}`, `{"x-orchestration":{"depends_on":[]}}`, `{"x-orchestration":{"backoff":null}}`,
		`{"x-orchestration":{"timeout_ms":null}}`, `{"x-orchestration":{"retry":null}}`, `{"weights":1}`, `[]`,
	} {
		_, err := tool.ParseNarrowing([]byte(raw))
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), "%s: %v", raw, err)
	}
	for _, raw := range []string{`{}`, `{"x-orchestration":{"retry":{"max_attempts":2},"timeout_ms":5,"wait_timeout_ms":6}}`, `{"context":{"filter":"none"},"by":"ann"}`} {
		_, err := tool.ParseNarrowing([]byte(raw))
		require.NoError(t, err, raw)
	}
}

func TestATenantsOverrideOnlyTakesAway(t *testing.T) {
	t.Parallel()
	c := tool.Contract{Limit: 8, MaxAttempts: 3, Timeout: time.Minute}
	narrow := func(raw string) tool.Contract {
		o, err := tool.ParseNarrowing([]byte(raw))
		require.NoError(t, err)
		return o.Narrow(c)
	}
	require.Equal(t, c, narrow(`{"x-orchestration":{"retry":{"max_attempts":9},"timeout_ms":3600000}}`))
	require.Equal(t, tool.Contract{Limit: 8, MaxAttempts: 1, Timeout: time.Second, WaitTimeout: 2 * time.Second},
		narrow(`{"x-orchestration":{"retry":{"max_attempts":1},"timeout_ms":1000,"wait_timeout_ms":2000}}`))
	require.Equal(t, c, (*tool.Override)(nil).Narrow(c))
}

// TestTwoFiltersLetPassWhatBothDo compares every pair with what each says by itself.
func TestTwoFiltersLetPassWhatBothDo(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c"}
	filters := []tool.ContextFilter{{}, {Filter: tool.PassThrough}, {Filter: tool.PassNone}, {Filter: "newer"}}
	for _, mode := range []tool.FilterMode{tool.AllowKeys, tool.DenyKeys} {
		for _, of := range [][]string{{"a"}, {"b"}, {"a", "b"}, {"c", "a"}} {
			filters = append(filters, tool.ContextFilter{Filter: mode, Keys: of})
		}
	}
	for _, f := range filters {
		for _, g := range filters {
			both := f.And(g)
			if f.Filter != "newer" && g.Filter != "newer" {
				require.NoError(t, both.Validate(), "%v and %v", f, g)
			}
			for _, k := range keys {
				require.Equal(t, f.Passes(k) && g.Passes(k), both.Passes(k), "%v and %v: %s", f, g, k)
			}
		}
	}
}
