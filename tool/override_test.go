package tool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

func override(t *testing.T, raw string) *tool.Override {
	t.Helper()
	o, err := tool.ParseOverride([]byte(raw))
	require.NoError(t, err)
	return o
}

func TestOverrideBeatsTheDefinitionFieldByField(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"a","tenants":["one"],"inputSchema":{"type":"object","properties":{"items":{"type":"array"}}},
		"x-orchestration":{"max_concurrency":16,"timeout_ms":1000,"retry":{"max_attempts":2,"backoff":{"strategy":"linear","initial_ms":300}},
		"batch":{"argument":"items","max_items":10}}}`)
	digest := d.Digest()
	for name, c := range map[string]struct {
		raw  string
		want func(*tool.Contract)
	}{
		"nothing":         {`{"by":"ann"}`, func(*tool.Contract) {}},
		"limit":           {`{"x-orchestration":{"max_concurrency":12}}`, func(c *tool.Contract) { c.Limit = 12 }},
		"attempts alone":  {`{"x-orchestration":{"retry":{"max_attempts":5}}}`, func(c *tool.Contract) { c.MaxAttempts = 5 }},
		"backoff's start": {`{"x-orchestration":{"retry":{"backoff":{"initial_ms":500}}}}`, func(c *tool.Contract) { c.Backoff.Initial = 500 * time.Millisecond }},
		"items of a batch": {`{"x-orchestration":{"batch":{"max_items":3}}}`, func(c *tool.Contract) {
			c.Batch = &tool.Batch{Argument: "items", MaxItems: 3}
		}},
		"a field taken away": {`{"x-orchestration":{"timeout_ms":null}}`, func(c *tool.Contract) { c.Timeout = tool.DefaultTimeout }},
		"wait":               {`{"x-orchestration":{"wait_timeout_ms":700}}`, func(c *tool.Contract) { c.WaitTimeout = 700 * time.Millisecond }},
		"context": {`{"context":{"filter":"allow-keys","keys":["tenantId"]}}`, func(c *tool.Contract) {
			c.Context = tool.ContextFilter{Filter: tool.AllowKeys, Keys: []string{"tenantId"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := d.Contract()
			require.NoError(t, err)
			c.want(&want)
			e, got, err := override(t, c.raw).Apply(d)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, []string{"one"}, e.Tenants)
			require.Equal(t, digest, d.Digest(), "the definition stays what it was")
		})
	}
	none := (*tool.Override)(nil)
	e, _, err := none.Apply(d)
	require.NoError(t, err)
	require.Same(t, d, e)
	e, _, err = override(t, `{"tenants":["two","three"]}`).Apply(d)
	require.NoError(t, err)
	require.Equal(t, []string{"two", "three"}, e.Tenants)
	e, _, err = override(t, `{"tenants":[]}`).Apply(d)
	require.NoError(t, err)
	require.True(t, e.AllowedFor("anybody"))
}

func TestOverrideOfAPlainTool(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"a","annotations":{"destructiveHint":true}}`)
	_, c, err := override(t, `{"x-orchestration":{"max_concurrency":4}}`).Apply(d)
	require.NoError(t, err)
	require.Equal(t, tool.FanOutBounded, c.Mode)
	require.Equal(t, 4, c.Limit)
}

// An operator keeps a planner from being sent parts in its requests, or in parts at all, whatever its workers declare.
func TestOverrideOfAPlanner(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"a","x-orchestration":{"part_content":true}}`)
	_, c, err := override(t, `{"x-orchestration":{"part_content":false}}`).Apply(d)
	require.NoError(t, err)
	require.False(t, c.PartContent)
	_, c, err = override(t, `{"x-orchestration":{"request":"whole"}}`).Apply(d)
	require.NoError(t, err)
	require.True(t, c.WholeRequest, "which names no part")
}

func TestOverrideThatContradictsTheDefinition(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"a","x-orchestration":{"mode":"sequential-only"}}`)
	for raw, says := range map[string]string{
		`{"x-orchestration":{"max_concurrency":8}}`:                 "contradicts mode sequential-only",
		`{"x-orchestration":{"mode":"dependent"}}`:                  "dependent needs depends_on",
		`{"x-orchestration":{"batch":{"max_items":8}}}`:             "the tool declares none",
		`{"x-orchestration":{"depends_on":["a"]}}`:                  "can't depend on itself",
		`{"x-orchestration":{"backoff":{"initial_ms":40000}}}`:      "",
		`{"x-orchestration":{"mode":null,"max_concurrency":70000}}`: "must be a whole number",
	} {
		o, err := tool.ParseOverride([]byte(raw))
		if err == nil {
			_, _, err = o.Apply(d)
		}
		if says == "" {
			require.NoError(t, err, raw)
			continue
		}
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), raw)
		require.ErrorContains(t, err, says)
	}
	batch := parse(t, `{"name":"a","x-orchestration":{"batch":{"argument":"items","max_items":10}}}`)
	_, _, err := override(t, `{"x-orchestration":{"batch":null}}`).Apply(batch)
	require.ErrorContains(t, err, "can't be taken away")
	_, _, err = override(t, `{"x-orchestration":{"max_concurrency":9}}`).Apply(batch)
	require.ErrorContains(t, err, "max_items 10 needs max_concurrency of at least 10; it is 9")
	_, _, err = override(t, `{"x-orchestration":{"max_concurrency":8}}`).Apply(d)
	require.ErrorContains(t, err, "with the operator's override")
	require.Contains(t, fault.As(err).Hint, "fan-out-bounded")
}

func TestRefusedOverrides(t *testing.T) {
	t.Parallel()
	for raw, says := range map[string]string{
		``:                                    "ends too early",
		`[]`:                                  "must be an object",
		`{"max_concurrency":8}`:               "max_concurrency: no such field",
		`{"tenant":["a"]}`:                    `did you mean "tenants"`,
		`{"tenants":["a.b"]}`:                 `"a.b" is no tenant`,
		`{"tenants":"a"}`:                     "array of strings",
		`{"context":{"filter":"allow-keys"}}`: "context.keys: allow-keys needs",
		`{"by":1}`:                            "by: must be a string",
		`{"x-orchestration":{"maxConcurrency":1}}`:                      `did you mean "max_concurrency"`,
		`{"x-orchestration":{"cost":1}}`:                                "x-orchestration.cost: no such field",
		`{"x-orchestration":{"retry":{"max_attempts":0}}}`:              "retry.max_attempts",
		`{"x-orchestration":{"batch":{"argument":"x"}}}`:                "can't be overridden",
		`{"by":"` + strings.Repeat("x", tool.MaxOverride) + `"}`:        "at most",
		`{"x-orchestration":{"max_concurrency":1,"max_concurrency":2}}`: "used twice",
	} {
		_, err := tool.ParseOverride([]byte(raw))
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), raw)
		require.ErrorContains(t, err, says, raw)
	}
}

func TestOverrideRoundTrip(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{}`, `{"tenants":[]}`, `{"tenants":["a"],"by":"ann"}`,
		`{"x-orchestration":{"retry":{"max_attempts":5},"batch":null},"context":{"filter":"none"},"by":"ann"}`,
	} {
		out, err := json.Marshal(override(t, raw))
		require.NoError(t, err)
		require.JSONEq(t, raw, string(out))
		var again tool.Override
		require.NoError(t, json.Unmarshal(out, &again))
		require.Equal(t, *override(t, raw), again)
	}
}
