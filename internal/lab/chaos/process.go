package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// process is one role at work, in a process of its own.
type process struct {
	role   Role
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output *os.File
	ready  chan struct{} // closed when it says so
	gone   chan struct{} // closed when it has ended
	stop   sync.Mutex    // guards stopped
	halted bool
}

// begin starts a process. Its standard error is appended to a file.
func begin(net network, node string, command []string, role Role, stderr string) (*process, error) {
	env, err := json.Marshal(role)
	if err != nil {
		return nil, err
	}
	if role.Disk != "" {
		command = mounting(command)
	}
	argv := net.wrap(node, command)
	p := &process{role: role, cmd: exec.Command(argv[0], argv[1:]...), ready: make(chan struct{}),
		gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(env), "GORACE=")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for the harness
	if p.output, err = os.OpenFile(stderr, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	p.cmd.Stderr = p.output
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.gone)
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() == "ready" {
				close(p.ready)
			}
		}
		_ = p.cmd.Wait()
		_ = p.output.Close()
	}()
	return p, nil
}

// awaitReady waits until the process does its work.
func (p *process) awaitReady(ctx context.Context, patience time.Duration) error {
	select {
	case <-p.ready:
		return nil
	case <-p.gone:
		return fault.New(fault.Internal, "the process %s ended before it was ready: see %s", p.role.Name, p.output.Name())
	case <-time.After(patience):
		return fault.New(fault.Timeout, "the process %s was not ready within %v", p.role.Name, patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// ask asks the process to end, and does not wait for it.
func (p *process) ask() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// term asks the process to end, and says whether it did in time. One that did not writes to its log what it was about
// (Go does on SIGQUIT), and is killed.
func (p *process) term(patience time.Duration) error {
	p.cont()
	p.ask()
	select {
	case <-p.gone:
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.gone:
		case <-time.After(2 * time.Second):
		}
		p.kill()
		return fault.New(fault.Timeout, "the process %s did not end within %v", p.role.Name, patience)
	}
}

// halt is SIGSTOP; cont lets the process go on.
func (p *process) halt() {
	p.stop.Lock()
	defer p.stop.Unlock()
	p.halted = true
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
}

func (p *process) cont() {
	p.stop.Lock()
	defer p.stop.Unlock()
	if p.halted {
		p.halted = false
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

func (p *process) String() string { return fmt.Sprintf("%s (pid %d)", p.role.Name, p.cmd.Process.Pid) }
