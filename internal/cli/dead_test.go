package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func sampleDead() []*outcome.DeadLetter {
	return []*outcome.DeadLetter{
		{Run: "order-42", Tenant: "default", Generation: 7, Step: "charge", Tool: "charge", Attempts: 3, Failed: noon, Worker: "w-1",
			Key: "default/order-42/7/charge", Arguments: json.RawMessage(`{"amount":1.50,"to":"é<b>"}`),
			Error: &fault.Error{Code: fault.ToolFailed, Message: "503 from upstream\n\x1b[31mred", Hint: "try later", Details: json.RawMessage(`{"status":503}`)}},
		{Run: "a name with blanks\x1b", Tenant: "default", Generation: 9, Step: "tokyo=12", Tool: "get_weather", Attempts: 1, Failed: noon.Add(-30 * time.Hour),
			Key: "default/a=20/9/tokyo=12", Error: fault.New(fault.Timeout, "took longer than 2s")},
	}
}

func TestGoldenDead(t *testing.T) {
	t.Parallel()
	a, out, errs := paper("text")
	require.NoError(t, a.showDead(sampleDead()))
	for _, d := range sampleDead() {
		fmt.Fprintln(out, "----")
		require.NoError(t, a.writeDead(d))
	}
	fmt.Fprintln(out, "----")
	for _, r := range []deadRetry{
		{Run: "order-42", Step: "charge", Retry: "dead/order-42/charge/7/1", Status: outcome.Succeeded, Outcome: &outcome.Outcome{Status: outcome.Succeeded}},
		{Run: "order-42", Step: "ship", Retry: "dead/order-42/ship/7/1", Status: outcome.Running},
		{Run: "order-42", Step: "pay\x1b", Retry: "dead/order-42/pay/7/2", Status: outcome.Failed, Outcome: &outcome.Outcome{
			Status: outcome.Failed, Errors: []outcome.StepError{{Step: "pay", Code: fault.ToolFailed, Message: "503\nagain"}}}},
		{Run: "order-42", Step: "big", Error: fault.New(fault.TooLarge, "the arguments have 2000000 bytes")},
	} {
		require.NoError(t, a.printDeadRetry(r))
	}
	golden(t, "dead", out.String())
	require.NotContains(t, out.String(), "\x1b")
	require.NoError(t, a.showDead(nil))
	require.Equal(t, "no dead letters\n", errs.String())
}

// charging is a worker that hosts the tool charge, which fails while it is closed, and tells whom it was called for.
func charging(t *testing.T, url string) (open *atomic.Bool, users chan string) {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	open, users = &atomic.Bool{}, make(chan string, 100)
	worker.Handle(w, "charge", func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
		info, _ := worker.InfoFrom(ctx)
		user, _ := info.Context.Get("user")
		token, _ := info.Context.Get("token")
		users <- user + " " + token
		if !open.Load() {
			return nil, errors.New("the till is closed")
		}
		return in, nil
	}, worker.InputSchema(json.RawMessage(`{"type":"object"}`)), worker.Contract(tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 1}}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	select {
	case <-w.Ready():
	case <-time.After(patience):
		require.Fail(t, "the worker is not ready")
	}
	return open, users
}

const charges = `{"steps":[{"id":"a","tool":"echo","arguments":{"n":1.50}},{"id":"pay","tool":"charge","arguments":{"n":"$ref:a.n"}},
	{"id":"tip","tool":"charge","arguments":{"n":"$ref:a.n"}},{"id":"z","tool":"echo","arguments":{"p":"$ref:pay"}}],"output_steps":["z"]}`

