package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/internal/programs"
	"github.com/stepjet/stepjet/outcome"
)

// binary is the real command, built once.
var binary string

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stepjet-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "stepjet")
	if err := programs.Build(dir, "./cmd/stepjet"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience bounds what a test waits for; it is never reached where all is well.
const patience = 2 * time.Minute

// process is the real command with an environment of its own.
type process struct {
	*exec.Cmd
	out, errs shared
}

// shared is a buffer that is read while it is written.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start runs the real command with a data folder.
func start(t *testing.T, data, stdin string, args ...string) *process {
	t.Helper()
	return startIn(t, nil, data, stdin, args...)
}

// startIn is start, with more in the environment.
func startIn(t *testing.T, env []string, data, stdin string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, args...)}
	p.Stdout, p.Stderr, p.Stdin = &p.out, &p.errs, strings.NewReader(stdin)
	p.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(data), "STEPJET_DATA=" + data, "TMPDIR=" + os.TempDir(),
		"STEPJET_TOOLS=" + examples + "../tools.json"}
	p.Env = append(p.Env, env...)
	require.NoError(t, p.Start())
	late := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = p.Process.Kill() // it may have ended by itself
	})
	return p
}

// end waits for the process and gives its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var failed *exec.ExitError
	if err != nil {
		require.True(t, errors.As(err, &failed), "%v", err)
	}
	return p.ProcessState.ExitCode()
}

// execute runs the real command to its end.
func execute(t *testing.T, data, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := start(t, data, stdin, args...)
	code = p.end(t)
	return p.out.String(), p.errs.String(), code
}

func folder(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

func decode(t *testing.T, text string) *outcome.Outcome {
	t.Helper()
	var o outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(text), &o), text)
	return &o
}

func TestRunOfTheExamples(t *testing.T) {
	t.Parallel()
	data := folder(t)
	for _, tt := range []struct {
		plan   string
		code   int
		status outcome.RunStatus
		step   string
		result string
	}{
		{"weather", 0, outcome.Succeeded, "compare", `{"result":"Tokyo is 8.5 degrees warmer than London. Take an umbrella to London: rain."}`},
		{"order", 0, outcome.Succeeded, "receipt", ""},
		{"partial", 3, outcome.Partial, "in_stock", `{"result":19}`},
		{"retry", 0, outcome.Succeeded, "report", `{"result":"It took 3 attempts."}`},
		{"report", 0, outcome.Succeeded, "table", ""},
	} {
		stdout, stderr, code := execute(t, data, "", "run", "-o", "json", "--run", "example/"+tt.plan, examples+tt.plan+".json")
		require.Equal(t, tt.code, code, stderr)
		o := decode(t, stdout)
		require.Equal(t, tt.status, o.Status)
		require.Equal(t, "example/"+tt.plan, o.Run)
		got, ok := o.Results.Get(tt.step)
		require.True(t, ok, stdout)
		if tt.result != "" {
			require.JSONEq(t, tt.result, string(got))
		}
	}
	// What ran is kept: it can be listed, looked at and asked for again, and nothing runs twice.
	stdout, _, code := execute(t, data, "", "list", "-o", "json", "-q")
	require.Zero(t, code)
	require.Equal(t, 5, strings.Count(stdout, `"run":"example/`))
	stdout, _, code = execute(t, data, "", "get", "-o", "json", "example/weather")
	require.Zero(t, code)
	var doc outcome.Run
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Equal(t, `{"a": 21.5, "b": 13}`, string(doc.Steps[2].Arguments))
	stdout, stderr, code := execute(t, data, "", "run", "-o", "json", "--run", "example/partial", examples+"partial.json")
	require.Equal(t, 3, code)
	require.Contains(t, stderr, "was there before")
	require.Equal(t, outcome.Partial, decode(t, stdout).Status)
	_, stderr, code = execute(t, data, "", "run", "--run", "example/partial", examples+"weather.json")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "conflict:")
}

func TestRunOfInvalidPlans(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := execute(t, folder(t), "", "run", "-o", "json", "testdata/plans/invalid.json")
	require.Equal(t, 2, code, stderr)
	o := decode(t, stdout)
	require.Equal(t, outcome.Rejected, o.Status)
	require.GreaterOrEqual(t, len(o.Problems), 5)
	require.Contains(t, stdout, "unknown_tool")
	require.NotContains(t, stderr, "unknown_tool", "problems are printed once")
	stdout, stderr, code = execute(t, folder(t), "", "run", "testdata/plans/invalid.json")
	require.Equal(t, 2, code)
	require.Empty(t, stdout, "for people they stand on standard error, and there alone")
	require.Contains(t, stderr, "unknown_tool")

	_, stderr, code = execute(t, folder(t), `{"steps":[{"id":"a","tool":"echo","arguments":"`+strings.Repeat("x", 2<<20)+`"}]}`, "run", "-")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "limit_exceeded")
}

func TestRunThatFails(t *testing.T) {
	t.Parallel()
	plan := `{"steps":[{"id":"a","tool":"fail","arguments":{"message":"no","terminal":true}},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}}]}`
	stdout, stderr, code := execute(t, folder(t), plan, "run", "-o", "json", "-")
	require.Equal(t, 1, code, stderr)
	o := decode(t, stdout)
	require.Equal(t, outcome.Failed, o.Status)
	require.Len(t, o.Errors, 2)
	require.Contains(t, stderr, "Skipped because dependency 'a' failed")
}

const slowPlan = `{"steps":[{"id":"a","tool":"sleep","arguments":{"ms":3000}},{"id":"b","tool":"add","arguments":{"a":"$ref:a.result","b":1}}]}`

