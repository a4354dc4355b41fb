package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// counting is a tools file whose only tool leaves a line in a file each time it runs, and takes as long as the test
// says: until another file is there.
func counting(t *testing.T) (tools, lines, gate string) {
	t.Helper()
	dir := t.TempDir()
	lines, gate = filepath.Join(dir, "lines"), filepath.Join(dir, "gate")
	script := fmt.Sprintf(`echo paid >> %s; while [ ! -e %s ]; do sleep 0.02; done; echo '{"ok":true}'`, lines, gate)
	tools = filepath.Join(dir, "tools.json")
	require.NoError(t, os.WriteFile(tools, fmt.Appendf(nil,
		`{"tools":[{"name":"pay","description":"Pays.","exec":{"argv":["/bin/sh","-c",%q]}}]}`, script), 0o600))
	return tools, lines, gate
}

func lineCount(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

const payPlan = `{"steps":[{"id":"a","tool":"pay"}]}`

// The run id is the idempotency key, also of commands that run at the same time without a server.
func TestEightAtOnceInOneFolderRunOnce(t *testing.T) {
	t.Parallel()
	data := folder(t)
	tools, lines, gate := counting(t)
	var all []*process
	for range 8 {
		all = append(all, start(t, data, payPlan, "run", "--run", "pay-1", "-o", "json", "--tools", tools, "-"))
	}
	for _, p := range all {
		waitForLine(t, p, "started") // each follows the run
	}
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	for _, p := range all {
		require.Equal(t, 0, p.end(t), p.errs.String())
		require.Equal(t, outcome.Succeeded, decode(t, p.out.String()).Status)
		require.Equal(t, all[0].out.String(), p.out.String())
	}
	require.Equal(t, 1, lineCount(t, lines))
}

// Whoever has the folder is killed: one of the others goes on with its run and with theirs.
func TestTheFolderIsTakenOver(t *testing.T) {
	t.Parallel()
	data := folder(t)
	tools, lines, gate := counting(t)
	first := start(t, data, payPlan, "run", "--run", "one", "--tools", tools, "-")
	waitForLine(t, first, "started")
	second := start(t, data, payPlan, "run", "--run", "two", "-o", "json", "--tools", tools, "-")
	waitForLine(t, second, "joining")
	waitForLine(t, second, "started")
	watcher := start(t, data, "", "watch", "one", "-o", "json")
	require.Eventually(t, func() bool { return lineCount(t, lines) >= 2 }, patience, 10e6)
	require.NoError(t, first.Process.Kill())
	require.Equal(t, -1, first.end(t))
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Equal(t, 0, second.end(t), second.errs.String())
	require.Equal(t, outcome.Succeeded, decode(t, second.out.String()).Status)
	// The step of the first was at a worker that is dead: it runs again when its lease is over, wherever its tool is.
	// The watcher has the folder by now, without that tool.
	stdout, stderr, code := execute(t, data, payPlan, "run", "--run", "one", "-o", "json", "--tools", tools, "-")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stderr, "was there before")
	require.Equal(t, outcome.Succeeded, decode(t, stdout).Status)
	require.Equal(t, 0, watcher.end(t), watcher.errs.String())
	require.Contains(t, watcher.out.String(), `"succeeded"`)
}

// A run that begins while "stepjet dev" starts goes to its store, and so do runs that begin before it.
func TestARunWhileDevStarts(t *testing.T) {
	t.Parallel()
	data := folder(t)
	var all []*process
	begin := func(i int) {
		all = append(all, start(t, data, "", "run", "--run", fmt.Sprint("r", i), "-o", "json", examples+"weather.json"))
	}
	begin(0)
	p := start(t, data, "", "dev", "-o", "json", "--listen", "127.0.0.1:0")
	for i := 1; i < 4; i++ {
		begin(i)
	}
	for _, r := range all {
		require.Equal(t, 0, r.end(t), r.errs.String())
	}
	require.Eventually(t, func() bool { return strings.Contains(p.out.String(), `"url"`) }, patience, 10e6, "%v", &p.errs)
	stdout, stderr, code := execute(t, data, "", "list", "-o", "json")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, 4, strings.Count(stdout, `"run":`), stdout)
	// A second dev is told where the first is; it doesn't wait for it.
	_, stderr, code = execute(t, data, "", "dev", "--listen", "127.0.0.1:0")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "nats://127.0.0.1:")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.end(t), p.errs.String())
}

// A folder that can't be written is an error, and no store that nobody keeps takes its place.
func TestAFolderThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, stderr, code := execute(t, filepath.Join(file, "data"), payPlan, "run", "--run", "pay-1", "-")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "invalid_config")
	if runtime.GOOS == "linux" {
		_, stderr, code = execute(t, "/proc/stepjet", payPlan, "run", "--run", "pay-1", "-")
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, "invalid_config")
	}
}
