// Package e2e_test runs the real programs as processes of their own, kills them, and looks at what came out.
package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/internal/programs"
)

// bin is where TestMain builds the programs.
var bin string

func TestMain(m *testing.M) {
	if text := os.Getenv(serverVariable); text != "" {
		os.Exit(serve(text))
	}
	if url := os.Getenv(plannerVariable); url != "" {
		os.Exit(plansAlone(url))
	}
	if text := os.Getenv(writerVariable); text != "" {
		os.Exit(hostsAlone(text))
	}
	if chaos.Main() { // an orchestrator that kills itself
		return
	}
	dir, err := os.MkdirTemp("", "stepjet-e2e-")
	if err == nil {
		bin = dir
		err = programs.Build(dir, "./cmd/orchestrator", "./cmd/toolworker", "./cmd/stepjet")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is one of our programs at work.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	mu   sync.Mutex
	log  bytes.Buffer
	line chan string
	gone chan struct{}
}

// begin starts a program against a server and kills it when the test ends.
func begin(t testing.TB, url, program string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+url, "STEPJET_TOOLS=../../../examples/tools.json") // with those for demonstrations
	return launch(t, program, cmd)
}

// launch starts a process and kills it when the test ends.
func launch(t testing.TB, program string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, line: make(chan string, 1000), gone: make(chan struct{})}
	out, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.read(out)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%s said:\n%s", program, tail(p.log.String(), 4000))
		}
	})
	return p
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (p *process) read(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		p.mu.Lock()
		p.log.WriteString(s.Text() + "\n")
		p.mu.Unlock()
		select {
		case p.line <- s.Text():
		default:
		}
	}
	_ = p.cmd.Wait()
	close(p.gone)
}

// says waits for a line of the log, and gives it.
func (p *process) says(what string) string {
	p.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case line := <-p.line:
			if strings.Contains(line, what) {
				return line
			}
		case <-p.gone:
			require.FailNow(p.t, "the process ended before it said "+what)
		case <-deadline:
			require.FailNow(p.t, "the process did not say "+what)
		}
	}
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// stop asks the process to end and gives its exit code.
func (p *process) stop() int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.gone:
	case <-time.After(2 * time.Minute):
		require.Fail(p.t, "the process did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// server is a real NATS server on a port of the loopback interface, its store on disk.
func server(t testing.TB, change ...func(*embedded.Options)) (*embedded.Server, string) {
	t.Helper()
	change = slices.Insert(change, 0, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	srv := natstest.Start(t, change...)
	return srv, srv.URL()
}

func connect(t testing.TB, srv *embedded.Server) (*nats.Conn, *client.Client) {
	t.Helper()
	nc := natstest.Connect(t, srv)
	c, err := client.New(context.Background(), nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return nc, c
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
