//go:build unix && !linux

package session

import (
	"os/exec"
	"syscall"
)

// isolate gives a program a process group of its own. If this process is killed, the program sees its standard input
// end.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func bind() (release func()) { return func() {} }
