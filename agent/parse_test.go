package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

// TestEntries: what each form of entry comes to, as a condition over facts and the facts that it sets.
func TestEntries(t *testing.T) {
	t.Parallel()
	golden(t, "entries.txt", func(in string) string {
		d, r := Parse(definition(in), everything)
		if len(r.Problems) > 0 {
			return problems(r)
		}
		var b strings.Builder
		for _, e := range d.Entries() {
			fmt.Fprintf(&b, "%s (%s", e.Name, e.Kind)
			if e.Tool != e.Name {
				b.WriteString(" " + e.Tool)
			}
			fmt.Fprintf(&b, "): %s\n", e.Condition())
			if sets := e.Sets()[2:]; len(sets) > 0 {
				fmt.Fprintf(&b, "  sets %s\n", strings.Join(sets, ", "))
			}
			if e.Tool == "update_email" || e.Tool == "add_item" || e.Kind == KindFacade && e.facade.takesArgs {
				fmt.Fprintf(&b, "  takes %s\n", e.InputSchema)
			}
			if want := "Does " + e.Tool + "."; e.Kind == KindTool && e.Description != want {
				fmt.Fprintf(&b, "  %s\n", e.Description)
			}
		}
		return b.String() + problems(r)
	})
}

// TestProblems: what is refused when a definition is applied, all of it at once, with its place.
func TestProblems(t *testing.T) {
	t.Parallel()
	golden(t, "problems.txt", func(in string) string {
		body := []byte(in)
		if !strings.HasPrefix(in, "{") {
			body = definition(in)
		}
		d, r := Parse(body, everything)
		require.Equal(t, d == nil, len(r.Problems) > 0)
		return problems(r)
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools": ["search"]`)
	require.Equal(t, Planner{Tool: "model", Mode: ModeTools}, d.Planner)
	require.Equal(t, DefaultRounds, d.MaxRounds)
	require.Equal(t, AdvanceAll, d.Advance)
	require.Equal(t, DefaultConcurrency, d.Concurrency)
	require.Equal(t, Context{ResultBytes: DefaultResultBytes, TotalBytes: DefaultTotalBytes}, d.Context)
	require.Zero(t, d.Budget)
	require.Nil(t, d.Respond)
	require.Equal(t, AdvanceCall, define(t, `"planner": {"tool": "model", "mode": "calls"}`).Advance)
	require.Equal(t, AdvanceAll, define(t, `"planner": {"tool": "model", "mode": "calls"}, "advance": "all"`).Advance)
	require.Equal(t, &Respond{DefaultExtraInstruction}, define(t, `"respond": true`).Respond)
	require.Nil(t, define(t, `"respond": false`).Respond)

	// What a planner is told where nobody says more is the text of the seed that agents come from, with the description.
	told := func(of string) string {
		d, report := Parse([]byte(of), nil)
		require.Empty(t, report.Problems)
		instructions, extra := d.Told(json.RawMessage(`{"topic": "tides"}`))
		require.Empty(t, extra)
		return instructions
	}
	require.Equal(t, "You are an intelligent agent that can use tools to help you complete tasks. "+
		"Use the provided tools to perform the following task: Orchestrates math operations",
		told(`{"name": "math", "description": "Orchestrates math operations", "agent": {"planner": {"tool": "model"}, "tools": ["add"]}}`))
	require.Equal(t, "Find tides.", told(`{"name": "math", "description": "Finds.", "agent": {"planner": {"tool": "model"}, "instructions": "Find ${input.topic}.", "tools": ["add"]}}`))
}

// TestEveryField reads a definition that uses each field.
func TestEveryField(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/everything.json")
	require.NoError(t, err)
	d, r := Parse(raw, everything)
	require.Empty(t, problems(r))
	require.Equal(t, "researcher", d.Name)
	require.Equal(t, Planner{"model", "large", ModeCommands, 4000}, d.Planner)
	require.Equal(t, 7, d.MaxRounds)
	require.Equal(t, AdvanceWave, d.Advance)
	require.Equal(t, 8, d.Concurrency)
	require.Equal(t, "Research ${input.topic}.", d.Instructions.written)
	require.Equal(t, "10m0s", d.Budget.Time.String())
	require.Equal(t, [3]float64{200, 1e6, 2.5}, [3]float64{float64(d.Budget.Steps), float64(d.Budget.Tokens), d.Budget.CostUSD})
	require.Equal(t, "DRAFT", d.States.Initial)
	require.Equal(t, []string{"DRAFT", "SENT"}, d.States.All)
	require.JSONEq(t, `{"n": 1}`, string(d.State.Initial))
	require.Equal(t, &Approval{"May this run?", 24 * time.Hour, true}, d.Approval)
	require.Equal(t, "Be short.", d.Respond.ExtraInstruction)
	require.Equal(t, Context{1000, 50_000, "summary"}, d.Context)
	require.True(t, d.CaptureNested)
	require.Len(t, d.Guards, 2)
	require.NotNil(t, d.Input)
	require.NotNil(t, d.Output)
	known := knownFields(t, []byte(Schema))
	for _, fields := range [][]string{agentFields, plannerFields, approvalFields, budgetFields, statesFields, stateFields, respondFields, contextFields,
		guardFields, toolFields, groupFields, chainFields, unfoldFields, searchFields} {
		for _, f := range fields {
			require.True(t, known[f], "the schema lacks %s", f)
			require.Contains(t, string(raw), `"`+f+`"`, "the definition with every field lacks it")
		}
	}
}

// knownFields returns all names of properties of a schema.
func knownFields(t *testing.T, raw []byte) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if p, ok := v["properties"].(map[string]any); ok {
				for name := range p {
					all[name] = true
				}
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	walk(v)
	return all
}

// TestTheSchemaAcceptsWhatParseAccepts over all cases of the tables.
func TestTheSchemaAcceptsWhatParseAccepts(t *testing.T) {
	t.Parallel()
	schema, err := tool.CompileSchema(json.RawMessage(Schema))
	require.NoError(t, err)
	checked := 0
	for _, file := range []string{"entries.txt", "problems.txt"} {
		raw, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		for c := range strings.SplitSeq(string(raw), "\n\n") {
			in, _, _ := strings.Cut(c, "\n----")
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(in), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
			in = strings.Join(lines, "\n")
			body := []byte(in)
			if !strings.HasPrefix(in, "{") {
				body = definition(in)
			}
			if d, _ := Parse(body, everything); d == nil {
				continue
			}
			checked++
			require.Empty(t, schema.Check(body, nil), "%s", body)
		}
	}
	require.Greater(t, checked, 30)
}

// TestWithoutACatalog: what only the tools can tell is not asked.
func TestWithoutACatalog(t *testing.T) {
	t.Parallel()
	d, r := Parse(definition(`"tools": ["nobody_knows", {"group": "whatever"}, {"tool": "x", "needs": {"all": ["y"]}}]`), nil)
	require.Empty(t, problems(r))
	require.Len(t, d.Entries(), 2)
}

// FuzzParse: no text makes it panic, and the definition is nil if and only if there are problems.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"entries.txt", "problems.txt"} {
		raw, err := os.ReadFile("testdata/" + file)
		require.NoError(f, err)
		for c := range strings.SplitSeq(string(raw), "\n\n") {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, in string) {
		d, r := Parse([]byte(in), everything)
		require.Equal(t, d == nil, len(r.Problems) > 0)
		d, r = Parse(definition(in), everything)
		require.Equal(t, d == nil, len(r.Problems) > 0)
	})
}
