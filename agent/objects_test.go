package agent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// TestWhatIsSelectedMayAskAround: conditions about objects in entries that a tool returns see what those of the definition see, but
// in runs of before, where nobody would select such.
func TestWhatIsSelectedMayAskAround(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools": [{"unfold": "api", "description": "Pass level.", "inputSchema": {"type": "object"}, "select": "connect"}]`)
	const around, alone = `[{"tool": "fetch", "artifact": {"type": "T", "when": "$input.n == $artifact.n"}}]`, `[{"tool": "fetch", "artifact": {"type": "T", "when": "$artifact.n > 1"}}]`
	f, _ := d.Begin(json.RawMessage(`{"n": 7}`), nil)
	before, _ := d.Begin(json.RawMessage(`{"n": 7}`), nil)
	SelectFormerly(before)
	before = before.Clone()
	for _, entries := range []string{around, alone} {
		all, bad := f.Selected("api", json.RawMessage(entries))
		require.Empty(t, bad)
		require.Len(t, all, 1)
	}
	all, bad := before.Selected("api", json.RawMessage(alone))
	require.Empty(t, bad)
	require.Len(t, all, 1)
	_, bad = before.Selected("api", json.RawMessage(around))
	require.Len(t, bad, 1)
	require.Equal(t, fault.InvalidCondition, bad[0].Code)

	f.Add(Outcome{Entry: "api", Arguments: json.RawMessage(`{"level": 1}`), Result: json.RawMessage(around)})
	f.Add(Outcome{Entry: "fetch", Result: json.RawMessage(`{"n": 6}`)})
	require.Empty(t, f.Artifacts())
	f.Add(Outcome{Entry: "fetch", Result: json.RawMessage(`{"n": 7}`)})
	require.Len(t, f.Artifacts(), 1)
}

// TestTheStateIsAskedForOnlyWhereAConditionIs: what it takes to know it is not done for all others.
func TestTheStateIsAskedForOnlyWhereAConditionIs(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools": ["search", {"tool": "fetch", "artifact": {"type": "T", "when": "$artifact.n == 1 or $artifact.n == $state.n and $artifact.m == $state.m"}}]`)
	f, _ := d.Begin(nil, json.RawMessage(`{"n": 3, "m": 4}`))
	asked := 0
	add := func(entry, result, state string) int {
		asked = 0
		f.Add(Outcome{Entry: entry, Result: json.RawMessage(result), State: func() json.RawMessage {
			asked++
			return json.RawMessage(state)
		}})
		return len(f.Artifacts())
	}
	require.Equal(t, 0, add("search", `{"n": 2}`, `{"n": 2}`))
	require.Equal(t, 0, asked)
	require.Equal(t, 0, add("fetch", `{"n": 2, "m": 4}`, `{"n": 2}`))
	require.Equal(t, 1, asked, "once")
	require.Equal(t, 1, add("fetch", `{"n": 2, "m": 5}`, `{"n": 2, "m": 5}`))
	require.Equal(t, 2, add("fetch", `{"n": 3, "m": 4}`, ``), "else it is that of the facts")
}

func TestAConditionThatFailsOnTheObjectAlone(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools": [{"tool": "fetch", "artifact": {"type": "T", "when": "$artifact.n > 1 and $opened.db.x == null and $bound.T == null"}}, {"chain": "T", "tools": ["act"]}, {"unfold": "db", "description": "D.", "tools": ["search"]}]`)
	f, _ := d.Begin(nil, nil)
	for _, n := range []string{`"x"`, `2`, `3`} {
		f.Add(Outcome{Entry: "fetch", Result: json.RawMessage(`{"n": ` + n + `}`)})
	}
	require.Len(t, f.Artifacts(), 1, "the first can't be compared, and the last comes behind one that the chain has")
}
