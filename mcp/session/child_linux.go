package session

import (
	"os/exec"
	"runtime"
	"syscall"
)

// isolate gives a program a process group of its own, and has the kernel kill it when this process dies, however that
// dies. What the program has started itself sees its standard input end.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// bind keeps the calling goroutine on its thread: to the kernel a process's parent is the thread that started it, and
// Go ends threads that have nothing to do.
func bind() (release func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
