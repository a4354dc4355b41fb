package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stepjet/stepjet/fault"
)

// A disk is a file that a loop device makes a block device of, with an ext4 file system. The process that uses it
// mounts it in a mount namespace of its own, so that nothing else sees it and the kernel takes both away when the
// process ends, however it does.

// newDisk makes a disk of size bytes, or says what is missing.
func newDisk(image string, size int64) error {
	if os.Geteuid() != 0 {
		return fault.New(fault.InvalidConfig, "a disk of its own for NATS needs root").
			WithHint("the scenarios power-cut and disk-full mount a loop device")
	}
	for _, program := range []string{"mkfs.ext4", "mount", "unshare", "cp"} {
		if _, err := exec.LookPath(program); err != nil {
			return fault.New(fault.InvalidConfig, "the command %s is not installed", program).
				WithHint("apt-get install e2fsprogs util-linux")
		}
	}
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	return command("mkfs.ext4", "-q", "-F", image)
}

// mounting returns the command line that runs a program where a disk can be mounted.
func mounting(argv []string) []string {
	return append([]string{"unshare", "--mount", "--propagation", "private", "--"}, argv...)
}

// mountDisk mounts a disk in this process's namespace.
func mountDisk(image, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return command("mount", "-t", "ext4", "-o", "loop", image, dir)
}

func command(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// within returns the path by which a file that another process sees is reached from outside of its namespace.
func within(pid int, path string) string {
	return filepath.Join("/proc", fmt.Sprint(pid), "root", path)
}

// standsStill reports whether no thread of a stopped process runs any more, but for those that wait for the disk.
func standsStill(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has ended
		}
		_, state, _ := strings.Cut(string(text), ") ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "D") {
			return false, nil
		}
	}
	return len(threads) > 0, err
}

// The request by which ext4 stops to write at once, and its variant that does not write the journal either
// (linux/fs/ext4/ext4.h: EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH).
const (
	ext4Shutdown   = 0x8004587d
	ext4NoLogFlush = 2
)

// cutPower stops all writing from the file system at dir to its block device, in the middle of whatever it was about to
// write. What lies in the page cache stays there, so the device, and with it the image, is what a power cut leaves
// behind.
func cutPower(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, ext4NoLogFlush); err != nil {
		return fmt.Errorf("shutting down the file system at %s: %w", dir, err)
	}
	return nil
}

// fillDisk makes a file that takes all room that is left where it lies. Some writers fit into what they had before.
func fillDisk(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	at := int64(0)
	for size := int64(1 << 28); size >= 1<<12; {
		switch err := unix.Fallocate(int(f.Fd()), 0, at, size); {
		case err == nil:
			at += size
		case errors.Is(err, unix.ENOSPC):
			size /= 2
		default:
			return err
		}
	}
	return nil
}

// syncDisk writes back what the page cache holds of the file system at dir.
func syncDisk(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// copyDisk copies the block device, not what the file system shows of it. Where both lie on a file system that can, the
// copy shares the blocks of the original.
func copyDisk(image, copied string) error {
	return command("cp", "--sparse=always", "--reflink=auto", image, copied)
}
