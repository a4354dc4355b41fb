package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// retried keeps the history of a run that was submitted as a retry.
func (w *world) retried(run string, status outcome.RunStatus) {
	w.t.Helper()
	e := w.record(run)
	doc := chainDocument()
	doc.Run, doc.Status, doc.Outcome.Status = run, status, status
	doc.RetryOf, doc.RetryFrom = e.Header.Get(subjects.HeaderRetryOf), e.Header.Get(subjects.HeaderRetryFrom)
	w.keep(doc)
}

func TestRetrySubmitsTheSamePlanAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.keep(chainDocument())
	all, err := wire.NewContext(map[string]string{"user": "ada"})
	require.NoError(t, err)
	r, err := w.client.Retry(w.ctx(), "r", client.RetryOptions{Context: wire.RunContext{All: all}})
	require.NoError(t, err)
	require.Equal(t, "r.2", r.ID())
	require.False(t, r.Attached())
	e := w.record("r.2")
	require.Equal(t, chain, string(e.Data), "byte for byte")
	require.Equal(t, "r", e.Header.Get(subjects.HeaderRetryOf))
	require.Empty(t, e.Header.Get(subjects.HeaderRetryFrom))
	require.Equal(t, `{"user":"ada"}`, e.Header.Get(subjects.HeaderContext))

	// While it runs, after it failed, and once its record is purged: asking twice gives one run.
	for _, then := range []func(){
		func() { w.retried("r.2", outcome.Partial) },
		func() {
			require.NoError(t, w.store.Ledger.PurgeSubject(w.ctx(), subjects.PlanRecord(subjects.NewRun("default", "r.2"), 1)))
		},
		func() {},
	} {
		again, err := w.newClient(client.Config{}).Retry(w.ctx(), "r", client.RetryOptions{})
		require.NoError(t, err)
		require.Equal(t, "r.2", again.ID())
		require.True(t, again.Attached())
		_, err = w.client.Retry(w.ctx(), "r", client.RetryOptions{Run: "r.2", From: "a"})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, `to retry what failed of "r"`)
		then()
	}
	// A retry from a step is another run than one without, and has another id.
	from, err := w.client.Retry(w.ctx(), "r", client.RetryOptions{From: "a"})
	require.NoError(t, err)
	require.Equal(t, "r.2.from-a", from.ID())
	require.False(t, from.Attached())
	// The retry of a retry.
	r, err = w.client.Retry(w.ctx(), "r.2", client.RetryOptions{From: "b"})
	require.NoError(t, err)
	require.Equal(t, "r.3.from-b", r.ID())
	e = w.record("r.3.from-b")
	require.Equal(t, "r.2", e.Header.Get(subjects.HeaderRetryOf))
	require.Equal(t, "b", e.Header.Get(subjects.HeaderRetryFrom))
}

func TestRetryIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ run, of, want string }{
		{"r", "", "r.2"}, {"r.2", "r", "r.3"}, {"r.9", "r.8", "r.10"}, {"v1.2", "", "v1.2.2"}, {"v1.2.2", "v1.2", "v1.2.3"},
		{"mine", "r", "mine.2"}, {"r.02", "r", "r.02.2"}, {"r.1", "r", "r.1.2"}, {"r.", "r", "r..2"},
	} {
		w := newWorld(t)
		doc := chainDocument()
		doc.Run, doc.RetryOf = tt.run, tt.of
		w.keep(doc)
		r, err := w.client.Retry(w.ctx(), tt.run, client.RetryOptions{})
		require.NoError(t, err)
		require.Equal(t, tt.want, r.ID(), tt.run)
	}
}

func TestRetryRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("done", planA, resultA)
	w.submit("active")
	rejected := document("rejected", planA, nil)
	rejected.Status, rejected.Outcome.Status = outcome.Rejected, outcome.Rejected
	w.keep(rejected)
	long := chainDocument()
	long.Run = strings.Repeat("x", 128)
	w.keep(long)
	w.keep(chainDocument())
	w.submit("r.2")
	_, err := w.client.Submit(w.ctx(), []byte(chain), client.SubmitOptions{Run: "mine"})
	require.NoError(t, err)

	for _, tt := range []struct {
		run  string
		o    client.RetryOptions
		code fault.Code
		says string
	}{
		{"nobody", client.RetryOptions{}, fault.NotFound, "nobody"},
		{"", client.RetryOptions{}, fault.InvalidID, ""},
		{"two\nlines", client.RetryOptions{}, fault.InvalidID, "header"},
		{"active", client.RetryOptions{}, fault.NotReady, "not over"},
		{"rejected", client.RetryOptions{}, fault.AlreadyFinished, "rejected"},
		{"done", client.RetryOptions{}, fault.AlreadyFinished, "--from"},
		{"done", client.RetryOptions{From: "b"}, fault.NotFound, `no step "b"`},
		{"r", client.RetryOptions{}, fault.Conflict, "different plan"},
		{"r", client.RetryOptions{Run: "mine"}, fault.Conflict, "no retry"},
		{long.Run, client.RetryOptions{}, fault.InvalidID, "at most 128"},
	} {
		_, err := w.client.Retry(w.ctx(), tt.run, tt.o)
		require.Equal(t, tt.code, fault.CodeOf(err), "%s: %v", tt.run, err)
		require.ErrorContains(t, err, tt.says)
	}
	r, err := w.client.Retry(w.ctx(), "done", client.RetryOptions{From: "a", Run: "again"})
	require.NoError(t, err)
	require.Equal(t, "again", r.ID())
	r, err = w.client.Retry(w.ctx(), long.Run, client.RetryOptions{Run: "short"})
	require.NoError(t, err)
	require.Equal(t, "short", r.ID())
}

// TestRetryOfFailedEntries: a run that succeeded has something to try again where items of it failed.
func TestRetryOfFailedEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for run, list := range map[string]string{"listed": strings.Repeat("ab", 32), "before": ""} {
		doc := document(run, planA, resultA)
		doc.Steps[0].List = list
		doc.Steps[0].Items = []outcome.Step{{ID: "a=0", Tool: "echo", Status: outcome.StepSucceeded}, {ID: "a=1", Tool: "echo", Status: outcome.StepFailed}}
		w.keep(doc)
	}
	r, err := w.client.Retry(w.ctx(), "listed", client.RetryOptions{})
	require.NoError(t, err)
	require.Equal(t, "listed.2", r.ID())
	_, err = w.client.Retry(w.ctx(), "before", client.RetryOptions{})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "its document doesn't say of what list they are: %v", err)
}
