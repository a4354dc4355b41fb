package mcp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBaselineSaysWhy(t *testing.T) {
	t.Parallel()
	for _, excused := range []string{baseline, chainline} {
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			lines, err := readBaseline(excused, revision)
			require.NoError(t, err)
			assert.NotEmpty(t, lines)
		}
	}
	lines, err := readBaseline(clientline, clientRevision)
	require.NoError(t, err)
	assert.Len(t, lines, 1)
	_, err = readBaseline("2026-07-28 a b:", "2026-07-28")
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
	}, baseline, "2025-11-25", &out)
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

func TestNamesInTheChain(t *testing.T) {
	t.Parallel()
	n := renamer{prefix: "suite_"}
	request := func(body string) (string, string) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header.Set("Mcp-Name", "echo")
		require.True(t, n.in(httptest.NewRecorder(), r))
		out, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, int64(len(out)), r.ContentLength)
		return string(out), r.Header.Get("Mcp-Name")
	}
	body, name := request(`{"method":"tools/call","params":{"name": "echo","arguments":{"name":"echo","n":12345678901234567890}}}`)
	assert.JSONEq(t, `{"method":"tools/call","params":{"name":"suite_echo","arguments":{"name":"echo","n":12345678901234567890}}}`, body)
	assert.Contains(t, body, "12345678901234567890")
	assert.Equal(t, "suite_echo", name)
	for _, kept := range []string{
		`{"method":"tools/call","params":{"name":"execute_tool_plan"}}`, `{"method":"resources/read","params":{"name":"echo"}}`, `{`,
	} {
		body, _ = request(kept)
		assert.Equal(t, kept, body)
	}
	listed, err := io.ReadAll(n.out(io.NopCloser(strings.NewReader("data: {\"name\":\"suite_a\"},{\"name\":\"b\"}\n\ndata: {\"name\":\"suite_c\"}"))))
	require.NoError(t, err)
	assert.Equal(t, "data: {\"name\":\"a\"},{\"name\":\"b\"}\n\ndata: {\"name\":\"c\"}", string(listed))
}
