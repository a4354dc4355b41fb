package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/tool"
)

// The worker that dev runs is listed, with what it has done; one that is asked for is one that lives.
func TestWorkersAreListed(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	_, stderr, code := execute(t, data, "", "run", "--run", "counted", examples+"weather.json")
	require.Zero(t, code, stderr)
	stdout, stderr, code := execute(t, data, "", "workers", "-o", "json")
	require.Zero(t, code, stderr)
	var all []tool.Worker
	require.NoError(t, json.Unmarshal([]byte(stdout), &all))
	require.Len(t, all, 1)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, []string{host, version.Stepjet()}, []string{all[0].Host, all[0].Version})
	require.Positive(t, all[0].Done)
	stdout, stderr, code = execute(t, data, "", "workers", "--wait", "2s")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, all[0].Name)
	require.Regexp(t, `WORKER +HOST +VERSION +UP +BUSY +DONE +FAILED +TOOLS`, stdout)
	_, stderr, code = execute(t, data, "", "workers", "--wait", "0s")
	require.Equal(t, exitInvalid, code, stderr)
}

// What workers say is anybody's text: it stays in its line.
func TestWorkersInATable(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	require.NoError(t, showWorkers(a, []tool.Worker{
		{Name: "a", Host: "pod-1", Version: "v0.3.0", Heard: now, Since: now.Add(-time.Hour), Busy: 3, Done: 1204, Failed: 7, More: 2744,
			Tools: []tool.WorkerTool{{Tool: "fetch", Slots: 8, Held: true, Why: "its server\nis away"}, {Tool: "search", Slots: 64, Busy: 3}}},
		{Name: "b\x1b[31m\n", Host: "pod-2", Version: "v0.2.0", Heard: now, Since: now, Leaving: true, Tools: []tool.WorkerTool{}},
	}))
	require.Equal(t, `WORKER   HOST   VERSION     UP  BUSY  DONE  FAILED  TOOLS
a        pod-1  v0.3.0   1h00m     3  1204       7  search 3/64, fetch 0/8 held (its server is away), and 2744 more
b [31m   pod-2  v0.2.0    0 ms     0     0       0  (leaving)
`, out.String())
	require.Contains(t, errs.String(), "2 versions of Stepjet")
	out.Reset()
	require.NoError(t, showWorkers(a, nil))
	require.Empty(t, out.String())
}
