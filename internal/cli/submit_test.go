package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// TestSubmitTellsARejection: the server's registry knows what no look at the plan alone can tell.
func TestSubmitTellsARejection(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	const unknown = `{"steps":[{"id":"a","tool":"no_such_tool"}]}`
	stdout, stderr, code := execute(t, data, unknown, "submit", "--run", "pay-1", "-")
	require.Equal(t, exitInvalid, code, stderr)
	require.Empty(t, stdout, "there is no run to go on with")
	require.Contains(t, stderr, "unknown_tool")
	require.Contains(t, stderr, "no_such_tool")

	stdout, _, code = execute(t, data, unknown, "submit", "--run", "pay-1", "-o", "json", "-")
	require.Equal(t, exitInvalid, code)
	var out outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	require.Equal(t, outcome.Rejected, out.Status)
	require.Len(t, out.Problems, 1)

	// The id is free: for a plan that is better, and again for nothing else.
	stdout, stderr, code = execute(t, data, "", "submit", "--run", "pay-1", examples+"weather.json")
	require.Zero(t, code, stderr)
	require.Equal(t, "pay-1\n", stdout)
	stdout, stderr, code = execute(t, data, "", "run", "--run", "pay-1", examples+"weather.json")
	require.Zero(t, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	require.Equal(t, outcome.Succeeded, out.Status)
	_, stderr, code = execute(t, data, unknown, "submit", "--run", "pay-1", "-")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "conflict")

	_, stderr, code = execute(t, data, unknown, "run", "--run", "pay-2", "-")
	require.Equal(t, exitInvalid, code, stderr)
	stdout, stderr, code = execute(t, data, "", "run", "--run", "pay-2", examples+"weather.json")
	require.Zero(t, code, "%s%s", stdout, stderr)
}
