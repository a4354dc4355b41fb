package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// nats.go 1.55 leaves a goroutine behind where a store is closed before the goroutine that follows its connection for
// large values has run for the first time: it then waits on a channel that is nil.
const leftByNATS = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(leftByNATS)) }

// patience bounds what a test waits for; it is never reached where all is well.
const patience = 2 * time.Minute

// world is a server that Stepjet was set up on, with a client and without an orchestrator: a test plays its part.
type world struct {
	t      *testing.T
	srv    *embedded.Server
	nc     *nats.Conn // the orchestrator's
	store  *kv.Store
	client *client.Client
}

func newWorld(t *testing.T, opts ...func(*embedded.Options)) *world {
	t.Helper()
	w := &world{t: t, srv: natstest.Start(t, opts...)}
	w.nc = natstest.Connect(t, w.srv)
	var err error
	w.store, err = kv.Setup(w.ctx(), w.nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(w.store.Close)
	w.client = w.newClient(client.Config{})
	return w
}

func (w *world) newClient(c client.Config) *client.Client {
	w.t.Helper()
	cl, err := client.New(w.ctx(), natstest.Connect(w.t, w.srv), c)
	require.NoError(w.t, err)
	w.t.Cleanup(cl.Close)
	return cl
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// record reads the plan record of a run.
func (w *world) record(run string) *kv.Entry {
	w.t.Helper()
	e, err := w.store.Ledger.Read(w.ctx(), subjects.PlanRecord(subjects.NewRun("default", run), 1))
	require.NoError(w.t, err)
	return e
}

// finish writes the history of a run, as its owner does.
func (w *world) finish(run, plan string, results outcome.Results) *outcome.Run {
	w.t.Helper()
	doc := document(run, plan, results)
	created, err := w.store.Archive.CreateHistory(w.ctx(), subjects.NewRun("default", run), "", doc)
	require.NoError(w.t, err)
	require.True(w.t, created)
	return doc
}

// announce tells the client of a run's end, as its owner does.
func (w *world) announce(run string, body []byte) {
	w.t.Helper()
	token := w.record(run).Header.Get(subjects.HeaderClient)
	require.NotEmpty(w.t, token)
	require.NoError(w.t, w.nc.Publish(subjects.Notify(subjects.NewRun("default", run), token), body))
}

func (w *world) event(run, kind, body string) {
	w.t.Helper()
	require.NoError(w.t, w.nc.Publish(subjects.Event(subjects.NewRun("default", run), kind), []byte(body)))
}

func document(run, plan string, results outcome.Results) *outcome.Run {
	sum := sha256.Sum256([]byte(plan))
	now := time.Now().UTC()
	stats := outcome.Stats{Steps: len(results), Succeeded: len(results), ElapsedMS: 1.5}
	doc := &outcome.Run{
		Version: 1, Run: run, Tenant: "default", Generation: 1, Digest: hex.EncodeToString(sum[:]), Status: outcome.Succeeded,
		Submitted: now, Started: now, Finished: now, Stats: stats, Plan: json.RawMessage(plan),
		Outcome: &outcome.Outcome{Run: run, Status: outcome.Succeeded, Results: results, Stats: stats},
	}
	for _, r := range results {
		doc.Steps = append(doc.Steps, outcome.Step{ID: r.Step, Tool: "echo", Status: outcome.StepSucceeded, Attempts: 1, Decided: now})
	}
	return doc
}

const (
	planA = `{"steps":[{"id":"a","tool":"echo","arguments":{"x":1}}]}`
	planB = `{"steps":[{"id":"a","tool":"echo","arguments":{"x":2}}]}`
)

var resultA = outcome.Results{{Step: "a", JSON: json.RawMessage(`{"x":1.0}`)}}

// cancelled is what became of a cancel, where it doesn't matter whose counted.
func cancelled(_ *client.Stopped, err error) error { return err }
