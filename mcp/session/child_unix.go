//go:build unix

package session

import (
	"os/exec"
	"syscall"
)

// terminateGroup asks a process and what it started to end, killGroup ends them. Both fail only where nothing is left.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd)      { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
