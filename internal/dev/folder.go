package dev

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// DefaultDir returns the folder where dev mode keeps its data: STEPJET_DATA, else stepjet in the user's data folder
// (XDG_DATA_HOME, else ~/.local/share). "" where there is no home to keep anything in.
func DefaultDir(env func(string) string) string {
	if d := env("STEPJET_DATA"); d != "" {
		return d
	}
	if d := env("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "stepjet")
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "stepjet")
	}
	return ""
}

// Exists reports whether a folder holds the data of dev mode.
func Exists(dir string) bool {
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, lockFile))
	return err == nil
}

const (
	lockFile    = "stepjet.lock"
	addressFile = "stepjet.url"
)

// errInUse is the cause of an error that says another process has the folder.
var errInUse = errors.New("in use")

// Unusable reports whether Start failed because nothing can be written to the data folder.
func Unusable(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC)
}

// InUse reports whether Start failed because another process has the data folder.
func InUse(err error) bool { return errors.Is(err, errInUse) }

// lock makes a folder this process's own. The lock is the operating system's and ends with the process.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "making the data folder")
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "opening the data folder")
	}
	if err := tryLock(f); err != nil {
		_ = f.Close() // nothing was written
		inUse := fault.New(fault.InvalidConfig, "the data folder %s is in use by another process", dir).
			WithHint("commands without --server join that one; for a Stepjet beside it name another folder with --data")
		inUse.Cause = errInUse
		return nil, inUse
	}
	return f, nil
}

// address is what the process that has a data folder leaves there for others to find.
type address struct {
	URL    string `json:"url,omitempty"`    // where it listens for everybody
	Socket string `json:"socket,omitempty"` // otherwise: a socket of this user's own
	PID    int    `json:"pid"`
}

func (a address) write(dir string) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	// In one step: whoever reads the file finds all of it, or none.
	part := filepath.Join(dir, addressFile+".new")
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, addressFile))
}

// readAddress reads what the process that has a folder left there. A file that a killed process left leads nowhere.
func readAddress(dir string) (a address, ok bool) {
	if !Exists(dir) {
		return a, false
	}
	b, err := os.ReadFile(filepath.Join(dir, addressFile))
	return a, err == nil && json.Unmarshal(b, &a) == nil
}

// Running returns the address of the Stepjet that runs on a data folder and listens, such as "stepjet dev"; ok is false
// where none does.
func Running(dir string) (url string, ok bool) {
	a, ok := readAddress(dir)
	if !ok || !answers(a.URL) {
		return "", false
	}
	return a.URL, true
}

// Busy reports whether a process has a data folder now, whether or not it listens.
func Busy(dir string) bool {
	if !Exists(dir) {
		return false
	}
	f, err := lock(dir)
	if err == nil {
		_ = f.Close() // which unlocks it
	}
	return InUse(err)
}

// answers reports whether anybody listens at an address. A file that a killed process left behind leads nowhere.
func answers(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close() // it was only a knock at the door
	return true
}
