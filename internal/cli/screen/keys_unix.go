//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package screen

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keys is a terminal that hands over each key as it is typed, and shows none by itself. Keys that send signals do so
// still. It owns goroutines, which close ends.
type keys struct {
	in     *os.File
	before unix.Termios
	typed  chan typed
	woke   func() // the process stood still, and goes on

	wake  [2]*os.File // a pipe: its end wakes who waits for keys
	stop  chan struct{}
	epoch atomic.Int64 // grows whenever what was typed is dropped
	ends  sync.WaitGroup
}

// typed are keys, and when they came.
type typed struct {
	keys  []byte
	epoch int64
}

// at is the terminal that hands over keys just now, for Restore.
var at struct {
	mu   sync.Mutex
	keys *keys
}

// Restore puts the terminal back in order, for whoever ends the process while somebody is asked.
func Restore() {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.keys != nil {
		at.keys.restore()
		at.keys = nil
	}
}

// CanAsk reports whether people can be asked at a terminal: this process is the one that its keys go to.
func CanAsk(in *os.File) bool {
	_, err := unix.IoctlGetTermios(int(in.Fd()), readMode)
	return err == nil && inFront(in)
}

// inFront reports whether a terminal's keys go to this process. Reading it, and setting it, stops any other.
func inFront(in *os.File) bool {
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// listen has a terminal hand over its keys. What was typed before is dropped. woke is called from a goroutine where the
// process stood still and goes on.
func listen(in *os.File, woke func()) (*keys, error) {
	k := &keys{in: in, typed: make(chan typed), woke: woke, stop: make(chan struct{})}
	mode, err := unix.IoctlGetTermios(int(in.Fd()), readMode)
	if err != nil {
		return nil, err
	}
	if !inFront(in) {
		return nil, errors.New("the terminal belongs to another command")
	}
	if k.wake[0], k.wake[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	k.before = *mode
	at.mu.Lock()
	err = k.set(flushMode)
	at.keys = k
	at.mu.Unlock()
	if err != nil {
		Restore()
		return nil, errors.Join(err, k.wake[0].Close(), k.wake[1].Close())
	}
	k.ends.Go(k.loop)
	k.ends.Go(k.standStill)
	return k, nil
}

// set has the terminal hand over each key.
func (k *keys) set(request uint) error {
	mode := k.before
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 0, 0 // a read doesn't wait: what there was may be dropped by then
	return unix.IoctlSetTermios(int(k.in.Fd()), request, &mode)
}

// restore is called under at.mu.
func (k *keys) restore() {
	if inFront(k.in) {
		_ = unix.IoctlSetTermios(int(k.in.Fd()), setMode, &k.before) // a terminal that is gone needs no order
	}
}

// forget drops what was typed up to now.
func (k *keys) forget() {
	at.mu.Lock()
	if at.keys == k && inFront(k.in) {
		_ = k.set(flushMode) // a terminal that is gone has nothing typed
	}
	k.epoch.Add(1)
	at.mu.Unlock()
}

// close puts the terminal back in order.
func (k *keys) close() {
	Restore()
	close(k.stop)
	_ = k.wake[1].Close()
	k.ends.Wait()
	_ = k.wake[0].Close()
}

// behindAgain is how long a process waits that the keys don't go to, until it looks again.
const behindAgain = 200 * time.Millisecond

func (k *keys) loop() {
	buf := make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: int32(k.wake[0].Fd()), Events: unix.POLLIN}, {Fd: int32(k.in.Fd()), Events: unix.POLLIN}}
		wait := -1
		if !inFront(k.in) {
			fds, wait = fds[:1], int(behindAgain/time.Millisecond)
		}
		_, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || fds[0].Revents != 0:
			return
		case len(fds) == 1 || fds[1].Revents == 0:
			continue
		case fds[1].Revents&unix.POLLIN == 0: // the terminal is gone
			return
		}
		t, ok := k.read(buf)
		if !ok {
			return
		}
		if len(t.keys) == 0 {
			continue
		}
		select {
		case k.typed <- t:
		case <-k.stop:
			return
		}
	}
}

// read reads what is typed, if anything is still; ok is false where nothing more will come. The terminal stays as it is
// meanwhile: one that is back in order would have this wait for a whole line.
func (k *keys) read(buf []byte) (t typed, ok bool) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.keys != k {
		return t, false
	}
	if !inFront(k.in) {
		return t, true
	}
	n, err := unix.Read(int(k.in.Fd()), buf)
	if err != nil {
		return t, errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)
	}
	return typed{append([]byte(nil), buf[:n]...), k.epoch.Load()}, true
}

// standStill waits for the process to go on after it stood still: a shell has set the terminal anew.
func (k *keys) standStill() {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	for {
		select {
		case <-k.stop:
			return
		case <-goesOn:
			at.mu.Lock()
			if at.keys == k && inFront(k.in) {
				_ = k.set(setMode) // a terminal that is gone hands over nothing
			}
			at.mu.Unlock()
			k.woke()
		}
	}
}

// counts reports whether keys were typed after what was dropped.
func (k *keys) counts(t typed) bool { return t.epoch == k.epoch.Load() }
