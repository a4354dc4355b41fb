//go:build unix

package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/programs"
)

// patience is for a machine that is busy with much else.
const patience = 5 * time.Minute

// TestThePageIsTyped types docs/tutorial.md in an empty folder beside the module, as a reader would: it writes the
// files, runs the commands in their order, leaves those of further terminals running, and compares what is printed.
func TestThePageIsTyped(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorial.md")
	require.NoError(t, err)
	require.NoError(t, programs.Look("./cmd/stepjet")) // a command of the page builds them
	r := newReader(t)
	text := strings.ReplaceAll(string(page), "4222", r.port)
	for _, m := range regexp.MustCompile("(?s)\n```([a-z]+)\n(.*?)\n```|<!-- Ctrl-C").FindAllStringSubmatch(text, -1) {
		switch body := m[2]; m[1] {
		case "":
			r.interrupt()
		case "go", "json":
			r.write(body + "\n")
		case "sh":
			r.enter(body)
		case "text":
			r.expect(body)
		default:
			require.Fail(t, "the page has a block of another kind", m[1])
		}
	}
}

// reader is a person who follows the page.
type reader struct {
	t        *testing.T
	dir      string // the empty folder
	port     string // one that is free, for the page's
	exported string // what was set in every terminal
	last     *terminal
	open     []*terminal
}

func newReader(t *testing.T) *reader {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(root, filepath.Join(base, "stepjet")))
	dir := filepath.Join(base, "shop")
	require.NoError(t, os.Mkdir(dir, 0o755))
	r := &reader{t: t, dir: dir, port: freePort(t)}
	t.Cleanup(r.interrupt)
	return r
}

// freePort returns a port for servers that are started and ended while the page goes on. It is not one that the system
// hands out to whoever asks for any, since another test could have it meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	for i := range 5000 {
		port := strconv.Itoa(20_000 + (os.Getpid()+i)%5000)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "no port is free")
	return ""
}

// write puts a block into the file of this folder that it is; a block that is no file here would be compiled by nobody.
func (r *reader) write(body string) {
	r.t.Helper()
	for _, name := range []string{"shop.go", "plan.json", "shop_test.go"} {
		raw, err := os.ReadFile(name)
		require.NoError(r.t, err)
		if string(raw) == body {
			require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), raw, 0o644))
			return
		}
	}
	require.Fail(r.t, "a snippet of docs/tutorial.md is no file of examples/tutorial", body)
}

// enter runs the commands of a block: until they end, or in a terminal of their own.
func (r *reader) enter(commands string) {
	r.t.Helper()
	if strings.HasPrefix(commands, "export ") {
		r.exported = commands + "\n"
		return
	}
	r.last = &terminal{over: make(chan struct{})}
	sh := exec.Command("bash", "-euc", r.exported+commands)
	sh.Dir, sh.Stdout, sh.Stderr = r.dir, r.last, r.last
	sh.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=", "HOME="+r.dir+"/home", "GOCACHE="+cache(r.t, "GOCACHE"), "GOMODCACHE="+cache(r.t, "GOMODCACHE"))
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that an interrupt reaches all of it, as that of a terminal does
	require.NoError(r.t, sh.Start())
	r.last.group = sh.Process.Pid
	go func(last *terminal) {
		last.err = sh.Wait()
		close(last.over)
	}(r.last)
	if strings.HasPrefix(commands, "# ") && strings.Contains(commands, " terminal\n") {
		r.open = append(r.open, r.last)
		return
	}
	select {
	case <-r.last.over:
		require.NoError(r.t, r.last.err, "%s\n%s", commands, r.last)
	case <-time.After(patience):
		_ = syscall.Kill(-r.last.group, syscall.SIGKILL)
		require.Fail(r.t, "does not end", "%s\n%s", commands, r.last)
	}
}

// cache returns where the go command keeps things, which a home of its own would hide.
func cache(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// expect waits until the last command has printed the lines of a block, each of them; "…" stands for anything.
func (r *reader) expect(lines string) {
	r.t.Helper()
	deadline := time.After(patience)
	for line := range strings.Lines(lines) {
		want := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*"))
		for {
			changed := r.last.change()
			if want.MatchString(r.last.String()) {
				break
			}
			select {
			case <-changed:
				continue
			case <-r.last.over:
			case <-deadline:
			}
			require.Regexp(r.t, want, r.last.String())
			break
		}
	}
}

// interrupt presses Ctrl-C in the terminals that are open, the latest first, and waits until their programs have ended.
func (r *reader) interrupt() {
	for len(r.open) > 0 {
		x := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		_ = syscall.Kill(-x.group, syscall.SIGINT)
		select {
		case <-x.over:
		case <-time.After(patience):
			_ = syscall.Kill(-x.group, syscall.SIGKILL)
			r.t.Errorf("a program does not end at Ctrl-C: %s", x)
		}
	}
}

// terminal is one in which commands run.
type terminal struct {
	group int // of processes
	over  chan struct{}
	err   error // once it is over

	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed with the next line; nil where nobody waits
}

// Write takes what is printed.
func (x *terminal) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
	return x.text.Write(b)
}

// change returns a channel that is closed when more is printed.
func (x *terminal) change() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changed == nil {
		x.changed = make(chan struct{})
	}
	return x.changed
}

// String returns what was printed.
func (x *terminal) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}
