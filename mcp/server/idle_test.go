package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/mcp/server"
)

// A client that wants progress hears that its call goes on though nothing happens.
func TestACallThatGoesOnIsHeardOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { server.Shorten(c, time.Second, 0) })
	for _, version := range versions {
		told := make(chan *mcp.ProgressNotificationParams, 100)
		s := w.connect(version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
		})
		p := &mcp.CallToolParams{Name: "slow"}
		p.SetProgressToken("tok")
		over := make(chan error, 1)
		go func() {
			_, err := s.CallTool(t.Context(), p)
			over <- err
		}()
		before := <-told
		for same := 0; same < 3; {
			select {
			case next := <-told:
				assert.Greater(t, next.Progress, before.Progress)
				if next.Message == before.Message { // nothing has happened
					same++
				}
				before = next
			case err := <-over:
				t.Fatalf("the call is over: %v", err)
			}
		}
		w.release <- struct{}{}
		require.NoError(t, <-over)
	}
}

// older sends a message in the way of 2025-11-25, and returns the session, the status and the answer.
func (w *world) older(t *testing.T, session, body string) (string, int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.Header.Get("Mcp-Session-Id"), res.StatusCode, string(text)
}

// A session that says nothing ends, and its client is told so; one with an open call goes on, however long that takes.
func TestAnIdleSessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { server.Shorten(c, 0, time.Second) })
	open := func() string {
		session, status, text := w.older(t, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
			"capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
		require.Equal(t, http.StatusOK, status, text)
		require.NotEmpty(t, session)
		_, status, text = w.older(t, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		require.Equal(t, http.StatusAccepted, status, text)
		return session
	}
	const list, slow = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}`
	busy := open()
	over := make(chan string, 1)
	go func() {
		_, _, text := w.older(t, busy, slow)
		over <- text
	}()
	require.Eventually(t, func() bool { return w.calls.Load() == 1 }, 20*time.Second, 5*time.Millisecond)
	idle := open()
	_, status, text := w.older(t, idle, list)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "greet")
	require.Equal(t, 2, w.s.Sessions())
	require.Eventually(t, func() bool { return w.s.Sessions() == 1 }, 20*time.Second, 5*time.Millisecond)

	_, status, _ = w.older(t, idle, list)
	assert.Equal(t, http.StatusNotFound, status, "its client begins anew")
	w.release <- struct{}{}
	assert.Contains(t, <-over, "late", "its call was not cut off")
	require.Eventually(t, func() bool { return w.s.Sessions() == 0 }, 20*time.Second, 5*time.Millisecond)
	_, status, _ = w.older(t, busy, list)
	assert.Equal(t, http.StatusNotFound, status)
}
