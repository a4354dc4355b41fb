package outcome_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// TestWithhold: what is no JSON is left out at each place, and all else stays.
func TestWithhold(t *testing.T) {
	t.Parallel()
	bad := json.RawMessage(`{"n":`)
	doc := &outcome.Run{
		Outcome: &outcome.Outcome{Run: "r", Results: outcome.Results{{Step: "a", JSON: bad}, {Step: "b", JSON: []byte("1")}, {Step: "c"}}},
		Steps:   []outcome.Step{{ID: "a", Result: bad, Steps: []outcome.Step{{ID: "x", Result: bad}}, Items: []outcome.Step{{ID: "y", Result: []byte("2")}}}},
	}
	require.False(t, json.Valid(doc.JSON()))
	require.True(t, outcome.Withhold(doc))
	require.True(t, json.Valid(doc.JSON()), "%s", doc.JSON())
	require.Equal(t, outcome.Results{{Step: "b", JSON: []byte("1")}}, doc.Outcome.Results)
	require.Len(t, doc.Outcome.Errors, 2)
	require.Equal(t, fault.Internal, doc.Outcome.Errors[0].Code)
	require.JSONEq(t, "2", string(doc.Steps[0].Items[0].Result))
	require.False(t, outcome.Withhold(doc))
	whole := &outcome.Run{Outcome: &outcome.Outcome{Run: "r", Output: bad}}
	require.True(t, outcome.Withhold(whole))
	require.JSONEq(t, "null", string(whole.Outcome.Output))
}
