package cast

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stepjet/stepjet/internal/lab/vt"
)

// Typing is made up: nobody is at the keyboard.
const (
	perLetter = 25 * time.Millisecond
	thinks    = 900 * time.Millisecond
)

// Record runs command lines one after the other in a shell on a pseudo terminal of so many columns, and returns what stood
// there. The environment is theirs alone.
func Record(ctx context.Context, columns, rows int, env, lines []string) ([]Frame, error) {
	t := &tape{on: vt.New(columns)}
	var at time.Duration
	for _, line := range lines {
		t.write(at, []byte(prompt))
		at += thinks
		for _, letter := range line {
			at += perLetter
			t.write(at, []byte(string(letter)))
		}
		at += thinks / 2
		t.write(at, []byte("\r\n"))
		took, err := run(ctx, t, at, columns, rows, env, line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		at += took
	}
	if odd := t.on.Odd(); len(odd) > 0 {
		return nil, fmt.Errorf("the terminal does not know %q", odd)
	}
	return t.frames, nil
}

// run has the tape take what one line writes, from a moment on, and returns how long it took.
func run(ctx context.Context, t *tape, at time.Duration, columns, rows int, env []string, line string) (time.Duration, error) {
	hands, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer hands.Close()
	if err := unix.IoctlSetPointerInt(int(hands.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return 0, err
	}
	n, err := unix.IoctlGetInt(int(hands.Fd()), unix.TIOCGPTN)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlSetWinsize(int(hands.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}); err != nil {
		return 0, err
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, err
	}
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Env, c.Stdin, c.Stdout, c.Stderr = env, tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	began := time.Now()
	err = c.Start()
	_ = tty.Close() // the command has its own
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 4096)
	for {
		n, err := hands.Read(buf)
		t.write(at+time.Since(began), buf[:n])
		if err != nil { // all who could write have ended
			break
		}
	}
	_ = c.Wait() // a plan that fails is shown too
	return time.Since(began), ctx.Err()
}
