package mcp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBaselineSaysWhy(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		lines, err := readBaseline(baseline, revision)
		require.NoError(t, err)
		assert.NotEmpty(t, lines)
	}
	_, err := readBaseline("2026-07-28 a b:", "2026-07-28")
	require.Error(t, err)
}

func TestWhatTheChecksComeTo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tally, err := judge(map[string][]check{
		"tools-list":          {{ID: "tools-list", Status: "SUCCESS"}, {ID: "other", Status: "FAILURE", Message: "why"}},
		"completion-complete": {{ID: "completion-complete", Status: "FAILURE"}, {ID: "x", Status: "SKIPPED"}},
		"nothing":             {{ID: "x", Status: "INFO"}},
		"prompts-list":        {{ID: "prompts-list", Status: "SUCCESS"}},
		"server-sse-polling":  nil,
	}, "2025-11-25", &out)
	require.NoError(t, err)
	assert.Equal(t, 2, tally.Passed)
	assert.Equal(t, 1, tally.Baselined)
	problems := strings.Join(tally.Problems, "\n")
	assert.Contains(t, problems, "tools-list other: why")
	assert.Contains(t, problems, "nothing: it checked nothing")
	assert.Contains(t, problems, "prompts-list prompts-list: it passes, or is not run")
	assert.NotContains(t, problems, "server-sse-polling")
	assert.NotContains(t, problems, "completion-complete")
}
