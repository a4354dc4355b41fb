package hosted

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nuid"
	"golang.org/x/sys/unix"

	"github.com/stepjet/stepjet/internal/backoff"
)

// A program may leave its process group (setsid), and so may what it starts. What it leaves behind then is found as
// this process's own: as a subreaper it becomes the parent of all that its descendants leave. Whose it is, of several
// programs that run at once, says a mark in the environment; where that was taken out, it is ended when no other
// program runs that it could be of.

const markVariable = "STEPJET_EXEC"

// running are the programs that run now.
var running = struct {
	sync.Mutex
	once sync.Once
	pids map[int]bool
}{pids: map[int]bool{}}

// family is all that one program starts.
type family struct {
	mark string
	pid  int // of the program, once it runs
}

// newFamily marks a command that has not been started.
func newFamily(cmd *exec.Cmd) *family {
	// without it, group and tree are killed all the same
	running.once.Do(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
	f := &family{mark: markVariable + "=" + nuid.Next()}
	cmd.Env = append(cmd.Env, f.mark)
	return f
}

// run starts the command and waits for it.
func (f *family) run(cmd *exec.Cmd) error {
	running.Lock()
	err := cmd.Start()
	if err == nil {
		f.pid = cmd.Process.Pid
		running.pids[f.pid] = true
	}
	running.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	return err
}

// sweepTime bounds how long the end of a program waits for what it left; what starts others faster than they are ended
// is left then.
const sweepTime = 2 * time.Second

// end ends all that the program left, once it is over itself.
func (f *family) end() {
	if f.pid == 0 {
		return
	}
	running.Lock()
	delete(running.pids, f.pid)
	running.Unlock()
	waits := backoff.Between(time.Millisecond, 50*time.Millisecond)
	for until := time.Now().Add(sweepTime); f.sweep() && time.Now().Before(until); {
		time.Sleep(waits.Next())
	}
}

// sweep kills what is left and takes note of what has ended; false where nothing was found.
func (f *family) sweep() (found bool) {
	own, _ := unix.Getsid(0)
	for _, pid := range children(os.Getpid()) {
		p, ok := look(pid)
		if !ok || !f.owns(p, own) {
			continue
		}
		found = true
		if p.zombie {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			continue
		}
		killTree(pid)
	}
	return found
}

// owns reports whether a child of this process was left by the program.
func (f *family) owns(p process, ownSession int) bool {
	running.Lock()
	defer running.Unlock()
	switch {
	case running.pids[p.pid]:
		return false
	case p.group == f.pid:
		return true
	case p.session == ownSession: // started by this process for other ends
		return false
	case marked(p.pid, f.mark):
		return true
	}
	return len(running.pids) == 0 || p.zombie && !running.pids[p.group]
}

// killTree kills a process and all beneath it, as far as nobody has left it.
func killTree(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	beneath := children(pid) // before it is gone, and they with it
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	for _, child := range beneath {
		killTree(child)
	}
}

// process is what the kernel says of one.
type process struct {
	pid, group, session int
	zombie              bool
}

func look(pid int) (process, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	at := bytes.LastIndexByte(raw, ')') // the name before it may hold anything
	fields := strings.Fields(string(raw[at+1:]))
	if len(fields) < 4 {
		return process{}, false
	}
	group, _ := strconv.Atoi(fields[2])
	session, _ := strconv.Atoi(fields[3])
	return process{pid, group, session, fields[0] == "Z" || fields[0] == "X"}, true
}

// marked reports whether a process was given the mark.
func marked(pid int, mark string) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append(append([]byte{0}, raw...), 0), []byte("\x00"+mark+"\x00"))
}

// children returns the children of a process, of all of its threads.
func children(pid int) (all []int) {
	base := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	for _, t := range threads {
		raw, err := os.ReadFile(base + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(raw)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}
