package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// seat is a person at a terminal, and the command that runs on it.
type seat struct {
	*testing.T
	screen shared
	hands  *os.File
	cmd    *exec.Cmd
}

// sit runs the command on a pseudo terminal.
func sit(t *testing.T, data string, args ...string) *seat {
	t.Helper()
	hands, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(hands.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(hands.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	s := &seat{T: t, hands: hands, cmd: exec.Command(binary, args...)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(data), "STEPJET_DATA=" + data, "TMPDIR=" + os.TempDir(), "NO_COLOR=1", "TERM=xterm", "USER=ann",
		"STEPJET_TOOLS=" + examples + "../tools.json"}
	require.NoError(t, s.cmd.Start())
	require.NoError(t, tty.Close())
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := hands.Read(buf)
			_, _ = s.screen.Write(buf[:n])
			if err != nil { // the command has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended by itself
		<-read
		_ = hands.Close()
	})
	return s
}

// sees waits until something stands on the screen.
func (s *seat) sees(what string) {
	s.Helper()
	require.Eventually(s.T, func() bool { return strings.Contains(s.screen.String(), what) }, patience, 10*time.Millisecond, "%s: %s", what, &s.screen)
}

func (s *seat) interrupts() { require.NoError(s.T, s.cmd.Process.Signal(os.Interrupt)) }

// ends waits for the command, and returns its exit code.
func (s *seat) ends() int {
	s.Helper()
	_ = s.cmd.Wait() // its exit code says it
	return s.cmd.ProcessState.ExitCode()
}

// The first interrupt leaves an agent's run and says how to come back; a second one cancels it.
func TestAnInterruptLeavesAnAgentAndAnotherCancelsIt(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	hold := holding{asked: make(chan struct{}), goesOn: make(chan struct{})}
	planning(t, url, hold)
	defer close(hold.goesOn)
	_, stderr, code := execute(t, data, "", "agents", "apply", agentFiles+"helper.json")
	require.Zero(t, code, stderr)
	first := sit(t, data, "agents", "run", "helper", "--run", "r", "--input", `{"by": 0}`)
	<-hold.asked
	first.sees("failed     first  divide")
	first.interrupts()
	first.sees("stepjet watch r")
	require.Equal(t, ExitInterrupt, first.ends(), "it was left alone")
	first.sees("stepjet get r")
	stdout, stderr, code := execute(t, data, "", "get", "r")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "r  running")

	second := sit(t, data, "agents", "run", "helper", "--run", "r", "--input", `{"by": 0}`)
	second.sees("the run was there before")
	second.interrupts()
	second.sees("press Ctrl-C again")
	second.interrupts()
	second.sees("cancelled: r")
	require.Equal(t, ExitInterrupt, second.ends())
	_, stderr, code = execute(t, data, "", "get", "r", "--wait", "1m", "--outcome")
	require.Equal(t, exitFailed, code, stderr)
	require.Contains(t, stderr, "cancelled")
}
