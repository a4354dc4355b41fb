package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// Host starts the worker under test. It may be started again after it has ended.
type Host interface {
	Start(ctx context.Context) (Guest, error)
}

// Guest is a worker that was started.
type Guest interface {
	// Stop asks it to finish what it has and end; it doesn't wait.
	Stop()
	// Done is closed when it has ended; Why then says how, empty for a clean end.
	Done() <-chan struct{}
	Why() string
	// Kill ends it at once and waits until it is gone.
	Kill()
}

// Command is a worker that is a program: SIGTERM asks it to stop.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env is what it finds in its environment besides that of this process: "NAME=value".
	Env []string
	// Output takes what it prints; nil: nothing but its last lines is kept.
	Output io.Writer
}

// Start runs the program. Errors: InvalidConfig where there is none of that name.
func (c Command) Start(context.Context) (Guest, error) {
	p := &process{cmd: exec.Command(c.Args[0], c.Args[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), c.Env...)
	var to io.Writer = &p.tail
	if c.Output != nil {
		to = io.MultiWriter(to, c.Output)
	}
	p.cmd.Stdout, p.cmd.Stderr = to, to
	p.cmd.WaitDelay = time.Second // for pipes that a grandchild holds open
	isolate(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "starting the worker")
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

type process struct {
	cmd  *exec.Cmd
	tail text.Tail
	done chan struct{}
	err  error // once done is closed
}

func (p *process) Stop()                 { terminate(p.cmd) }
func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Why() string {
	if p.err == nil || errors.Is(p.err, exec.ErrWaitDelay) {
		return ""
	}
	if last := p.tail.String(); last != "" {
		return fmt.Sprintf("%v; the last that it printed:\n%s", p.err, last)
	}
	return p.err.Error()
}

func (p *process) Kill() {
	kill(p.cmd)
	<-p.done
}
