package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/daemon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is a log that may be read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// service runs until its context ends, or fails at once.
type service struct {
	ready   chan struct{}
	running chan struct{}
	drained chan struct{} // closed by the test to end draining; nil: at once
	err     error
}

func newService() *service {
	return &service{ready: make(chan struct{}), running: make(chan struct{})}
}

func (s *service) Ready() <-chan struct{} { return s.ready }

func (s *service) Run(ctx context.Context) error {
	close(s.running)
	if s.err != nil {
		return s.err
	}
	<-ctx.Done()
	if s.drained != nil {
		<-s.drained
	}
	return nil
}

func get(t *testing.T, url string) (int, map[string]string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body := map[string]string{}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
	return resp.StatusCode, body
}

var address = regexp.MustCompile(`address=(\S+)`)

func TestRunAndHealth(t *testing.T) {
	s, log := newService(), &book{}
	s.drained = make(chan struct{})
	var broken atomic.Pointer[error]
	check := func() error {
		if err := broken.Load(); err != nil {
			return *err
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error)
	go func() {
		done <- daemon.Run(ctx, daemon.Options{Name: "test", Health: "127.0.0.1:0", Check: check, Logger: slog.New(slog.NewTextHandler(log, nil))}, s)
	}()
	<-s.running
	url := "http://" + address.FindStringSubmatch(log.String())[1]
	expect := func(path string, status int, word string) map[string]string {
		t.Helper()
		got, body := get(t, url+path)
		require.Equal(t, status, got)
		require.Equal(t, word, body["status"])
		return body
	}
	expect("/healthz", 200, "ok")
	expect("/readyz", 503, "starting")
	close(s.ready)
	expect("/readyz", 200, "ready")
	lost := errors.New("not connected")
	broken.Store(&lost)
	require.Equal(t, "not connected", expect("/readyz", 503, "unavailable")["reason"])
	broken.Store(nil)
	cancel(daemon.Signal{Signal: syscall.SIGTERM})
	require.Contains(t, expect("/readyz", 503, "draining")["reason"], "terminated")
	expect("/healthz", 200, "ok")
	resp, err := http.Post(url+"/readyz", "", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	close(s.drained)
	require.NoError(t, <-done)
	for _, said := range []string{"msg=starting", "msg=ready", "msg=stopping", "terminated", "msg=stopped"} {
		require.Contains(t, log.String(), said)
	}
	_, err = http.Get(url + "/healthz")
	require.Error(t, err)
	http.DefaultClient.CloseIdleConnections()
}

func TestRunWithoutHealth(t *testing.T) {
	s := newService()
	s.err = fault.New(fault.Permission, "no")
	require.ErrorIs(t, daemon.Run(context.Background(), daemon.Options{Name: "test", Logger: slog.New(slog.DiscardHandler)}, s), s.err)
}

func TestRunNeedsItsAddress(t *testing.T) {
	for _, bad := range []string{"127.0.0.1:99999", "nowhere", "256.0.0.1:0"} {
		s := newService()
		err := daemon.Run(context.Background(), daemon.Options{Health: bad, Logger: slog.New(slog.DiscardHandler)}, s)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), bad)
		select {
		case <-s.running:
			t.Fatal("the service was started")
		default:
		}
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		forced := make(chan struct{})
		ctx, stop := daemon.Signals(context.Background(), func() { close(forced) })
		require.NoError(t, syscall.Kill(os.Getpid(), sig))
		<-ctx.Done()
		var got daemon.Signal
		require.ErrorAs(t, context.Cause(ctx), &got)
		require.Equal(t, sig, got.Signal)
		require.NoError(t, syscall.Kill(os.Getpid(), sig))
		<-forced
		stop()
	}
	ctx, stop := daemon.Signals(context.Background(), func() { panic("forced") })
	require.NoError(t, ctx.Err())
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

func TestExecute(t *testing.T) {
	run := func(args []string, do func(ctx context.Context) error) (int, string) {
		var stderr bytes.Buffer
		cmd := &cobra.Command{Use: "program", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return do(c.Context()) }}
		cmd.Flags().Int("n", 0, "")
		cmd.SetArgs(args)
		cmd.SetErr(&stderr)
		cmd.SetOut(io.Discard)
		return daemon.Execute(cmd), stderr.String()
	}
	fail := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	wait := func(ctx context.Context) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, c := range []struct {
		args []string
		do   func(context.Context) error
		code int
		says []string
	}{
		{nil, fail(nil), 0, nil},
		{nil, fail(errors.New("broken")), 1, []string{"program: broken\n"}},
		{nil, fail(fault.New(fault.Permission, "refused")), 1, []string{"program: permission: refused\n"}},
		{nil, fail(fault.New(fault.InvalidConfig, "no such file").WithHint("create it")), 2, []string{"program: invalid_config: no such file\n  hint: create it\n"}},
		{nil, fail(fault.New(fault.InvalidTool, "bad tool")), 2, []string{"bad tool"}},
		{nil, fail(fmt.Errorf("doing it: %w", fault.New(fault.NoConnection, "no server at x"))), 4, []string{"doing it", "no server at x"}},
		{[]string{"--n", "x"}, fail(nil), 2, []string{"wrong usage", "--n", "program --help"}},
		{[]string{"--unknown"}, fail(nil), 2, []string{"--unknown"}},
		{[]string{"more"}, fail(nil), 2, []string{"more", "program --help"}},
		{nil, wait, 0, nil},
	} {
		code, stderr := run(c.args, c.do)
		require.Equal(t, c.code, code, stderr)
		if c.says == nil {
			require.Empty(t, stderr)
		}
		for _, part := range c.says {
			require.Contains(t, stderr, part)
		}
	}
}

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	log := daemon.Logger(&b, "json", "warn")
	log.Info("quiet")
	log.Warn("loud")
	var line map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &line))
	require.Equal(t, "loud", line["msg"])
	b.Reset()
	daemon.Logger(&b, "text", "debug").Debug("fine")
	require.Contains(t, b.String(), "msg=fine")
	b.Reset()
	daemon.Logger(&b, "text", "nonsense").Debug("hidden")
	require.Empty(t, b.String())
}

func ExampleExitCode() {
	fmt.Println(daemon.ExitCode(nil), daemon.ExitCode(fault.New(fault.NoConnection, "no NATS server")))
	// Output: 0 4
}
