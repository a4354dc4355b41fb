package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

func listening(t *testing.T, opts ...func(*embedded.Options)) *embedded.Server {
	t.Helper()
	return natstest.Start(t, append([]func(*embedded.Options){func(o *embedded.Options) { o.Listen = "127.0.0.1:0" }}, opts...)...)
}

// setUp creates Stepjet's assets, as an orchestrator does that is gone now.
func setUp(t *testing.T, srv *embedded.Server) *kv.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store, err := kv.Setup(ctx, natstest.Connect(t, srv), kv.Config{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return store
}

func TestServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	srv := listening(t, func(o *embedded.Options) { o.NoJetStream = true })
	_, stderr, code := command(t, "", "list", "--url", srv.URL())
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no_jetstream:")
	require.Contains(t, stderr, "-js")
}

func TestServerWithoutStepjet(t *testing.T) {
	t.Parallel()
	srv := listening(t)
	for _, args := range [][]string{{"list"}, {"run", examples + "weather.json"}, {"tools", "list"}} {
		_, stderr, code := command(t, "", append(args, "--url", srv.URL())...)
		require.Equal(t, 1, code, args)
		require.Contains(t, stderr, "not_ready:", args)
		require.Contains(t, stderr, "orchestrator", args)
	}
}

func TestPlanTooLargeForTheServer(t *testing.T) {
	t.Parallel()
	srv := listening(t, func(o *embedded.Options) { o.MaxPayload = 64 << 10 })
	setUp(t, srv)
	plan := `{"steps":[{"id":"a","tool":"echo","arguments":{"x":"` + strings.Repeat("x", 100<<10) + `"}}]}`
	for _, verb := range []string{"submit", "run"} {
		_, stderr, code := command(t, plan, verb, "-", "--url", srv.URL())
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, "message_too_large:")
		require.Contains(t, stderr, "65536")
	}
}

func TestMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(
		`authorization: {users: [{user: all, password: x}, {user: reader, password: x, permissions: {publish: {deny: ["plan.submit.>"]}}}]}`+"\nno_auth_user: all\n"), 0o600))
	srv := listening(t, func(o *embedded.Options) { o.ConfigFile = file })
	setUp(t, srv)
	_, stderr, code := command(t, "", "submit", "--run", "r", examples+"weather.json", "--url", strings.Replace(srv.URL(), "nats://", "nats://reader:x@", 1))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "permission:")
	require.Contains(t, stderr, "plan.submit.default.r")
	_, stderr, code = command(t, "", "list", "--url", strings.Replace(srv.URL(), "nats://", "nats://reader:wrong@", 1))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "permission:")
	require.NotContains(t, stderr, "wrong")
}

// A plan that is stored while nobody runs plans is not lost, and the person is told.
func TestNoOrchestratorAnswers(t *testing.T) {
	t.Parallel()
	srv := listening(t)
	store := setUp(t, srv)
	stdout, stderr, code := command(t, "", "run", "--run", "r", "--wait", "2s", examples+"weather.json", "--url", srv.URL())
	require.Equal(t, 124, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "no orchestrator answers")
	require.Contains(t, stderr, "stepjet get r --url "+srv.URL())
	_, err := store.Ledger.Read(t.Context(), subjects.PlanRecord(subjects.NewRun("default", "r"), 1))
	require.NoError(t, err)
}

// The environment stands in for flags, and flags win.
func TestWhereTheServerIs(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	contexts := filepath.Join(home, "nats", "context")
	require.NoError(t, os.MkdirAll(contexts, 0o700))
	file := filepath.Join(contexts, "far.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"url":"nats://127.0.0.1:3"}`), 0o600))
	for _, tt := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{nil, nil, "127.0.0.1:4222"}, // the default, where nothing else is said and nothing is kept here
		{map[string]string{"NATS_URL": "nats://127.0.0.1:2"}, nil, "127.0.0.1:2"},
		{map[string]string{"NATS_URL": "nats://127.0.0.1:2"}, []string{"--server", "nats://127.0.0.1:1"}, "127.0.0.1:1"},
		{map[string]string{"NATS_URL": "nats://127.0.0.1:2"}, []string{"-s", "nats://127.0.0.1:1"}, "127.0.0.1:1"},
		{map[string]string{"NATS_CONTEXT": file}, nil, "127.0.0.1:3"},
		{map[string]string{"NATS_URL": "nats://127.0.0.1:2"}, []string{"--context", file}, "127.0.0.1:3"},
		{map[string]string{"NATS_CONTEXT": file}, []string{"--url", "nats://127.0.0.1:1"}, "127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), Env{
			Args: append([]string{"submit", examples + "weather.json"}, tt.args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			Getenv: func(name string) string { return tt.env[name] },
		})
		if tt.want == "127.0.0.1:4222" && code == 1 {
			continue // somebody's own server listens there
		}
		require.Equal(t, 4, code, "%v %v: %s", tt.env, tt.args, errs.String())
		require.Contains(t, errs.String(), tt.want)
	}
}

