package server_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/worker"
)

// small is a server of MCP in front of a Stepjet whose NATS server keeps no more than 16 MiB.
func small(t *testing.T) (*world, *nats.Conn) {
	t.Helper()
	w := &world{t: t, release: make(chan struct{})}
	stack, err := dev.Start(t.Context(), dev.Options{MaxStore: 16 << 20, More: func(k *worker.Worker) error { w.host(k); return nil }})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	nc, err := stack.Connect(t.Context(), "test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	cl, err := client.New(t.Context(), nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	w.s, err = server.New(func() (c server.Config) {
		c.Client = func(context.Context, string) (*client.Client, error) { return cl, nil }
		c.Hold = time.Minute
		server.Hurry(&c, time.Second)
		return c
	}())
	require.NoError(t, err)
	t.Cleanup(w.s.Close)
	h, err := w.s.Handler()
	require.NoError(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	w.url = web.URL + server.Path
	return w, nc
}

// fill takes what room there is left in JetStream, and returns what makes room again.
func fill(t *testing.T, nc *nats.Conn) (room func()) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}})
	require.NoError(t, err)
	for full := false; !full; {
		_, err = js.Publish(t.Context(), "other", make([]byte, 512<<10))
		full = err != nil
	}
	var api *jetstream.APIError
	require.ErrorAs(t, err, &api)
	return func() { require.NoError(t, js.DeleteStream(t.Context(), "OTHER")) }
}

// Where JetStream has reached its limit, a plan is refused with the code, the stream and what to do; what is under way
// waits and loses nothing; and what was refused runs once, under its name, as soon as there is room again.
func TestAFullStore(t *testing.T) {
	t.Parallel()
	w, nc := small(t)
	for _, version := range versions {
		s := w.connect(version, nil)
		before := w.calls.Load()
		open := make(chan *mcp.CallToolResult, 1)
		go func() {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_tool_plan", Arguments: plan(t, `{"steps": [
				{"id": "a", "tool": "slow"}, {"id": "b", "tool": "greet", "arguments": {"name": "$ref:a"}}], "output_steps": ["b"]}`)})
			assert.NoError(t, err)
			open <- res
		}()
		require.Eventually(t, func() bool { return w.calls.Load() == before+1 }, time.Minute, 5*time.Millisecond)
		done := call(t, s, "execute_tool_plan", plan(t, `{"run": "before `+version+`", "steps": [{"id": "a", "tool": "number"}]}`))

		room := fill(t, nc)
		w.release <- struct{}{} // its result finds no room
		again := &mcp.CallToolParams{
			Name: "execute_tool_plan", Meta: mcp.Meta{content.KeyMeta: "order " + version},
			Arguments: plan(t, `{"steps": [{"id": "a", "tool": "greet", "arguments": {"name": "Ada"}}]}`),
		}
		unnamed := &mcp.CallToolParams{Name: "execute_tool_plan", Arguments: again.Arguments}
		for _, p := range []*mcp.CallToolParams{again, unnamed} {
			_, err := s.CallTool(t.Context(), p)
			var rpc *jsonrpc.Error
			require.ErrorAs(t, err, &rpc)
			assert.EqualValues(t, jsonrpc.CodeInternalError, rpc.Code)
			var f fault.Error
			require.NoError(t, json.Unmarshal(rpc.Data, &f), string(rpc.Data))
			assert.Equal(t, fault.StoreFull, f.Code, "%s: %s", version, rpc.Data)
			assert.Regexp(t, `no room left in the stream KV_runs_\d`, f.Message)
			assert.Contains(t, f.Hint, "raise the limit")
			assert.Equal(t, f.Message, rpc.Message)
		}
		got := call(t, s, "get_plan_result", map[string]any{"run": "before " + version})
		assert.JSONEq(t, textOf(t, done), textOf(t, got), "what is there is read")
		assert.Empty(t, open, "it waits")

		room()
		assert.Contains(t, textOf(t, <-open), `"text":"hello late"`, version)
		res, err := s.CallTool(t.Context(), again)
		require.NoError(t, err)
		assert.Contains(t, textOf(t, res), `"text":"hello Ada"`, version)
		assert.Equal(t, before+1, w.calls.Load(), "it ran once")
	}
}
