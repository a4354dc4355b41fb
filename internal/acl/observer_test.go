package acl_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// shows has the page show the run "all" of acme, as the observer, and do nothing.
func (s *system) shows() {
	t := s.t
	t.Helper()
	page, err := ui.New(s.ctx(), ui.Config{Conn: s.connect("observer"), Logger: s.log("observer")})
	require.NoError(t, err)
	t.Cleanup(page.Close)
	front := httptest.NewServer(page.Handler())
	t.Cleanup(front.Close)
	ask := func(method, path string) (status int, body []byte) {
		r, err := http.NewRequestWithContext(s.ctx(), method, front.URL+"/api/v1/"+path, nil)
		require.NoError(t, err)
		answer, err := front.Client().Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		body, err = io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, body
	}
	require.Eventually(t, func() bool {
		_, body := ask(http.MethodGet, "runs")
		return strings.Contains(string(body), `"acme.all"`) && !strings.Contains(string(body), `"reading"`)
	}, 2*time.Minute, 20*time.Millisecond)
	for _, path := range []string{"runs/acme.all", "runs/acme.all/steps/big", "tools?tenant=acme", "figures?tenant=acme", "dead", "workers"} {
		status, body := ask(http.MethodGet, path)
		require.Equal(t, http.StatusOK, status, "%s: %.500s", path, body)
		require.NotContains(t, string(body), `"unknown":{`, path)
	}
	agent := s.client("agent-acme", "acme")
	_, err = agent.Submit(s.ctx(), []byte(`{"steps":[{"id":"asked","tool":"ask","arguments":{"question":"Go on?"}}]}`),
		client.SubmitOptions{Run: "observed"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		status, body := ask(http.MethodGet, "runs/acme.observed")
		return status == http.StatusOK && strings.Contains(string(body), `"asking"`)
	}, 2*time.Minute, 20*time.Millisecond)
	// The list is the page's own, drawn from what it watches; the question itself is read from the run's record.
	for _, path := range []string{"questions", "runs/acme.observed/questions/asked"} {
		require.Eventually(t, func() bool {
			status, body := ask(http.MethodGet, path)
			return status == http.StatusOK && strings.Contains(string(body), "Go on?")
		}, 2*time.Minute, 20*time.Millisecond, path)
	}
	counted, err := front.Client().Post(front.URL+"/api/v1/heads", "application/json", strings.NewReader(`{"keys":["acme.observed"]}`))
	require.NoError(t, err)
	var heads struct{ Heads map[string]outcome.Head }
	require.NoError(t, json.NewDecoder(counted.Body).Decode(&heads))
	require.NoError(t, counted.Body.Close())
	require.Equal(t, 1, heads.Heads["acme.observed"].Stats.Steps)
	if _, err := agent.Cancel(s.ctx(), "observed", "ann"); fault.CodeOf(err) != fault.AlreadyFinished { // asked again, it had taken effect before
		require.NoError(t, err)
	}
	r, err := http.NewRequestWithContext(s.ctx(), http.MethodGet, front.URL+"/api/v1/stream?run=acme.all", nil)
	require.NoError(t, err)
	stream, err := front.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()
	var kinds []string
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
	}
	require.Equal(t, "end", kinds[len(kinds)-1])
}

// Who only looks can do nothing: neither by the page nor past it.
func TestTheObserverChangesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, shape{shards: 1})
	s.staff()
	nc := s.trespass("observer")
	page, err := ui.New(s.ctx(), ui.Config{Conn: nc})
	require.NoError(t, err)
	t.Cleanup(page.Close)
	front := httptest.NewServer(page.Handler())
	t.Cleanup(front.Close)
	for _, path := range []string{"runs?tenant=acme&run=x", "runs/acme.x/cancel"} {
		r, err := http.NewRequestWithContext(s.ctx(), http.MethodPost, front.URL+"/api/v1/"+path, strings.NewReader(`{"steps":[{"id":"a","tool":"search"}]}`))
		require.NoError(t, err)
		answer, err := front.Client().Do(r)
		require.NoError(t, err)
		var said fault.Error
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&said))
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusForbidden, answer.StatusCode, path)
		require.Equal(t, fault.Permission, said.Code, "%s: %v", path, &said)
	}
	grant, err := acl.New(acl.Spec{Role: acl.Observer})
	require.NoError(t, err)
	for _, subject := range []string{
		subjects.Submit("acme", "r"), "api.1.cancel.acme.r", "api.1.answer.acme.r", "api.1.approve.acme.r", "$KV.history.acme.r",
		"$KV.dead.acme.r.1.a", "$KV.runs_0.1.acme.r.1.stop", subjects.StreamRequest("PURGE", subjects.LedgerStream(0)),
		subjects.StreamRequest("DELETE", subjects.LedgerStream(0)), subjects.StreamRequest("UPDATE", subjects.LedgerStream(0)),
		subjects.Register("search"), subjects.Override("search"),
	} {
		require.False(t, slices.ContainsFunc(grant.Publishes(), func(allowed string) bool { return covers(allowed, subject) }), subject)
	}
	_, err = kv.Setup(s.ctx(), nc, kv.Config{Shards: 1})
	require.Error(t, err, "it makes no streams")
}
