package server_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/worker"
)

func TestMethodsThatAreNotOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, method := range []string{"prompts/list", "prompts/get", "completion/complete", "logging/setLevel"} {
		a := w.send(t, request{method: method})
		assert.Equal(t, http.StatusNotFound, a.Status, method)
		require.NotNil(t, a.Error, a.Body)
		assert.Equal(t, int64(jsonrpc.CodeMethodNotFound), a.Error.Code, method)
	}
	s := w.connect("2025-11-25", nil)
	_, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "x"})
	assert.Equal(t, int64(jsonrpc.CodeMethodNotFound), codeOf(t, err))
}

// A plan that is too large is a result with the code, as all that a model can mend; what is over the bounds of HTTP never
// gets so far.
func TestAPlanThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	large := plan(t, `{"steps": [{"id": "a", "tool": "greet", "arguments": {"name": "`+strings.Repeat("x", 3<<20)+`"}}]}`)
	for _, version := range versions {
		res := call(t, w.connect(version, nil), "execute_tool_plan", large)
		assert.True(t, res.IsError)
		assert.Contains(t, textOf(t, res)[:200], string(fault.TooLarge), version)
	}
}

// What its caller can do nothing about is an error of JSON-RPC, with the fault in its data.
func TestWhatIsNoCallersFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, code := range []fault.Code{fault.NoConnection, fault.StoreFull, fault.NotReady} {
		away := w.beside(t, func(c *server.Config) {
			c.Client = func(context.Context, string) (*client.Client, error) { return nil, fault.New(code, "on purpose") }
		})
		a := away.send(t, tools("greet", named{"Ada"}))
		assert.Equal(t, http.StatusServiceUnavailable, a.Status, code)
		require.NotNil(t, a.Error, a.Body)
		assert.Equal(t, int64(jsonrpc.CodeInternalError), a.Error.Code, code)
		assert.Contains(t, string(a.Error.Data), `"`+string(code)+`"`)
	}
	nc, err := w.stack.Conn().Opts.Connect()
	require.NoError(t, err)
	lost := w.beside(t, func(c *server.Config) {
		c.Client = func(ctx context.Context, tenant string) (*client.Client, error) {
			cl, err := client.New(ctx, nc, client.Config{Tenant: tenant})
			if err == nil {
				t.Cleanup(cl.Close)
			}
			return cl, err
		}
	})
	assert.Nil(t, lost.send(t, tools("greet", named{"Ada"})).Error)
	nc.Close()
	a := lost.send(t, tools("greet", named{"Ada"}))
	require.NotNil(t, a.Error, a.Body)
	assert.Equal(t, int64(jsonrpc.CodeInternalError), a.Error.Code)
	assert.Contains(t, string(a.Error.Data), `"`+string(fault.NoConnection)+`"`)
}

// Only execute_tool_plan says what its results look like: no preview conforms to the schema of a single tool. What is no
// object is structured content for clients of 2026-07-28 alone.
func TestSingleToolsPromiseNoSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "list", func(context.Context, struct{}) ([]int, error) { return []int{1, 2}, nil })
	})
	for _, version := range versions {
		s := w.connect(version, nil)
		w.listed(t, s, "list")
		list, err := s.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, one := range list.Tools {
			assert.Equal(t, strings.Contains(one.Name, "_plan") || one.Name == "search_tools", one.OutputSchema != nil, one.Name)
		}
		res := call(t, s, "list", nil)
		assert.Equal(t, "[1,2]", textOf(t, res))
		if version == "2026-07-28" {
			assert.Equal(t, []any{1.0, 2.0}, res.StructuredContent)
		} else {
			assert.Nil(t, res.StructuredContent)
		}
	}
}

// Nothing between server and client keeps a stream back, whatever the client's version.
func TestStreamsAreNotKeptBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	assert.Equal(t, "no", w.send(t, tools("greet", named{"Ada"})).Header.Get("X-Accel-Buffering"))
	older := request{method: "ping", header: []string{"Mcp-Protocol-Version", "2025-11-25"}}
	assert.Equal(t, "no", w.send(t, older).Header.Get("X-Accel-Buffering"))
}

// A result is read by the checks of its run: another tenant's is not there, and a token without plans:read reads nothing.
func TestResultsAreReadByThoseWhoMay(t *testing.T) {
	t.Parallel()
	w := guarded(t, newIssuer(t), answeredAtOnce)
	r := tools("execute_tool_plan", plan(t, `{"run": "mine", "steps": [{"id": "a", "tool": "greet", "arguments": {"name": "Ada"}}]}`))
	r.tasks = false
	run := field[struct{ Run string }](t, w.send(t, bearer("t-ci", r)), "structuredContent").Run
	require.NotEmpty(t, run)
	read := request{method: "resources/read", name: "stepjet://runs/" + run + "/steps/a", params: map[string]any{"uri": "stepjet://runs/" + run + "/steps/a"}}
	a := w.send(t, bearer("t-ci", read))
	assert.Contains(t, a.Body, "hello Ada")
	a = w.send(t, bearer("t-other", read))
	require.NotNil(t, a.Error, a.Body)
	assert.Equal(t, int64(jsonrpc.CodeInvalidParams), a.Error.Code)
	assert.NotContains(t, a.Body, "hello")
}

// The trace that a call belongs to goes on in its run: that of "_meta", else of the request.
func TestATraceGoesAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.stack.Host(func(k *worker.Worker) {
		worker.Handle(k, "traced", func(ctx context.Context, _ struct{}) (string, error) {
			info, _ := worker.InfoFrom(ctx)
			return info.Trace.Parent, nil
		})
	})
	w.listed(t, w.connect(versions[0], nil), "traced")
	const one, other = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
	parent := func(trace string) string { return "00-" + trace + "-b7ad6b7169203331-01" }
	r := tools("traced", struct{}{})
	r.header = []string{"traceparent", parent(one)}
	assert.Contains(t, w.send(t, r).Body, one)
	r.params["_meta"] = map[string]any{"traceparent": parent(other)}
	assert.Contains(t, w.send(t, r).Body, other)
}

// A stream of a client with a session may break without a word: the client can come back, so nothing is cancelled.
func TestALostStreamOfAnOlderClientCancelsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	session := ""
	send := func(ctx context.Context, method, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		return http.DefaultClient.Do(req)
	}
	told := func(body string) {
		res, err := send(t.Context(), http.MethodPost, body)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Less(t, res.StatusCode, 300)
		session = cmp.Or(res.Header.Get("Mcp-Session-Id"), session)
	}
	told(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	require.NotEmpty(t, session)
	told(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ctx, drop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if res, err := send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}`); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	require.Eventually(t, func() bool { return w.calls.Load() == 1 }, 20*time.Second, 5*time.Millisecond)
	drop()
	<-over
	for range 20 { // in which the server would have cancelled it
		told(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}`)
	}
	select {
	case w.release <- struct{}{}:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody is at the call any more")
	}
	assert.Zero(t, w.stopped.Load())
	res, err := send(t.Context(), http.MethodDelete, "")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
}
