package session

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/servers"
)

// farewell is how long a server whose standard input was closed may take to end before it is told to, and then again
// before it is killed.
const farewell = 2 * time.Second

// child is a stdio server: its process, and what it wrote to standard error at the end.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	stderr text.Tail
	over   chan struct{} // closed when the process has ended
	err    error         // how; read after over
	once   sync.Once
}

// startChild starts the program of an entry, directly and without a shell.
func startChild(e *servers.Entry) (*child, error) {
	c := &child{over: make(chan struct{})}
	c.cmd = exec.Command(e.Command, e.Args...)
	c.cmd.Env, c.cmd.Dir, c.cmd.Stderr = e.Env, e.Dir, &c.stderr
	c.cmd.WaitDelay = farewell // for what the process leaves behind with its output open
	isolate(c.cmd)
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe() // not StdoutPipe, which Wait closes before the last answer is read
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout, c.stdout = in, out
	started := make(chan error)
	go c.live(started, in)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// live starts the process and waits for its end.
func (c *child) live(started chan<- error, stdout *os.File) {
	release := bind() // the process dies with the thread that started it
	defer release()
	err := c.cmd.Start()
	_ = stdout.Close() // the process has it now
	started <- err
	if err != nil {
		_ = c.stdout.Close() // nobody will write to it
		return
	}
	c.err = c.cmd.Wait()
	killGroup(c.cmd)    // what it left running
	_ = c.stdin.Close() // nobody reads it any more
	close(c.over)
}

// transport is how messages go to the process.
func (c *child) transport() mcp.Transport {
	return &mcp.IOTransport{Reader: c.stdout, Writer: c.stdin}
}

// end closes the process's input, and sees to it that it ends.
func (c *child) end() {
	c.once.Do(func() {
		_ = c.stdin.Close() // fails where it is closed already
		for _, tell := range []func(*exec.Cmd){terminateGroup, killGroup} {
			select {
			case <-c.over:
				return
			case <-time.After(farewell):
				tell(c.cmd)
			}
		}
	})
	<-c.over
}

// last says how the process ended, where it has, and what it said at the end.
func (c *child) last() string {
	said := strings.TrimSpace(servers.Clean(c.stderr.String()))
	select {
	case <-c.over:
	default:
		return said
	}
	how := "its program ended"
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		how = "its program ended with " + exit.String()
	}
	if said == "" {
		return how
	}
	return how + ": " + said
}