// The screen shows the end of the run when the reporter is closed, and nothing is left running.
func TestLiveEndsWithTheLastState(t *testing.T) {
	t.Parallel()
	var shows shared
	l := newLive(onto(&shows), style{}, planned{newProgress("r", parsed(t, progressPlan), time.Now()), nil})
	l.event(client.Event{Kind: subjects.EventStart, Steps: 5})
	require.Eventually(t, func() bool { return strings.Contains(shows.String(), "queued") }, patience, time.Millisecond)
	for _, id := range []string{"tokyo", "london", "paris", "compare", "note"} {
		l.event(client.Event{Kind: subjects.EventStep, Step: id, Status: outcome.StepSucceeded, MS: 1})
	}
	l.event(client.Event{Kind: subjects.EventEnd})
	l.close()
	frames := strings.Split(shows.String(), "\x1b[6A")
	last := frames[len(frames)-1]
	require.Contains(t, last, "5 of 5 steps")
	require.Equal(t, 5, strings.Count(last, "✓"))
	require.Equal(t, 6, strings.Count(last, "\n"))
}

func TestPlainLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := &lines{w: &b}
	for _, e := range []client.Event{
		{Kind: subjects.EventStart, Run: "r\x1b[2J", Steps: 1},
		{Kind: subjects.EventStep, Step: "a", Tool: "echo", Status: outcome.StepSucceeded, Attempt: 2, MS: 1.5},
		{Kind: subjects.EventEnd},
	} {
		l.event(e)
	}
	require.Equal(t, "started    r [2J  1 step\nsucceeded  a  echo  1.50 ms  attempt 2\n", b.String())
}

func TestInterruptedEval(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range 4 {
		fmt.Fprintf(&lines, `{"name":"%d","plan":%s,"answer":1}`+"\n", i, slowest)
	}
	p := start(t, folder(t), lines.String(), "eval", "-v", "-")
	waitForLine(t, p, "taking steps")
	require.NoError(t, p.Process.Signal(os.Interrupt))
	require.Equal(t, 130, p.end(t), p.errs.String())
}

// A run that waits says for what, and a thousand steps that wait for the same say it a few times.
func TestPlainLinesOfWhatWaits(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := &lines{w: &b}
	for i := range 1000 {
		l.event(client.Event{Kind: subjects.EventStep, Step: fmt.Sprint("s", i), Tool: "pay", Status: outcome.StepReady,
			Waiting: fmt.Sprintf("fan-out limit 8 of 8, %d wait", i)})
	}
	l.event(client.Event{Kind: subjects.EventStep, Step: "x", Tool: "pay", Status: outcome.StepRunning})
	l.event(client.Event{Kind: subjects.EventStep, Step: "y", Tool: "pay", Status: outcome.StepSucceeded, MS: 2, QueuedMS: 5000})
	require.Equal(t, `queued     s0  pay  fan-out limit 8 of 8, 0 wait
queued     s1  pay  fan-out limit 8 of 8, 1 wait
queued     s2  pay  fan-out limit 8 of 8, 2 wait
queued     s3  pay  fan-out limit 8 of 8, 3 wait
queued     s4  pay  fan-out limit 8 of 8, 4 wait
queued     pay  more of them
running    x  pay
succeeded  y  pay  2.00 ms after 5.00 s queued
`, b.String())
}

// Under -o json whatever ends a command is one JSON document on standard error.
func TestErrorsForPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"get", "nobody", "--server", "nats://127.0.0.1:1"}, 4, "no_connection"},
		{[]string{"get"}, 2, "usage"},
		{[]string{"tools", "apply", "testdata/tools/absent.json"}, 2, "invalid_config"},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), Env{Args: append(tt.args, "-o", "json"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			Getenv: func(string) string { return "" }})
		require.Equal(t, tt.exit, code, errs.String())
		var e struct {
			Code, Message, Hint string
			Exit                int `json:"exit_code"`
		}
		require.NoError(t, json.Unmarshal(errs.Bytes(), &e), errs.String())
		require.Equal(t, tt.code, e.Code)
		require.Equal(t, tt.exit, e.Exit)
		require.NotEmpty(t, e.Message)
		require.Empty(t, out.String())
	}
}

// late is a picture of what is read alone, all of it by the second reading.
type late struct {
	reads int // of the goroutine that reads
	shows string
}

func (p *late) apply(client.Event, time.Time) bool { return true }

func (p *late) read() func(time.Time) bool {
	p.reads++
	n := p.reads
	return func(time.Time) bool {
		p.shows = fmt.Sprintf("read %d", n)
		return n == 1
	}
}

func (p *late) lines(style, int, int, time.Time) []string { return []string{p.shows} }

// What was to be read once more when the reporter is closed is read then: what it draws last stays on the screen.
func TestLiveReadsOnceMoreBeforeItDrawsLast(t *testing.T) {
	t.Parallel()
	var shows shared
	p := &late{}
	l := newLive(onto(&shows), style{}, p)
	l.event(client.Event{Kind: subjects.EventEnd})
	require.Eventually(t, func() bool { return strings.Contains(shows.String(), "read 1") }, patience, time.Millisecond)
	l.close()
	require.Equal(t, 2, p.reads)
	require.Contains(t, shows.String(), "read 2")
}

// What is wrong with a plan is an error: --quiet leaves it.
func TestWhatIsWrongWithAPlanIsToldQuietlyToo(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs, flags: flags{quiet: true, output: "text"}}
	err := a.outcome(&outcome.Outcome{Status: outcome.Rejected, Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: `there is no tool "nix"`}}})
	require.Error(t, err)
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), `there is no tool "nix"`)
	require.Contains(t, errs.String(), "rejected: 1 problem, nothing ran")
}
