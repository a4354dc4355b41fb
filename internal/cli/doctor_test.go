package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// ward is a whole Stepjet around a server that can be harmed.
type ward struct {
	t    *testing.T
	srv  *embedded.Server
	js   jetstream.JetStream
	gate chan struct{} // what the tool "gate" waits for
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{t: t, srv: natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" }), gate: make(chan struct{})}
	var err error
	w.js, err = jetstream.New(natstest.Connect(t, w.srv))
	require.NoError(t, err)
	return w
}

// part runs an orchestrator or a worker until stop is called or the test ends.
func (w *ward) part(run func(context.Context) error, ready <-chan struct{}) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(stop)
	select {
	case <-ready:
	case <-time.After(2 * time.Minute):
		require.Fail(w.t, "a part did not become ready")
	}
	return stop
}

func (w *ward) orchestrator() (stop func()) {
	w.t.Helper()
	o, err := orchestrator.New(natstest.Connect(w.t, w.srv), orchestrator.Config{
		Name: "o", SweepEvery: 200 * time.Millisecond, Store: kv.Config{AckWait: 3 * time.Second},
	})
	require.NoError(w.t, err)
	return w.part(o.Run, o.Ready())
}

// worker hosts "pass", which answers at once, and "gate", which waits.
func (w *ward) worker() (stop func()) {
	w.t.Helper()
	x, err := worker.New(natstest.Connect(w.t, w.srv), worker.Config{Name: "w"})
	require.NoError(w.t, err)
	for name, wait := range map[string]bool{"pass": false, "gate": true} {
		require.NoError(w.t, x.HandleRaw(&tool.Definition{Name: name, Description: "test"}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			if wait {
				select {
				case <-w.gate:
				case <-ctx.Done():
					return worker.Output{}, ctx.Err()
				}
			}
			return worker.Output{Body: args}, nil
		}))
	}
	return w.part(x.Run, x.Ready())
}

func (w *ward) client() *client.Client {
	w.t.Helper()
	c, err := client.New(w.within(), natstest.Connect(w.t, w.srv), client.Config{})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

func (w *ward) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

// doctor runs the command against the ward's server.
func (w *ward) doctor(args ...string) (diagnosis, int) {
	w.t.Helper()
	return w.examined("doctor", args...)
}

// examined returns what a command found in the ward's account.
func (w *ward) examined(verb string, args ...string) (diagnosis, int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	code := Main(w.within(), Env{
		Args: append([]string{verb, "-o", "json", "--server", w.srv.URL()}, args...), Stdin: strings.NewReader(""),
		Stdout: &out, Stderr: &errs, Getenv: nowhere(w.t),
	})
	var d diagnosis
	require.NoError(w.t, json.Unmarshal(out.Bytes(), &d), "%d %s", code, errs.String())
	return d, code
}

// namesOf returns "check about" of problems.
func namesOf(all []doctor.Finding) (list []string) {
	for _, f := range all {
		list = append(list, strings.TrimSpace(f.Check+" "+f.About))
	}
	return list
}

// harm takes from under a run what a person could.
func (w *ward) harm() {
	w.t.Helper()
	ctx := w.within()
	require.NoError(w.t, w.js.DeleteConsumer(ctx, "STEPS_0", "pass"))
	bucket, err := w.js.KeyValue(ctx, "tools")
	require.NoError(w.t, err)
	require.NoError(w.t, bucket.Delete(ctx, "gate"))
	st, err := w.js.Stream(ctx, "STEPS_0")
	require.NoError(w.t, err)
	require.NoError(w.t, st.Purge(ctx))
}

const gatedPlan = `{"steps":[{"id":"a","tool":"gate","arguments":{"n":1}},{"id":"b","tool":"pass","arguments":{"v":"$ref:a"}},{"id":"c","tool":"gate","arguments":{"v":"$ref:b"}}]}`

// leased waits until the gate's step is with a worker.
func (w *ward) leased() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		c, err := w.js.Consumer(w.within(), "STEPS_0", "gate")
		return err == nil && c.CachedInfo().NumAckPending == 1
	}, 2*time.Minute, 10*time.Millisecond)
}

func TestDoctorMendsWhatWasTakenFromUnderARun(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	d, code := w.doctor()
	require.Equal(t, exitFailed, code)
	require.False(t, d.Healthy)
	stop := w.orchestrator()
	stopWorker := w.worker()
	d, code = w.doctor()
	require.Zero(t, code, "%v", namesOf(d.Left))
	require.True(t, d.Healthy)
	documented(t, d.Findings)
	run, err := w.client().Submit(w.within(), []byte(gatedPlan), client.SubmitOptions{Run: "order-42"})
	require.NoError(t, err)
	w.leased()

	stop() // so that nothing is mended by itself
	stopWorkerSoon := make(chan struct{})
	go func() { defer close(stopWorkerSoon); stopWorker() }()
	close(w.gate)
	<-stopWorkerSoon
	w.harm()
	d, code = w.doctor()
	require.Equal(t, exitFailed, code)
	require.Subset(t, namesOf(d.Left), []string{"consumer pass", "orphan-consumer STEPS_0 gate", "orchestrator"})

	d, code = w.doctor("--fix")
	require.Equal(t, exitFailed, code, "nobody can start an orchestrator for it")
	require.Equal(t, []string{"orchestrator"}, namesOf(d.Left))
	w.orchestrator()
	w.worker()
	out, err := run.Wait(w.within())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Eventually(t, func() bool { _, code = w.doctor(); return code == 0 }, 2*time.Minute, 50*time.Millisecond)
}

