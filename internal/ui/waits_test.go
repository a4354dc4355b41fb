package ui_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/kv"
)

// TestARunThatWaitsTooLongNeedsAttention: one of which no worker takes a step, not one that a worker has been at for as
// long; those who may not see its tenant are not told.
func TestARunThatWaitsTooLongNeedsAttention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) { c.WaitsTooLong = 300 * time.Millisecond })
	store, err := kv.Open(w.ctx(), w.connect())
	require.NoError(t, err)
	defer store.Close()
	_, err = store.Requests.RequestRegister(w.ctx(), []byte(`{"name":"nobody","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	_, err = w.client("acme").Submit(w.ctx(), []byte(`{"steps":[{"id":"lost","tool":"nobody"}]}`), client.SubmitOptions{Run: "waits"})
	require.NoError(t, err)
	_, err = w.client("acme").Submit(w.ctx(), []byte(`{"steps":[{"id":"at","tool":"sleep","arguments":{"ms":60000}}]}`), client.SubmitOptions{Run: "executes"})
	require.NoError(t, err)
	type line struct {
		Run       string
		Attention bool
		Waits     *struct {
			Step, Tool string
			Since      time.Time
		}
	}
	type list struct {
		Runs      []line
		Attention int
	}
	var l list
	require.Eventually(t, func() bool {
		l = get[list](w, "runs")
		return len(l.Runs) == 2 && l.Attention == 1
	}, patience, 50*time.Millisecond)
	require.Equal(t, "waits", l.Runs[0].Run, "it comes first, though it was submitted first")
	require.True(t, l.Runs[0].Attention)
	require.Equal(t, "lost", l.Runs[0].Waits.Step)
	require.Equal(t, "nobody", l.Runs[0].Waits.Tool)
	require.WithinRange(t, l.Runs[0].Waits.Since, time.Now().Add(-patience), time.Now())
	require.Nil(t, l.Runs[1].Waits, "a worker has it")
	require.NoError(t, cancelled(w.client("acme").Cancel(w.ctx(), "waits", "test")))
	require.NoError(t, cancelled(w.client("acme").Cancel(w.ctx(), "executes", "test")))
	require.Eventually(t, func() bool { return get[list](w, "runs").Attention == 0 }, patience, 50*time.Millisecond)

	const hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of "secret"
	auth, err := ui.ParseTokens([]byte(`{"tokens":[{"sha256":"` + hash + `","name":"ann","role":"viewer","tenants":["globex"]}]}`))
	require.NoError(t, err)
	w.serve(func(c *ui.Config) { c.Auth = auth })
	w.token = "secret"
	require.Equal(t, http.StatusOK, w.request(http.MethodGet, "/api/v1/runs", nil).StatusCode)
	require.Empty(t, get[list](w, "runs").Runs)
}
