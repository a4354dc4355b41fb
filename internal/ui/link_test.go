package ui_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/ui"
)

// Where the page's server has lost its connection, those who look are told at once, and whoever asks for what it alone
// could answer is refused at once, also who asked a moment before; once it stands again all are told to read anew.
func TestWhoLooksIsToldThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	dir, listen := t.TempDir(), "127.0.0.1:0"
	up := func() {
		require.Eventually(t, func() (ok bool) { // the port may not be free at once
			var err error
			w.stack, err = dev.Start(w.ctx(), dev.Options{Dir: dir, Listen: listen, Tools: "../../examples/tools.json"})
			return err == nil
		}, patience, 50*time.Millisecond)
		t.Cleanup(w.stack.Stop)
	}
	up()
	listen = strings.TrimPrefix(w.stack.URL(), "nats://")
	nc, err := nats.Connect(w.stack.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w.serve(func(c *ui.Config) { c.Conn = nc })
	_, err = w.client("default").Submit(w.ctx(), []byte(slow), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	list, run := w.stream(""), w.stream("?run=default.r")
	until(t, run, "steps")
	w.settledRunning(1)

	away := func(e event) (at time.Time) {
		var said struct{ Away time.Time }
		require.NoError(t, json.Unmarshal([]byte(e.data), &said))
		return said.Away
	}
	w.stack.Stop()
	for _, s := range []*event{last(until(t, list, "lost")), last(until(t, run, "lost"))} {
		require.WithinDuration(t, time.Now(), away(*s), patience)
	}
	late := w.stream("?run=default.r") // who comes now is told as well
	require.False(t, away(*last(until(t, late, "reset"))).IsZero())
	for _, path := range []string{
		"GET runs/default.r", "GET runs/default.r/plan", "GET runs/default.r/steps/hold", "GET questions",
		"GET runs/default.r/questions/hold", "GET tools", "GET dead", "GET workers", "GET doctor", "POST validate", "POST heads",
		"POST runs", "POST runs/default.r/cancel", "POST runs/default.r/retry", "POST runs/default.r/answer",
		"POST runs/default.r/approve", "POST tools/echo/override", "POST dead/retry",
	} {
		method, path, _ := strings.Cut(path, " ")
		asked := time.Now()
		e := refused(w, w.request(method, "/api/v1/"+path, []byte(`{}`)), http.StatusServiceUnavailable)
		require.Equal(t, fault.NoConnection, e.Code, path)
		require.NotEmpty(t, e.Hint, path)
		require.Less(t, time.Since(asked), 10*time.Second, path) // a request of NATS has 15 s
	}
	up()
	for _, s := range []*event{last(until(t, list, "reset")), last(until(t, run, "reset")), last(until(t, late, "reset"))} {
		require.Zero(t, away(*s))
	}
	require.Equal(t, "running", get[sheet](w, "runs/default.r").Status)
	w.answer("default", "r")
	until(t, run, "end")
	until(t, late, "end")
}

func last(all []event) *event { return &all[len(all)-1] }

// settledRunning waits until the list shows so many runs that go on.
func (w *world) settledRunning(n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return get[list](w, "runs").Counts["running"] == n }, patience, 10*time.Millisecond)
}
