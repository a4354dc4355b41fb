//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package screen

import "golang.org/x/sys/unix"

// The requests that read how a terminal works, that set it, and that set it and drop what was typed before.
const (
	readMode  = unix.TIOCGETA
	setMode   = unix.TIOCSETA
	flushMode = unix.TIOCSETAF
)