// What failed is found, looked at, tried again, and gone once it succeeded.
func TestDeadLettersAndRetries(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	open, users := charging(t, url)
	bag := filepath.Join(t.TempDir(), "bag.json")
	require.NoError(t, os.WriteFile(bag, []byte(`{"all":{"user":"file"},"steps":{"tip":{"user":"eve"}},"secrets":["token"]}`), 0o600))

	_, stderr, code := execute(t, data, charges, "run", "--run", "order-42", "--with-file", bag, "--with", "user=ada", "--secret", "token=hunter2-4f1c", "-")
	require.Equal(t, 1, code, stderr)
	require.NotContains(t, stderr, "hunter2")
	require.ElementsMatch(t, []string{"ada hunter2-4f1c", "eve hunter2-4f1c"}, []string{<-users, <-users})
	for _, args := range [][]string{{"get", "order-42"}, {"get", "order-42", "-o", "json"}, {"list", "-o", "json"}, {"watch", "order-42", "-o", "json"}, {"dead", "show", "order-42", "pay", "-o", "json"}} {
		stdout, stderr, _ := execute(t, data, "", args...)
		require.NotEmpty(t, stdout)
		require.NotContains(t, stdout+stderr, "hunter2", args)
	}

	var letters []outcome.DeadLetter
	list := func(args ...string) int {
		stdout, stderr, code := execute(t, data, "", append([]string{"dead", "list", "-o", "json"}, args...)...)
		require.Zero(t, code, stderr)
		letters = nil
		require.NoError(t, json.Unmarshal([]byte(stdout), &letters))
		return len(letters)
	}
	require.Equal(t, 2, list("--tool", "charge", "--run", "order-42"))
	require.Zero(t, list("--tool", "echo"))
	stdout, _, code := execute(t, data, "", "dead", "show", "order-42", "pay", "-o", "json")
	require.Zero(t, code)
	require.Contains(t, stdout, `"arguments":{"n":1.50}`)
	_, stderr, code = execute(t, data, "", "dead", "show", "order-42", "a")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "dead list")

	// The till is still closed: one at a time, then all.
	_, stderr, code = execute(t, data, "", "dead", "retry", "order-42", "pay", "-o", "json")
	require.Equal(t, 2, code, "what its tool was given beside the arguments is not kept")
	require.Contains(t, stderr, "add --secret token --with user=VALUE")
	stdout, stderr, code = execute(t, data, "", "dead", "retry", "order-42", "pay", "-o", "json", "--less-context")
	require.Equal(t, 1, code, stderr)
	require.Equal(t, "dead/order-42/pay/"+fmt.Sprint(letters0(t, data))+"/1", decode(t, stdout).Run)
	<-users
	require.Equal(t, 2, list())
	open.Store(true)
	stdout, stderr, code = execute(t, data, "", "dead", "retry", "--all", "--with", "user=bob", "--less-context")
	require.Equal(t, 0, code, stdout+stderr)
	require.Equal(t, 2, strings.Count(stdout, "succeeded  order-42"), stdout)
	require.Contains(t, stderr, "2 of 2 dead letters succeeded")
	require.Equal(t, []string{"bob ", "bob "}, []string{<-users, <-users})
	require.Zero(t, list())
	_, stderr, code = execute(t, data, "", "dead", "retry", "--all")
	require.Zero(t, code)
	require.Contains(t, stderr, "no dead letters")

	// The run as a whole: what succeeded is reused.
	_, stderr, code = execute(t, data, "", "retry", "order-42", "--secret", "token=@env:HOME", "--with", "user=ada")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "add --with tip:user=VALUE;", "what one step had for itself is asked for by its name")
	bagAgain := []string{"--secret", "token=@env:HOME", "--with", "user=", "--with", "tip:user="}
	stdout, stderr, code = execute(t, data, "", append([]string{"retry", "order-42", "-o", "json"}, bagAgain...)...)
	require.Equal(t, 0, code, stderr)
	o := decode(t, stdout)
	require.Equal(t, "order-42.2", o.Run)
	require.JSONEq(t, `{"p":{"n":1.50}}`, string(o.Results[0].JSON))
	require.Equal(t, " "+filepath.Dir(data), <-users)
	<-users
	stdout, stderr, code = execute(t, data, "", "retry", "order-42", "-o", "json", "--detach", "--less-context")
	require.Equal(t, 0, code, stderr)
	require.JSONEq(t, `{"run":"order-42.2","tenant":"default","attached":true}`, stdout)
	stdout, _, code = execute(t, data, "", "get", "order-42.2")
	require.Zero(t, code)
	require.Contains(t, stdout, "retry of   order-42\n")
	require.Contains(t, stdout, "succeeded, reused")
	_, stderr, code = execute(t, data, "", "retry", "order-42.2")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "--from STEP")
	_, stderr, code = execute(t, data, "", append([]string{"retry", "order-42.2", "--from", "pay", "--id", "third"}, bagAgain...)...)
	require.Zero(t, code, stderr)
	<-users
	require.Empty(t, users, "tip was not called again")
}

