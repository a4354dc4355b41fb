package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPlannerIsToldWhyItsOutputDoesNotFit: what a round came to that the output schema does not allow is dropped, whether its planner
// put it forward, alone or beside calls, or a direct tool returned it; and the next request says why.
func TestAPlannerIsToldWhyItsOutputDoesNotFit(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"e","tool":"ret","arguments":{"n":"x"}}]}`,
		`{"output":{"n":"$ref:r0.e.n"}}`,
		`{"steps":[{"id":"f","tool":"echo","arguments":{"n":"y"}}],"output":"$ref:f"}`,
		`{"steps":[{"id":"g","tool":"ret","arguments":{"n":2}}]}`)
	s.agent("typed", `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`,
		`{"planner":{"tool":"planner","mode":"plan"},"tools":["echo",{"tool":"echo","as":"ret","direct":true}]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"typed"}]}`, "typed")
	require.JSONEq(t, `{"n":2}`, result(t, o, "a"), "%s", o.JSON())
	var rounds []struct {
		Problems []struct{ Code, At, Message, Hint string }
		Records  []struct{ ID, Status string }
	}
	require.NoError(t, json.Unmarshal(x.asked[3]["rounds"], &rounds))
	require.Len(t, rounds, 3)
	for n, r := range rounds {
		require.Len(t, r.Problems, 1, "%d", n)
		require.Equal(t, "/output", r.Problems[0].At)
		require.Regexp(t, `against its output schema: /n: must be an integer`, r.Problems[0].Message)
		require.NotEmpty(t, r.Problems[0].Hint)
		require.Equal(t, "succeeded", r.Records[0].Status, "what was called is told, too")
	}
	require.JSONEq(t, `"$ref:f"`, string(x.asked[3]["dropped_output"]))
}
