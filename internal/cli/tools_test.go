package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

const toolFiles = "testdata/tools/"

func TestGoldenToolCommands(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, args := range [][]string{
		{"tools", "apply", "--dry-run", toolFiles + "mixed.json"},
		{"tools", "apply", "--dry-run", "-o", "json", toolFiles + "changed.json", toolFiles + "worker.json"},
		{"tools", "apply", "--dry-run", "testdata/plans/invalid.json"},
		{"tools", "apply", "--dry-run", toolFiles + "flaws.json", toolFiles + "output.json"},
		{"tools", "apply", "--dry-run", "-o", "json", toolFiles + "flaws.json", toolFiles + "output.json"},
		{"tools", "export", "--tools", toolFiles + "flaws.json"},
		{"tools", "export", "--tools", toolFiles + "output.json"},
		{"validate", "--tools", toolFiles + "flaws.json", examples + "weather.json"},
		{"validate", "--tools", toolFiles + "output.json", examples + "weather.json"},
		{"tools", "apply"},
		{"tools", "apply", toolFiles + "absent.json"},
		{"tools", "apply", "--server", "nats://127.0.0.1:1", toolFiles + "changed.json"},
		{"tools", "show", "ask"},
		{"tools", "show", "ask", "-o", "json"},
		{"tools", "override"},
		{"tools", "override", "x"},
		{"tools", "override", "x", "--clear", "--set", "mode=dependent"},
		{"tools", "override", "x", "--set", "mode"},
		{"tools", "override", "x", "--set", "retry=3", "--set", "retry.max_attempts=3"},
		{"tools", "override", "x", "--context-filter", "allow-keys"},
		{"tools", "override", "x", "--file", toolFiles + "changed.json"},
		{"tools", "remove"},
		{"tools", "remove", "no tool"},
		{"tools", "export", "--form", "yaml", "--tools", toolFiles + "changed.json"},
		{"tools", "export", "--meta", "--guide"},
		{"tools", "export", "--form", "openai", "--tools", toolFiles + "changed.json"},
		{"tools", "export", "--guide", "--tools", "testdata/tools.json"},
		{"tools", "export", "--guide", "--tools", "testdata/tools.json", "nothing", "compare*"},
		{"tools", "export", "--form", "mcp", "--tools", "testdata/tools.json", "get_weather"},
	} {
		b.WriteString(transcript(t, "", args...))
	}
	for _, name := range []string{"apply", "override", "remove", "export"} {
		text, _, _ := strings.Cut(transcript(t, "", "tools", name, "--help"), "\nGlobal Flags:")
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), 120, line)
		}
		b.WriteString(text + "\n")
	}
	golden(t, "tools", b.String())
}

// What an operator does with tools, on a real server.
func TestToolsOfAnOperator(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	var b strings.Builder
	run := func(args ...string) {
		stdout, stderr, code := execute(t, data, "", append([]string{"tools"}, args...)...)
		fmt.Fprintf(&b, "$ stepjet tools %s\n%s%s--- exit code %d\n\n", strings.Join(args, " "), stderr, stdout, code)
	}
	run("apply", toolFiles+"mixed.json")
	run("apply", toolFiles+"mixed.json")
	run("apply", toolFiles+"changed.json", toolFiles+"worker.json")
	run("show", "docs.search")
	run("override", "docs.search", "--set", "max_concurrency=4", "--set", "retry.max_attempts=7", "--set", "depends_on=null",
		"--context-filter", "allow-keys=tenantId,locale", "--tenants", "default,other", "--by", "Ada")
	run("apply", toolFiles+"changed.json")
	run("show", "docs.search")
	run("override", "docs.search", "--set", "mode=sequential-only")
	run("override", "later", "--set", "timeout_ms=500", "--by", "Ada")
	run("export", "--form", "anthropic", "--tools", toolFiles+"changed.json")
	run("override", "docs.search", "--clear")
	run("remove", "docs.search")
	run("remove", "docs.search")
	golden(t, "tools_operator", b.String())

	// Steps without a worker hold a removal up, and outlive it.
	_, stderr, code := execute(t, data, "", "tools", "apply", toolFiles+"worker.json", "-q")
	require.Zero(t, code, stderr)
	_, stderr, code = execute(t, data, `{"steps":[{"id":"a","tool":"uptime"}]}`, "submit", "--run", "waits", "-")
	require.Zero(t, code, stderr)
	require.Eventually(t, func() bool {
		_, stderr, code = execute(t, data, "", "tools", "remove", "uptime")
		if code == 0 { // the step was not dispatched yet; the tool comes back
			_, _, code = execute(t, data, "", "tools", "apply", toolFiles+"worker.json")
			require.Zero(t, code)
			return false
		}
		return true
	}, patience, 50e6)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "conflict: 1 steps of uptime are pending")
	stdout, stderr, code := execute(t, data, "", "tools", "remove", "uptime", "--force")
	require.Zero(t, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "1 of its steps wait")
	_, stderr, code = execute(t, data, "", "get", "waits", "--wait", "50ms")
	require.Equal(t, exitWait, code, stderr)
}

func TestWhatIsExportedIsWhatCounts(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	_, stderr, code := execute(t, data, "", "tools", "override", "divide", "--set", "max_concurrency=3", "-o", "json")
	require.Zero(t, code, stderr)
	stdout, stderr, code := execute(t, data, "", "tools", "export", "--form", "openai")
	require.Zero(t, code, stderr)
	list, err := tool.ParseDefinitions([]byte(stdout))
	require.NoError(t, err)
	for _, d := range list {
		if d.Name == "divide" {
			require.Equal(t, 3, d.Orchestration.MaxConcurrency)
		}
	}
	stdout, stderr, code = execute(t, data, "", "tools", "show", "divide", "-o", "json")
	require.Zero(t, code, stderr)
	var entry tool.Registered
	require.NoError(t, json.Unmarshal([]byte(stdout), &entry))
	require.Equal(t, 3, entry.Contract.Limit)
	require.Nil(t, entry.Definition.Orchestration)
	stdout, stderr, code = execute(t, data, "", "tools", "export", "--meta", "--form", "anthropic", "--strict")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"name": "execute_tool_plan"`)
	require.Contains(t, stdout, "- divide(")
}