// letters0 returns the generation of the run of the first dead letter.
func letters0(t *testing.T, data string) uint64 {
	t.Helper()
	stdout, _, _ := execute(t, data, "", "dead", "show", "order-42", "pay", "-o", "json")
	var d outcome.DeadLetter
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	return d.Generation
}

func TestDeadRemoveAndDetach(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	open, users := charging(t, url)
	_, _, code := execute(t, data, charges, "run", "--run", "r", "-")
	require.Equal(t, 1, code)
	<-users
	<-users
	stdout, stderr, code := execute(t, data, "", "dead", "remove", "r", "tip")
	require.Zero(t, code, stderr)
	require.Equal(t, "r  tip  removed\n", stdout)
	_, _, code = execute(t, data, "", "dead", "remove", "r", "tip")
	require.Equal(t, 1, code)
	open.Store(true)
	run, stderr, code := execute(t, data, "", "dead", "retry", "--detach", "r", "pay")
	require.Zero(t, code, stderr)
	_, stderr, code = execute(t, data, "", "get", strings.TrimSpace(run), "--wait", "30s", "--outcome")
	require.Zero(t, code, stderr)
	stdout, _, code = execute(t, data, "", "dead", "list")
	require.Zero(t, code)
	require.Contains(t, stdout, "pay", "who typed the command may want to know")
	stdout, stderr, code = execute(t, data, "", "dead", "retry", "r", "pay", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "was there before")
	require.Equal(t, strings.TrimSpace(run), decode(t, stdout).Run)
	<-users
	require.Empty(t, users, "the call was made once")
	_, stderr, _ = execute(t, data, "", "dead", "list")
	require.Contains(t, stderr, "no dead letters")
}

// The command's own flags for context can't be mixed up with those of the connection.
func TestContextFlags(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TOKEN": "from the environment"}
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from a file\r\n"), 0o600))
	a, _, _ := paper("text")
	a.env.Getenv = func(name string) string { return env[name] }
	r, err := a.runContext(&contextFlags{
		values:  []string{"user=ada", "tokyo:user=bob=b", "empty="},
		secrets: []string{"a=@env:TOKEN", "b=@file:" + file, "tokyo:c=plain"},
	}, parsed(t, progressPlan))
	require.NoError(t, err)
	values := map[string]string{}
	c := r.Of("tokyo")
	for _, k := range c.Keys() {
		values[k], _ = c.Get(k)
		require.Equal(t, len(k) == 1, c.Secret(k), k)
	}
	require.Equal(t, map[string]string{"user": "bob=b", "empty": "", "a": "from the environment", "b": "from a file", "c": "plain"}, values)
	user, _ := r.Of("london").Get("user")
	require.Equal(t, "ada", user)
	_, err = a.runContext(&contextFlags{values: []string{"x=" + strings.Repeat("x", 9<<10)}}, nil)
	require.Equal(t, fault.LimitExceeded, fault.CodeOf(err))
	none, err := a.runContext(&contextFlags{}, nil)
	require.NoError(t, err)
	require.Zero(t, none.All.Len())
	require.Nil(t, none.Steps)
}
