package request

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them; then look at the diff")

const full = `"planner":{"tool":"model","model":"large","mode":"%s","max_output_tokens":900},"instructions":"Find ${input.topic}.",
	"extra_requirement":"In <English>.","max_rounds":9,"budget":{"steps":50,"tokens":9000,"cost_usd":2,"time":"10m"},
	"state":{"initial":{"seen":0}},"context":{"result_bytes":256,"summary":"digest"},"respond":{"extra_instruction":"Be brief."},
	"tools":["search",{"tool":"analyze","needs":{"all":["search"]}},{"unfold":"db","description":"Asks.","tools":["query"]}]`

// TestGolden plays a loop in each mode: what its planner is sent, put together too, and its parts, byte by byte.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, mode := range []agent.Mode{agent.ModeTools, agent.ModePlan, agent.ModeCalls, agent.ModeCommands} {
		var out strings.Builder
		w := newWorld(t, define(t, fmt.Sprintf(full, mode)), `{"topic":"tides","n":1234567890123456789012345678901234567890.00}`)
		spending := agent.Spending{Budget: w.d.Budget}
		sent := func(r Request) {
			raw, err := Rendered(context.Background(), r, w.known, w.fetch)
			require.NoError(t, err)
			require.True(t, json.Valid(raw))
			fmt.Fprintf(&out, "sent %d of %d, %d fresh\n%s\nwhole\n%s\n\n", len(r.Bytes), r.Size, r.Fresh, r.Bytes, raw)
		}
		over := func(r Round, summary string) {
			fmt.Fprintf(&out, "part\n%s\n\n", w.end(r, summary).Bytes)
		}
		sent(w.open(Now{Left: spending.Left()}))
		done := []Record{
			{ID: "search", Tool: "search", Purpose: "see", TodoSuggestion: "read", Next: "analyze", Arguments: Whole([]byte(`{"q":"tides"}`)),
				Status: "succeeded", Result: Value{JSON: []byte(`["` + strings.Repeat("ä", 200)), Bytes: 70_000, Object: "Hits_2"}, Note: "made before", MS: 12},
			{ID: "search_2", Tool: "search", Purpose: "see", Arguments: Whole([]byte(`{"q":7}`)), Status: "failed",
				Error: Whole([]byte(`{"code":"tool_failed","message":"no"}`)), MS: 3},
			{ID: "v", Arguments: Value{}, Status: "succeeded", Result: Whole([]byte(`1e2`))},
			{ID: "later", Tool: "analyze", Arguments: Whole([]byte(`{"of":"$ref:search"}`)), Status: NotRun},
		}
		over(Round{Plan: Whole([]byte(`{"as":"it was written"}`)), Text: "I look.", Records: done,
			Provider: json.RawMessage(`{"provider": "anthropic", "model":"m","items":[{"signature":"c2ln=="}]}`)}, "")
		w.shared = `{"seen":2,"page":"` + strings.Repeat("p", 300) + `"}`
		sent(w.open(Now{Left: agent.Budget{Steps: -1, Tokens: 5, CostUSD: 0.1 + 0.2, Time: 10 * time.Minute}, Elapsed: time.Minute, MaxOutput: 300,
			Dropped: Whole([]byte(`{"done":true}`))}, Message{ID: "a1", By: "ann", Content: json.RawMessage(`"With my dog."`)},
			Message{ID: "a2", By: "bob", Content: json.RawMessage(`[{"type":"text","text":"Stop."}]`), Interrupt: true}))
		over(Round{Plan: Whole([]byte(`"{\"steps\": 7"`)), Problems: []fault.Problem{
			{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: `there is no tool "serch"`, Hint: `did you mean "search"?`}}}, "")
		w.facts.Add(agent.Outcome{Entry: "db"})
		sent(w.open(Now{Left: spending.Left()}))
		r, ok := w.loop.Respond(Now{}, done)
		require.True(t, ok)
		sent(r)
		fmt.Fprintf(&out, "tool_logs\n%s\n", ToolLogs(done, 256))

		path := filepath.Join("testdata", string(mode)+".txt")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), out.String(), "-update writes it anew")
	}
}