// documented says that docs/operations.md explains every check.
func documented(t *testing.T, all []doctor.Finding) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for _, f := range all {
		require.Contains(t, string(text), "`"+f.Check+"`")
	}
}

// Without a person: as long as an orchestrator runs.
func TestARunSurvivesWhatIsTakenFromUnderIt(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*ward){
		"consumer, registration and steps": (*ward).harm,
		"the step stream": func(w *ward) {
			require.NoError(w.t, w.js.DeleteStream(w.within(), "STEPS_0"))
		},
		"the registry": func(w *ward) {
			require.NoError(w.t, w.js.DeleteStream(w.within(), "KV_tools"))
			require.NoError(w.t, w.js.DeleteConsumer(w.within(), "STEPS_0", "pass"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			w.orchestrator()
			w.worker()
			c := w.client()
			run, err := c.Submit(w.within(), []byte(gatedPlan), client.SubmitOptions{Run: "order-42"})
			require.NoError(t, err)
			w.leased()
			harm(w)
			close(w.gate)
			out, err := run.Wait(w.within())
			require.NoError(t, err)
			require.Equal(t, outcome.Succeeded, out.Status)
			require.Eventually(t, func() bool {
				d, code := w.doctor()
				return code == 0 && d.Healthy
			}, 2*time.Minute, 50*time.Millisecond)
		})
	}
}

func TestDoctorShowsWhatItFound(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.orchestrator()() // set up, and gone: nothing is mended by itself
	require.NoError(t, w.js.DeleteStream(w.within(), "KV_dead"))
	var out, errs bytes.Buffer
	code := Main(w.within(), Env{
		Args: []string{"doctor", "--server", w.srv.URL()}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: nowhere(t),
	})
	require.Equal(t, exitFailed, code)
	require.Empty(t, errs.String())
	text := out.String()
	for _, part := range []string{"problem", "KV_dead", "expected", "no such stream", "means", "--fix", "stepjet doctor --fix --url " + w.srv.URL()} {
		require.Contains(t, text, part)
	}
}

func TestDoctorReadsTheMonitoring(t *testing.T) {
	t.Parallel()
	for _, always := range []bool{true, false} {
		ns, err := natsserver.NewServer(&natsserver.Options{
			Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: natsserver.RANDOM_PORT,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: always, NoSigs: true, NoLog: true,
		})
		require.NoError(t, err)
		ns.Start()
		t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
		require.True(t, ns.ReadyForConnections(10*time.Second))
		nc, err := nats.Connect(ns.ClientURL())
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		s, err := kv.Setup(context.Background(), nc, kv.Config{StepsAsync: true, Shards: 8})
		require.NoError(t, err)
		s.Close()
		stdout, stderr, code := command(t, "", "doctor", "-o", "json", "--server", ns.ClientURL(), "--durability", "always", "--monitor", "http://"+ns.MonitorAddr().String())
		require.Empty(t, stderr)
		require.Equal(t, exitFailed, code, "there is no orchestrator")
		require.Equal(t, !always, strings.Contains(stdout, `"about":"sync_interval","health":"problem"`), stdout)
		require.Contains(t, stdout, "server flushes: "+map[bool]string{true: "always", false: "interval"}[always])
	}
	_, stderr, code := command(t, "", "doctor", "--server", natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" }).URL(), "--monitor", "http://127.0.0.1:1")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "127.0.0.1:1")
}

func TestDoctorTellsWhatAServerSaysOfItsHealth(t *testing.T) {
	t.Parallel()
	const wrong = "JetStream stream '$G > KV_runs_0' write error: no space left on device"
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintf(w, `{"status":"error","status_code":503,"errors":[{"type":"STREAM","error":%q}]}`, wrong)
			return
		}
		_, _ = fmt.Fprint(w, `{"config":{"sync_always":true}}`)
	}))
	t.Cleanup(monitor.Close)
	url := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" }).URL()
	stdout, _, code := command(t, "", "doctor", "-o", "json", "--server", url, "--monitor", monitor.URL)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, wrong)
	require.Contains(t, stdout, "then restart it")
}

func TestDoctorWithoutAServer(t *testing.T) {
	t.Parallel()
	_, stderr, code := command(t, "", "doctor", "--server", "nats://127.0.0.1:1")
	require.Equal(t, exitNoServer, code)
	require.Contains(t, stderr, "no_connection")
	_, stderr, code = command(t, "", "doctor", "--durability", "replicated", "--replicas", "1")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "contradict")
	_, stderr, code = command(t, "", "dev", "--durability", "replicated")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "cluster")
}

// TestCancelOfARunThatIsLeftAlone: whoever asks is told that nothing was cancelled, and why.
func TestCancelOfARunThatIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.orchestrator()
	m := &nats.Msg{Subject: subjects.Submit("default", "later"), Header: nats.Header{subjects.HeaderVersion: {"9"}}, Data: []byte(`{"steps":[{"id":"e","tool":"pass"}]}`)}
	_, err := w.js.PublishMsg(w.within(), m)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // once the owner has read the plan
		var out, errs bytes.Buffer
		code := Main(w.within(), Env{
			Args: []string{"cancel", "later", "--server", w.srv.URL()}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: nowhere(w.t),
		})
		assert.NotZero(c, code)
		assert.Empty(c, out.String())
		assert.Contains(c, errs.String(), "leaves it alone")
		assert.Contains(c, errs.String(), "upgrade the orchestrators")
	}, 2*time.Minute, 50*time.Millisecond)
}
