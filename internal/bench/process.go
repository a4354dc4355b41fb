package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// process is a part of a world in a process of its own.
type process struct {
	role  Role
	cmd   *exec.Cmd
	lines chan string // what it prints
	tells io.Writer   // what it reads
	gone  chan struct{}
}

// serverEnv is what deploy/README.md advises for nats-server.
var serverEnv = []string{"GOGC=400", "GOMEMLIMIT=8GiB"}

// start runs a role.
func (w *World) start(r Role) (*process, error) {
	r.Layout, r.URL = w.Layout, w.url
	spec, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p := &process{role: r, lines: make(chan string, 16), gone: make(chan struct{})}
	p.cmd = exec.Command(w.Command[0], append(append([]string(nil), w.Command[1:]...), string(spec))...)
	p.cmd.Stderr = os.Stderr
	if r.Role == RoleServer {
		p.cmd.Env = append(os.Environ(), serverEnv...)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for the parent
	in, err := p.cmd.StdinPipe()                            // it closes with this process, however that ends
	if err != nil {
		return nil, err
	}
	p.tells = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		_ = p.cmd.Wait() // how it ended, it says itself
		close(p.gone)
	}()
	w.procs[r.Name] = p
	return p, nil
}

// Stop ends a process of the world's and keeps what it has used.
func (w *World) Stop(name string) { w.remove(name, (*process).term) }

// Kill ends a process of the world's without a word.
func (w *World) Kill(name string) { w.remove(name, (*process).kill) }

func (w *World) remove(name string, end func(*process)) {
	p := w.procs[name]
	w.spent += cpuTime(p.pid())
	w.peaks[name] = max(w.peaks[name], peakMB(p.pid()))
	end(p)
	delete(w.procs, name)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// says waits for a line that is as wanted.
func (p *process) says(ctx context.Context, wanted func(string) bool) error {
	timeout := time.After(60 * time.Second)
	for {
		select {
		case line := <-p.lines:
			if wanted(line) {
				return nil
			}
		case <-p.gone:
			return fault.New(fault.Internal, "the process %s ended", p.role.Name)
		case <-timeout:
			return fault.New(fault.Internal, "the process %s does not say that it is ready", p.role.Name)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// heap returns how many bytes its heap keeps.
func (p *process) heap(ctx context.Context) (bytes uint64, err error) {
	if _, err := fmt.Fprintln(p.tells, heapWord); err != nil {
		return 0, fault.Wrap(fault.Internal, err, "asking the process "+p.role.Name+" for its heap")
	}
	err = p.says(ctx, func(line string) bool {
		n, bad := fmt.Sscanf(line, heapWord+" %d", &bytes)
		return n == 1 && bad == nil
	})
	return bytes, err
}

// term asks a process to end, and ends it where it doesn't.
func (p *process) term() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
		p.kill()
	}
}
