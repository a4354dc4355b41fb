package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// TestWhatCallsDontName of a large state or input does not stand in what a round records, unless all of it is read.
func TestWhatCallsDontName(t *testing.T) {
	t.Parallel()
	d := define(t, `"planner": {"tool": "model", "mode": "calls"}, "tools": ["search"], "state": {"schema": {"type": "object", "minProperties": 1}}`)
	big := strings.Repeat("x", 5_000)
	f, err := d.Begin(json.RawMessage(`{"large":"`+big+`","q":"tides"}`), json.RawMessage(`{"page":"`+big+`","user":{"id":7},"a":1}`))
	require.Nil(t, err)
	read := func(answer string) *Answer {
		t.Helper()
		a, report := Read([]byte(answer), f, nil)
		require.Empty(t, report.Problems)
		return a
	}
	a := read(`{"calls":[{"_tool":"search","q":"†input.q","id":"†state.user.id"}]}`)
	require.Less(t, len(a.Fragment), 500)
	require.JSONEq(t, `{"q":"tides","id":7}`, string(a.Calls[0].Arguments))
	for _, all := range []string{`†state`, `†state[\"p\\u0061ge\"]`} {
		a = read(`{"calls":[{"_tool":"search","q":"†input.q","of":"` + all + `"}]}`)
		require.Contains(t, string(a.Calls[0].Arguments), big, "and what is named in another way is not lost")
	}
	a = read(`{"calls":[],"output":"†input.large"}`)
	require.Contains(t, string(a.Fragment), big)

	shared, lost := a.Shared(f, map[string]Wrote{"x": {Result: json.RawMessage(`1`)}})
	require.Nil(t, shared, "an answer without calls writes nothing")
	require.Empty(t, lost)
	a = read(`{"calls":[{"_tool":"search","_outputPath":"†state.r || †state.e"},{"_tool":"search","_id":"two","_outputPath":"†state.page"}]}`)
	shared, lost = a.Shared(f, map[string]Wrote{"search": {Err: &fault.Error{Code: fault.ToolFailed, ToolCode: "declined", Message: "No.", Details: json.RawMessage(`[1]`)}},
		"two": {Result: json.RawMessage(`"` + strings.Repeat("y", MostState) + `"`)}})
	require.JSONEq(t, `{"page":"`+big+`","user":{"id":7},"a":1,"e":{"code":"declined","details":[1],"message":"No."}}`, string(shared))
	require.Contains(t, lost["two"], "more than 131072 bytes")
}
