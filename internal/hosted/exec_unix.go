//go:build unix

package hosted

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate gives the program a process group of its own and lets the end of its context kill all of it, and on
// Linux also what has left the group.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		killTree(cmd.Process.Pid) // what has left the group is still beneath the program
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return os.ErrProcessDone
		}
		return nil
	}
}

// killGroup kills what is left of the program's group after it has ended. A group keeps its number from being used
// again as long as anything is in it; an empty one gives an error that says so.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
