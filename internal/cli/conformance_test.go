package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/conformance"
)

func TestConformanceOfAWorkerThatDoesNothing(t *testing.T) {
	t.Parallel()
	stdout, _, code := command(t, "", "conformance", "worker", "--", binary, "version", "--no-such-flag")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, "✗ takes-steps")
	require.Contains(t, stdout, "no-such-flag", "what the worker printed")
	require.Contains(t, stdout, "- heartbeat        not checked: the worker takes no steps")
	require.Contains(t, stdout, "does not conform: takes-steps")

	stdout, _, code = command(t, "", "conformance", "worker", "-o", "json", "--", binary, "version")
	require.Equal(t, exitFailed, code)
	var r conformance.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.False(t, r.Conforms)
	require.Equal(t, conformance.Failed, r.Checks[0].Status)
}

func TestConformanceUsage(t *testing.T) {
	t.Parallel()
	_, stderr, code := command(t, "", "conformance", "worker")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "missing COMMAND")
	_, stderr, code = command(t, "", "conformance", "worker", "--only", "nothing", "--", "true")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, `no check "nothing"`)
	stdout, _, code := command(t, "", "conformance", "worker", "--list")
	require.Equal(t, exitOK, code)
	require.Equal(t, conformance.Names(), strings.Fields(stdout))
}
