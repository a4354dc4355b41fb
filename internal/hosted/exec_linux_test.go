package hosted

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/worker"
)

// A child in a session of its own outlives neither a program that ends well nor one that is killed; nor does one whose
// environment was emptied, or a child of its child. What another program still needs is left.
func TestExecLeavesNobodyBehind(t *testing.T) {
	for how, start := range map[string]string{
		"setsid":         `setsid sleep 1000 >/dev/null 2>&1 & `,
		"setsid, output": `setsid sleep 1000 & `,
		"empty":          `env -i setsid sleep 1000 >/dev/null 2>&1 & `,
		"twice":          `setsid sh -c 'setsid sleep 1000 & sleep 1000' >/dev/null 2>&1 & `,
		"daemon":         `(setsid sleep 1000 >/dev/null 2>&1 &) ; `,
	} {
		for _, ends := range []string{"well", "killed"} {
			t.Run(how+", "+ends, func(t *testing.T) {
				tag := "1000." + strconv.FormatInt(time.Now().UnixNano()%1e9+1e9, 10)
				script, more := strings.ReplaceAll(start, "1000", tag)+"echo done", ""
				if ends == "killed" {
					script, more = script+"; sleep "+tag, `,"timeout_ms":300`
				}
				_, err := invoke(context.Background(), shell(t, script, more), `{}`, worker.Info{})
				if ends == "killed" {
					require.Equal(t, fault.Timeout, fault.CodeOf(err))
				} else {
					require.NoError(t, err)
				}
				require.Empty(t, running.pids)
				require.Eventually(t, func() bool { return len(sleepers(t, tag)) == 0 }, 20*time.Second, 10*time.Millisecond, "%v", sleepers(t, tag))
				require.Eventually(t, func() bool { return len(zombies()) == 0 }, 20*time.Second, 10*time.Millisecond, "who adopts has to bury")
			})
		}
	}
}

func TestExecLeavesOtherProgramsAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	done := make(chan error)
	f := shell(t, `setsid sh -c 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; while ! [ -e "$1.end" ]; do sleep 0.01; done' sh "$1"; echo done`, ``, "f")
	go func() {
		_, err := invoke(context.Background(), f, `{"f":"`+file+`"}`, worker.Info{})
		done <- err
	}()
	pidFrom(t, file)
	_, err := invoke(context.Background(), shell(t, `true`, ``), `{}`, worker.Info{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file+".end", nil, 0o600))
	require.NoError(t, <-done)
}

// sleepers returns the processes with a word in their command line.
func sleepers(t *testing.T, tag string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, f := range all {
		if raw, err := os.ReadFile(f); err == nil && strings.Contains(string(raw), tag) {
			pids = append(pids, f)
		}
	}
	return pids
}

func zombies() (pids []int) {
	for _, pid := range children(os.Getpid()) {
		if p, ok := look(pid); ok && p.zombie {
			pids = append(pids, pid)
		}
	}
	return pids
}
