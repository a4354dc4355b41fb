package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/outcome"
)

// once runs a program to its end and gives exit code, stdout and stderr.
func once(t testing.TB, url, program string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+url, "NO_COLOR=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err, code = nil, exit.ExitCode()
	}
	require.NoError(t, err, "%s", errs.String())
	return code, out.String(), errs.String()
}

func planFile(t testing.TB, plan string) string {
	path := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(path, []byte(plan), 0o600))
	return path
}

const onePlan = `{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}}]}`

func TestNoServer(t *testing.T) {
	t.Parallel()
	const nowhere = "nats://127.0.0.1:1"
	for _, args := range [][]string{{"orchestrator", "--wait-for-nats=0"}, {"toolworker", "--wait-for-nats=0"}, {"stepjet", "submit", planFile(t, onePlan)}, {"stepjet", "list"}} {
		code, _, said := once(t, nowhere, args[0], args[1:]...)
		require.Equal(t, 4, code, "%v: %s", args, said)
		require.Contains(t, said, "no_connection")
		require.Contains(t, said, "127.0.0.1:1")
	}
}

// Whichever is started first: daemons wait for their server, say so, answer on their health endpoint, and still end
// when asked to.
func TestDaemonsWaitForTheirServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	o, w := begin(t, "nats://"+address, "orchestrator", "--wait-for-nats=10m", "--health", "127.0.0.1:0"), begin(t, "nats://"+address, "toolworker", "--wait-for-nats=10m")
	impatient := begin(t, "nats://"+address, "orchestrator", "--wait-for-nats=10m")
	o.says("health endpoint")
	for _, p := range []*process{o, w, impatient} {
		p.says("waiting for NATS")
	}
	require.Zero(t, impatient.stop())
	srv, _ := server(t, func(o *embedded.Options) { o.Listen = address })
	o.says("msg=ready")
	w.says("msg=ready")
	_, c := connect(t, srv)
	out, err := c.Run(within(t, 2*time.Minute), []byte(onePlan), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
}

func TestAServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	_, url := server(t, func(o *embedded.Options) { o.NoJetStream = true })
	code, _, said := once(t, url, "orchestrator")
	require.NotZero(t, code)
	require.Contains(t, said, "no_jetstream")
	code, _, said = once(t, url, "stepjet", "submit", planFile(t, onePlan))
	require.NotZero(t, code)
	require.Contains(t, said, "no_jetstream")
}

func TestAMissingPermissionNamesTheSubject(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(`
		authorization { users = [
			{user: all, password: all}
			{user: agent, password: agent, permissions: {publish: {deny: ["plan.>"]}}}
		] }`), 0o600))
	_, url := server(t, func(o *embedded.Options) { o.ConfigFile = conf })
	as := func(user string) string { return strings.Replace(url, "nats://", "nats://"+user+":"+user+"@", 1) }
	begin(t, as("all"), "orchestrator").says("ready")
	code, _, said := once(t, as("agent"), "stepjet", "submit", "--run", "mine", planFile(t, onePlan))
	require.NotZero(t, code)
	require.Contains(t, said, "permission")
	require.Contains(t, said, "plan.submit.default.mine")
	require.NotContains(t, said, "agent:agent", "no password in an error")
}

func TestAPlanIsTooLargeOrItsIDIsTaken(t *testing.T) {
	t.Parallel()
	_, url := server(t)
	begin(t, url, "orchestrator").says("ready")
	begin(t, url, "toolworker").says("ready")
	large := `{"steps":[{"id":"a","tool":"echo","arguments":{"x":"` + strings.Repeat("y", 2<<20) + `"}}]}`
	code, _, said := once(t, url, "stepjet", "run", planFile(t, large))
	require.Equal(t, 2, code, said)
	require.Regexp(t, "message_too_large|limit_exceeded", said)

	code, out, said := once(t, url, "stepjet", "run", "--run", "mine", "-o", "json", planFile(t, onePlan))
	require.Zero(t, code, said)
	var o outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	require.Equal(t, outcome.Succeeded, o.Status)
	code, _, said = once(t, url, "stepjet", "run", "--run", "mine", planFile(t, strings.Replace(onePlan, "1", "2", 1)))
	require.Equal(t, 2, code, said)
	require.Contains(t, said, "conflict")
	code, out, _ = once(t, url, "stepjet", "run", "--run", "mine", "-o", "json", planFile(t, onePlan))
	require.Zero(t, code)
	require.Contains(t, out, `"x":1`, "the stored outcome stays")
}

func TestToolsThatMisbehave(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	begin(t, url, "orchestrator").says("ready")
	tools := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(`{"tools":[
		{"builtin":"echo"},
		{"name":"megabytes","description":"prints without end","exec":{"argv":["/bin/sh","-c","while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"],"output_limit_bytes":100000}},
		{"name":"never","description":"never returns","exec":{"argv":["/bin/sh","-c","sleep 1000"],"timeout_ms":500}}]}`), 0o600))
	begin(t, url, "toolworker", "--tools", tools).says("ready")
	_, c := connect(t, srv)
	o, err := c.Run(within(t, 2*time.Minute), []byte(`{"steps":[{"id":"m","tool":"megabytes"},{"id":"n","tool":"never"},{"id":"e","tool":"echo","arguments":{"ok":true}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, o.Status)
	codes := map[string]string{}
	for _, e := range o.Errors {
		codes[e.Step] = string(e.Code)
	}
	require.Equal(t, map[string]string{"m": "too_large", "n": "timeout"}, codes, "%s", o.JSON())
}

func TestRunWithoutAServer(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	code, out, said := once(t, "", "stepjet", "run", "--data", data, "--run", "big", "-o", "json",
		planFile(t, fmt.Sprintf(`{"steps":[{"id":"a","tool":"echo","arguments":{"x":"%s"}},{"id":"b","tool":"echo","arguments":{"all":["$ref:a.x","$ref:a.x","$ref:a.x"]}}],"output_steps":["b"]}`, strings.Repeat("z", 700<<10))))
	require.Zero(t, code, said)
	var o outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	b, _ := o.Results.Get("b")
	require.Len(t, b, 3*(700<<10)+len(`{"all":["","",""]}`), "a result of over 2 MiB, arguments too")
	code, out, said = once(t, "", "stepjet", "get", "--data", data, "-o", "json", "big")
	require.Zero(t, code, said)
	require.Contains(t, out, `"status":"succeeded"`)
}

func TestReadinessFollowsTheConnection(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	o := begin(t, url, "orchestrator", "--health", "127.0.0.1:0")
	_, address, _ := strings.Cut(o.says("health endpoint"), "address=")
	o.says("msg=ready")
	status := func() int {
		r, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return 0
		}
		defer r.Body.Close()
		return r.StatusCode
	}
	require.Equal(t, http.StatusOK, status())
	srv.Shutdown()
	require.Eventually(t, func() bool { return status() == http.StatusServiceUnavailable }, 2*time.Minute, 20*time.Millisecond)
}
