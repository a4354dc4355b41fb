package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"tools":[{"builtin":"maths"},{"name":"x","exec":{}}]}`), 0o600))
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		says []string
	}{
		{"help", nil, []string{"--help"}, 0, []string{"--tools", "STEPJET_TOOLS", "NATS_URL", "4 no connection"}},
		{"version", nil, []string{"--version"}, 0, []string{"PROGRAM version"}},
		{"no server", nil, []string{"--wait-for-nats", "0", "--url", "nats://127.0.0.1:1"}, 4, []string{"no_connection", "127.0.0.1:1"}},
		{"no server of the environment", []string{"NATS_URL=nats://me:s3cret@127.0.0.1:2", "STEPJET_WAIT_FOR_NATS=100ms"}, nil, 4, []string{"127.0.0.1:2"}},
		{"a flag wins", []string{"NATS_URL=nats://127.0.0.1:2"}, []string{"--wait-for-nats", "0", "--url", "nats://127.0.0.1:1"}, 4, []string{"127.0.0.1:1"}},
		{"unknown flag", nil, []string{"--tool", "x"}, 2, []string{"--tool", "PROGRAM --help"}},
		{"argument", nil, []string{"tools.json"}, 2, []string{"tools.json"}},
		{"slots", nil, []string{"--slots", "0"}, 2, []string{"--slots is 0"}},
		{"slots of the environment", []string{"STEPJET_SLOTS=many"}, nil, 2, []string{"STEPJET_SLOTS"}},
		{"log level", nil, []string{"--log-level", "loud"}, 2, []string{"debug, info, warn, error"}},
		{"no tools file", nil, []string{"--tools", "absent.json"}, 2, []string{"absent.json"}},
		{"broken tools file", []string{"STEPJET_TOOLS=" + broken}, nil, 2, []string{broken, "/tools/0/builtin:", "/tools/1/exec/argv:"}},
		{"no credentials", nil, []string{"--creds", "absent.creds"}, 2, []string{"absent.creds"}},
		{"no context", []string{"HOME=" + t.TempDir()}, []string{"--context", "absent"}, 2, []string{"absent"}},
	} {
		for _, name := range workers {
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				out, err := program(name, c.env, c.args...).CombinedOutput()
				code := 0
				if err != nil {
					var exit *exec.ExitError
					require.ErrorAs(t, err, &exit)
					code = exit.ExitCode()
				}
				require.Equal(t, c.code, code, "%s", out)
				for _, part := range c.says {
					require.Contains(t, string(out), strings.ReplaceAll(part, "PROGRAM", name))
				}
				require.NotContains(t, string(out), "s3cret")
			})
		}
	}
}

// running is a toolworker at work, and what it has logged.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	log  bytes.Buffer
	done chan error
}

func start(t *testing.T, name, url string, args ...string) *running {
	t.Helper()
	return startWith(t, nil, name, url, args...)
}

// startWith is start with more in the environment.
func startWith(t *testing.T, env []string, name, url string, args ...string) *running {
	t.Helper()
	r := &running{t: t, cmd: program(name, append([]string{"NATS_URL=" + url}, env...), args...), done: make(chan error, 1)}
	stderr, err := r.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			r.mu.Lock()
			r.log.WriteString(lines.Text() + "\n")
			r.mu.Unlock()
		}
		r.done <- r.cmd.Wait()
	}()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// says waits for a line of the log and gives its parts.
func (r *running) says(pattern string) []string {
	r.t.Helper()
	var found []string
	re := regexp.MustCompile(pattern)
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		found = re.FindStringSubmatch(r.log.String())
		return found != nil
	}, 2*time.Minute, 5*time.Millisecond, "it never said %s", pattern)
	return found
}

// world is a server on a port, with an orchestrator and a client.
func world(t *testing.T) (url string, c *client.Client) {
	t.Helper()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	o, err := orchestrator.New(natstest.Connect(t, srv), orchestrator.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	<-o.Ready()
	c, err = client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return srv.URL(), c
}

func readiness(t *testing.T, address string) int {
	t.Helper()
	resp, err := http.Get("http://" + address + "/readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// The program runs steps, and at SIGTERM finishes the one it has: the run ends as it would have, with one attempt.
func TestRunsStepsAndDrains(t *testing.T) {
	t.Parallel()
	for _, name := range workers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runsStepsAndDrains(t, name)
		})
	}
}

func runsStepsAndDrains(t *testing.T, name string) {
	url, c := world(t)
	started := filepath.Join(t.TempDir(), "started")
	tools := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(
		t,
		os.WriteFile(
			tools,
			[]byte(
				`{"tools":[{"builtin":"all"},{"name":"slow","exec":{"argv":["/bin/sh","-c","echo x >> `+started+`; sleep 1; echo done"]}}]}`,
			),
			0o600,
		),
	)
	w := start(t, name, url, "--tools", tools, "--health", "127.0.0.1:0", "--name", "tester", "--log-format", "json")
	address := w.says(`"address":"([^"]+)"`)[1]
	w.says(`"msg":"ready"`)
	require.Equal(t, http.StatusOK, readiness(t, address))

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	got, err := c.Run(
		ctx,
		[]byte(
			`{"steps":[{"id":"a","tool":"power","arguments":{"base":2,"exponent":100}},{"id":"b","tool":"text_concat","arguments":{"parts":["=","$ref:a.result"]}}],"output_steps":["b"]}`,
		),
		client.SubmitOptions{},
	)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, got.Status, "%v", got.Errors)
	b, _ := got.Results.Get("b")
	require.JSONEq(t, `{"result":"=1267650600228229401496703205376"}`, string(b))

	run, err := c.Submit(ctx, []byte(`{"steps":[{"id":"s","tool":"slow"}]}`), client.SubmitOptions{Run: "slow"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, 2*time.Minute, 5*time.Millisecond)
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-w.done)
	require.Contains(t, w.says(`"msg":"stopping","reason":"([^"]+)"`)[1], "terminated")
	end, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, end.Status)
	s, _ := end.Results.Get("s")
	require.Equal(t, `"done"`, string(s))
	full, err := c.Get(ctx, "slow")
	require.NoError(t, err)
	require.Equal(t, 1, full.Steps[0].Attempts)
	require.Equal(t, "tester", full.Steps[0].Worker)
	raw, err := os.ReadFile(started)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(raw), "x"))
}

// Without an orchestrator the program waits, not ready, and still ends when it is asked to.
func TestWaitsForAnOrchestrator(t *testing.T) {
	t.Parallel()
	for _, name := range workers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitsForAnOrchestrator(t, name)
		})
	}
}

func waitsForAnOrchestrator(t *testing.T, name string) {
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	w := start(t, name, srv.URL(), "--health", "127.0.0.1:0")
	address := w.says(`address=(\S+)`)[1]
	w.says("waiting for an orchestrator")
	require.Equal(t, http.StatusServiceUnavailable, readiness(t, address))
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, <-w.done)
}
