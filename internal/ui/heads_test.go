package ui_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Runs that go on are counted by who owns them, for those who may see them; many who look are one request.
func TestRunsThatGoOnAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) {
		c.Auth = tokens(t,
			map[string]any{"sha256": hashed("ann"), "name": "ann", "role": "viewer", "tenants": []string{"acme"}},
			map[string]any{"sha256": hashed("bob"), "name": "bob", "role": "viewer", "tenants": []string{"beta"}})
	})
	_, err := w.client("acme").Submit(w.ctx(), []byte(`{"steps":[
		{"id":"a","tool":"echo","arguments":{}},
		{"id":"no","tool":"fail","arguments":{"message":"no","terminal":true}},
		{"id":"long","tool":"sleep","arguments":{"ms":3600000},"depends_on":["a"]},
		{"id":"last","tool":"echo","arguments":{"x":"$ref:long"}}]}`), client.SubmitOptions{Run: "on"})
	require.NoError(t, err)
	over := w.run("acme", "over", `{"steps":[{"id":"a","tool":"echo","arguments":{}}]}`)
	type answer struct{ Heads map[string]outcome.Head }
	asked := w.connect()
	requests, err := asked.SubscribeSync(subjects.API(subjects.NewRun("acme", "on"), subjects.VerbHead))
	require.NoError(t, err)
	require.NoError(t, asked.Flush())
	w.token = "ann"
	body := `{"keys":["acme.on","` + over + `","acme.nobody"]}`
	var h outcome.Head
	require.Eventually(t, func() bool {
		a := post[answer](w, "heads", body)
		require.NotContains(t, a.Heads, over)
		require.NotContains(t, a.Heads, "acme.nobody")
		h = a.Heads["acme.on"]
		return h.Stats.Succeeded == 1 && h.Stats.Failed == 1 && h.Doing == "long"
	}, patience, 10*time.Millisecond)
	require.Equal(t, outcome.Running, h.Status)
	require.Equal(t, 4, h.Stats.Steps)
	require.Equal(t, "no", h.Failed)
	require.Equal(t, []string{"echo", "fail", "sleep"}, h.Tools)
	require.False(t, h.Started.IsZero())
	require.WithinDuration(t, time.Now(), h.Since, patience)
	require.False(t, h.Since.Before(h.Submitted))
	began := time.Now()
	n, _, err := requests.Pending()
	require.NoError(t, err)
	for range 20 {
		post[answer](w, "heads", `{"keys":["acme.on"]}`)
	}
	require.NoError(t, asked.Flush())
	now, _, err := requests.Pending()
	require.NoError(t, err)
	require.LessOrEqual(t, now-n, 1+int(time.Since(began)/time.Second), "one request a second, however many look")
	many, err := json.Marshal(map[string]any{"keys": strings.Split(strings.Repeat("acme.x ", 101), " ")})
	require.NoError(t, err)
	refused(w, w.request(http.MethodPost, "/api/v1/heads", many), http.StatusBadRequest)
	refused(w, w.request(http.MethodPost, "/api/v1/heads", []byte(`{"keys":["x"]}`)), http.StatusBadRequest)
	w.token = "bob"
	refused(w, w.request(http.MethodPost, "/api/v1/heads", []byte(body)), http.StatusNotFound)
	require.NoError(t, cancelled(w.client("acme").Cancel(w.ctx(), "on", "ann")))
}
