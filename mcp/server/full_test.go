package server_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/worker"
)

// stores are NATS servers with room for some MiB, by what bounds them.
var stores = map[string]func(*embedded.Options){
	"max_file_store": func(o *embedded.Options) { o.MaxStore = 16 << 20 },
	"an account's limit": func(o *embedded.Options) {
		o.ConfigFile = filepath.Join(o.Dir, "nats.conf")
		conf := `accounts { small { users: [{user: u, password: p}], jetstream { max_file: 16M, max_memory: 16M } } }
no_auth_user: u`
		if err := os.WriteFile(o.ConfigFile, []byte(conf), 0o600); err != nil {
			panic(err)
		}
	},
}

// background runs a part until the test ends, and returns when it is ready.
func background(t *testing.T, run func(context.Context) error, ready <-chan struct{}) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- run(ctx) }()
	t.Cleanup(func() {
		end()
		assert.NoError(t, <-over)
	})
	select {
	case <-ready:
	case err := <-over:
		over <- nil
		require.NoError(t, err)
	}
}

// small is a server of MCP in front of a Stepjet whose NATS server has little room.
func small(t *testing.T, bound func(*embedded.Options)) (*world, *nats.Conn) {
	t.Helper()
	w := &world{t: t, release: make(chan struct{})}
	nc := natstest.Connect(t, natstest.Start(t, bound))
	o, err := orchestrator.New(nc, orchestrator.Config{})
	require.NoError(t, err)
	background(t, o.Run, o.Ready())
	k, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	w.host(k)
	background(t, k.Run, k.Ready())
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
	for _, size := range []int{512 << 10, 32 << 10, 1 << 10, 1} { // an account's limit lets smaller ones in
		for full := false; !full; {
			_, err = js.Publish(t.Context(), "other", make([]byte, size))
			full = err != nil
		}
	}
	var api *jetstream.APIError
	require.ErrorAs(t, err, &api)
	return func() { require.NoError(t, js.DeleteStream(t.Context(), "OTHER")) }
}

// Where JetStream has reached its limit, a plan is refused with the code, the stream and what to do; what is under way
// waits and loses nothing; and what was refused runs once, under its name, as soon as there is room again.
func TestAFullStore(t *testing.T) {
	t.Parallel()
	for name, bound := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, nc := small(t, bound)
			for _, version := range versions {
				w.full(t, nc, version)
			}
		})
	}
}

func (w *world) full(t *testing.T, nc *nats.Conn, version string) {
	t.Helper()
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
