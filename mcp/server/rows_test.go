package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

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
	require.Error(t, s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}))
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
	w := guarded(t, newIssuer(t))
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