// The wait of a client ends; the run doesn't. The next process on the same folder goes on with it.
func TestWaitRunsOut(t *testing.T) {
	t.Parallel()
	data := folder(t)
	stdout, stderr, code := execute(t, data, slowPlan, "run", "--run", "slow", "--wait", "200ms", "-")
	require.Equal(t, 124, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "stepjet get slow")
	stdout, stderr, code = execute(t, data, "", "get", "slow", "--wait", "30s", "--outcome", "-o", "json")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, outcome.Succeeded, decode(t, stdout).Status)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	data := folder(t)
	p := start(t, data, slowPlan, "run", "--run", "slow", "-")
	// The run has begun once its folder lists it, which only its own process can tell: it says so on standard error.
	waitForLine(t, p, "started")
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	require.Equal(t, 130, p.end(t), p.errs.String())
	require.Contains(t, p.errs.String(), "stepjet get slow")
	stdout, stderr, code := execute(t, data, "", "get", "slow", "--wait", "30s", "--outcome", "-o", "json")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, outcome.Succeeded, decode(t, stdout).Status)
}

// Killed in mid-run with -9: nothing accepted is lost.
func TestKill(t *testing.T) {
	t.Parallel()
	data := folder(t)
	p := start(t, data, slowPlan, "run", "--run", "slow", "-")
	waitForLine(t, p, "started")
	require.NoError(t, p.Process.Kill())
	require.Equal(t, -1, p.end(t))
	stdout, stderr, code := execute(t, data, "", "get", "slow", "--wait", "50s", "--outcome", "-o", "json")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, outcome.Succeeded, decode(t, stdout).Status)
}

// waitForLine waits until a process has said something on standard error.
func waitForLine(t *testing.T, p *process, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), text) }, patience, 10*time.Millisecond)
}

func TestEvalOfTheNestfulPlans(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := execute(t, folder(t), "", "eval", "--tools", examples+"../nestful.json", "-o", "json", "../builtin/testdata/nestful/plans.jsonl")
	require.Equal(t, 0, code, stdout+stderr)
	var r struct {
		Total, Right, Steps int
		Differed            []any
		StepsPerSecond      float64 `json:"steps_per_second"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Equal(t, 128, r.Total)
	require.Equal(t, 128, r.Right)
	require.Equal(t, 600, r.Steps)
	require.Empty(t, r.Differed)
	require.Positive(t, r.StepsPerSecond)
}

func TestEvalThatDiffers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cases.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(
		`{"name":"right","plan":{"steps":[{"id":"a","tool":"add","arguments":{"a":1,"b":2}}]},"answer":3.0}`+"\n"+
			`{"name":"wrong","plan":{"steps":[{"id":"a","tool":"add","arguments":{"a":1,"b":2}}]},"answer":4.0}`+"\n"+
			`{"name":"invalid","plan":{"steps":[{"id":"a","tool":"ad"}]},"answer":4.0}`+"\n"), 0o600))
	stdout, stderr, code := execute(t, folder(t), "", "eval", "--report", file)
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "2 answers differed")
	require.Contains(t, stdout, "want 4.0, got")
	require.Contains(t, stdout, "unknown_tool")
	require.Contains(t, stdout, "wave 1")
	_, stderr, code = execute(t, folder(t), "nope", "eval", "-")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "line 1")
}

func TestToolsHere(t *testing.T) {
	t.Parallel()
	data := folder(t)
	stdout, stderr, code := execute(t, data, "", "tools", "call", "-q", "-o", "json", "divide", `{"a": 1, "b": 4}`)
	require.Equal(t, 0, code, stderr)
	require.JSONEq(t, `{"result":0.25}`, stdout)
	_, stderr, code = execute(t, data, "", "tools", "call", "divide", `{"a": 1}`)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "invalid_arguments")
	_, stderr, code = execute(t, data, "", "tools", "call", "divide", `{"a": 1, "b": 0}`)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "tool_terminal")
	_, _, code = execute(t, data, "", "tools", "call", "divide", `{`)
	require.Equal(t, 2, code)

	stdout, _, code = execute(t, data, "", "tools", "list", "-o", "json")
	require.Zero(t, code)
	tools := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(stdout), 0o600))
	stdout, stderr, code = execute(t, data, "", append([]string{"validate", "--tools", tools}, glob(t, examples+"*.json")...)...)
	require.Equal(t, 0, code, stdout+stderr) // what is listed is what validate reads
	stdout, _, code = execute(t, data, "", "tools", "show", "divide")
	require.Zero(t, code)
	require.Contains(t, stdout, "a")
	_, stderr, code = execute(t, data, "", "tools", "show", "Divide")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "did you mean divide?")
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestNoConnectionExitsWith4(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"list"}, {"get", "r"}, {"watch", "r"}, {"cancel", "r"}, {"submit", examples + "weather.json"}, {"run", examples + "weather.json"},
		{"eval", "../builtin/testdata/nestful/plans.jsonl"}, {"tools", "list"}, {"validate", examples + "weather.json"},
	} {
		_, stderr, code := execute(t, folder(t), "", append(args, "--server", "nats://127.0.0.1:1")...)
		require.Equal(t, 4, code, args)
		require.Contains(t, stderr, "no_connection:", args)
		require.Contains(t, stderr, "nats://127.0.0.1:1", args)
	}
}

func TestGoVersionIsBuiltIn(t *testing.T) {
	t.Parallel()
	stdout, _, code := execute(t, folder(t), "", "version")
	require.Zero(t, code)
	require.Contains(t, stdout, runtime.Version())
}
