package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/content"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Stepjet with a server of MCP in front of it, reached over HTTP.
type world struct {
	t     testing.TB
	stack *stepjettest.Stack
	s     *server.Server
	url   string

	release chan struct{} // lets calls of "slow" return
	calls   atomic.Int32  // of "slow"
	stopped atomic.Int32  // calls of "slow" whose run was stopped
}

// newWorld starts one; change says what is other than by default.
func newWorld(t testing.TB, change func(*server.Config)) *world {
	t.Helper()
	w := &world{t: t, stack: stepjettest.New(t), release: make(chan struct{})}
	w.stack.Host(w.host)
	w.serve(change)
	return w
}

// beside starts a second server in front of the same Stepjet.
func (w *world) beside(t testing.TB, change func(*server.Config)) *world {
	t.Helper()
	other := &world{t: t, stack: w.stack, release: w.release}
	other.serve(change)
	return other
}

// serve starts the server.
func (w *world) serve(change func(*server.Config)) {
	t := w.t
	t.Helper()
	all, err := selector.Parse("*")
	require.NoError(t, err)
	cfg := server.Config{
		Client: func(context.Context, string) (*client.Client, error) { return w.stack.Client(), nil }, Expose: &all,
	}
	if change != nil {
		change(&cfg)
	}
	w.s, err = server.New(cfg)
	require.NoError(t, err)
	t.Cleanup(w.s.Close)
	h, err := w.s.Handler()
	require.NoError(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	w.url = web.URL + server.Path
}

type named struct {
	Name string `json:"name"`
}

// host registers the tools of the tests.
func (w *world) host(k *worker.Worker) {
	worker.Handle(k, "greet", func(_ context.Context, in named) (map[string]string, error) {
		return map[string]string{"text": "hello " + in.Name}, nil
	}, worker.Description("Greets somebody by name."))
	worker.Handle(k, "fail", func(context.Context, struct{}) (string, error) {
		return "", worker.Terminal(errors.New("the till is empty"))
	})
	worker.Handle(k, "many", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat("é", in.N), nil
	})
	worker.Handle(k, "number", func(context.Context, struct{}) (json.RawMessage, error) {
		return json.RawMessage(`{"n":12345678901234567890.10}`), nil
	})
	worker.Handle(k, "counting", func(ctx context.Context, _ struct{}) (string, error) {
		worker.Report(ctx, worker.Progress{Done: 1, Total: 4, Message: "page one"})
		worker.Report(ctx, worker.Progress{Done: 1.5, Total: 4})
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for { // what is said may be lost, so it is said again
			worker.Report(ctx, worker.Progress{Done: 2, Total: 4, Message: "page two"})
			select {
			case <-w.release:
				return "read", nil
			case <-ctx.Done():
				return "", ctx.Err()
			case <-again.C:
			}
		}
	})
	worker.Handle(k, "slow", func(ctx context.Context, _ struct{}) (string, error) {
		w.calls.Add(1)
		select {
		case <-w.release:
			return "late", nil
		case <-ctx.Done():
			w.stopped.Add(1)
			return "", ctx.Err()
		}
	})
}

// versions are the ways in which clients speak to the server.
var versions = []string{"2026-07-28", "2025-11-25"}

// connect opens a session of the SDK's own client, over HTTP.
func (w *world) connect(version string, o *mcp.ClientOptions, change ...func(*mcp.StreamableClientTransport)) *mcp.ClientSession {
	w.t.Helper()
	tr := &mcp.StreamableClientTransport{Endpoint: w.url}
	for _, f := range change {
		f(tr)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(w.t.Context(), tr, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = session.Close() })
	return session
}

func call(t *testing.T, s *mcp.ClientSession, name string, arguments any) *mcp.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(t, err)
	return res
}

// textOf returns the text of a result, the first of its items.
func textOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	require.NotEmpty(t, res.Content)
	text, ok := res.Content[0].(*mcp.TextContent)
	require.True(t, ok)
	return text.Text
}

func plan(t *testing.T, text string) map[string]any {
	t.Helper()
	var p map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	return p
}

func TestAPlanRunsAndItsOutcomeComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		s := w.connect(version, nil)
		res := call(t, s, "execute_tool_plan", plan(t, `{"steps": [
			{"id": "a", "tool": "greet", "arguments": {"name": "Ada"}},
			{"id": "b", "tool": "greet", "arguments": {"name": "$ref:a.text"}}], "output_steps": ["b"]}`))
		require.False(t, res.IsError, textOf(t, res))
		var out struct {
			Run, Status string
			Results     map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(textOf(t, res)), &out))
		assert.Equal(t, "succeeded", out.Status, version)
		assert.Equal(t, map[string]any{"b": map[string]any{"text": "hello hello Ada"}}, out.Results)
		assert.Equal(t, 1, strings.Count(textOf(t, res), `"run"`))
		structured, err := json.Marshal(res.StructuredContent)
		require.NoError(t, err)
		assert.JSONEq(t, textOf(t, res), string(structured))

		again := call(t, s, "get_plan_result", map[string]any{"run": out.Run, "wait_s": 0})
		assert.JSONEq(t, textOf(t, res), textOf(t, again))
	}
}

func TestWhatIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		some, err := selector.Parse("gre*,slow")
		require.NoError(t, err)
		c.Expose = &some
	})
	for _, version := range versions {
		list, err := w.connect(version, nil).ListTools(t.Context(), nil)
		require.NoError(t, err)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		assert.Equal(t, []string{"cancel_plan", "execute_tool_plan", "get_plan_result", "greet", "search_tools", "slow"}, names)
		if version == "2026-07-28" {
			assert.Equal(t, "private", list.CacheScope)
		}
	}
}

func TestAToolOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		s := w.connect(version, nil)
		res := call(t, s, "greet", map[string]any{"name": "$ref:a ${ref:b}"})
		assert.False(t, res.IsError)
		assert.JSONEq(t, `{"text":"hello $ref:a ${ref:b}"}`, textOf(t, res), "arguments are no references")

		res = call(t, s, "number", nil)
		assert.Equal(t, `{"n":12345678901234567890.10}`, textOf(t, res), "digits stay")

		res = call(t, s, "fail", nil)
		assert.True(t, res.IsError)
		assert.Contains(t, textOf(t, res), "the till is empty")

		res = call(t, s, "greet", map[string]any{"name": 7})
		assert.True(t, res.IsError)
		assert.Contains(t, textOf(t, res), string(fault.InvalidArguments))

		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "nobody"})
		assert.Equal(t, int64(jsonrpc.CodeInvalidParams), codeOf(t, err))
	}
}

// codeOf returns the code of an error of JSON-RPC.
func codeOf(t *testing.T, err error) int64 {
	t.Helper()
	var rpc *jsonrpc.Error
	require.ErrorAs(t, err, &rpc)
	return rpc.Code
}

func TestWhatAModelCanMendIsAResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	s := w.connect(versions[0], nil)
	for _, c := range []struct {
		tool, arguments string
		want            []string
	}{
		{"execute_tool_plan", `{"steps": [{"id": "a", "tool": "greet", "arguments": {"name": "$ref:b"}}, {"id": "a", "tool": "nope"}]}`,
			[]string{"rejected", "unknown_ref", "unknown_tool", "/steps/0/arguments/name"}},
		{"execute_tool_plan", `{"steps": [], "run": 7}`, []string{"invalid_value"}},
		{"get_plan_result", `{"run": "never heard of"}`, []string{"not_found"}},
		{"get_plan_result", `{}`, []string{"invalid_arguments"}},
		{"cancel_plan", `{"run": "never heard of"}`, []string{"not_found"}},
		{"search_tools", `{"query": ""}`, []string{"invalid_arguments"}},
	} {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
		require.NoError(t, err, c.arguments)
		assert.True(t, res.IsError, c.arguments)
		for _, want := range c.want {
			assert.Contains(t, textOf(t, res), want)
		}
	}
}

func TestANamedRunIsJoined(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Hold = time.Second })
	for _, version := range versions {
		s := w.connect(version, nil)
		before := w.calls.Load()
		body := plan(t, `{"run": "order `+version+`", "steps": [{"id": "a", "tool": "slow"}]}`)
		res := call(t, s, "execute_tool_plan", body)
		assert.Contains(t, textOf(t, res), `"status":"running"`)
		res = call(t, s, "execute_tool_plan", body)
		assert.Contains(t, textOf(t, res), `"status":"running"`)
		other := call(t, s, "execute_tool_plan", plan(t, `{"run": "order `+version+`", "steps": [{"id": "b", "tool": "greet"}]}`))
		assert.True(t, other.IsError)
		assert.Contains(t, textOf(t, other), string(fault.Conflict))
		assert.Equal(t, before+1, w.calls.Load(), "it ran once")

		w.release <- struct{}{}
		res = call(t, s, "get_plan_result", map[string]any{"run": "order " + version})
		assert.Contains(t, textOf(t, res), `"status":"succeeded"`)
	}
}

func TestAClientThatLeavesEndsItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		s := w.connect(version, nil)
		before, stopped := w.calls.Load(), w.stopped.Load()
		for _, c := range []struct {
			meta mcp.Meta
			ends bool
		}{{nil, true}, {mcp.Meta{content.KeyMeta: "kept " + version}, false}} {
			ctx, leave := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, &mcp.CallToolParams{Meta: c.meta, Name: "slow"})
				over <- err
			}()
			before++
			require.Eventually(t, func() bool { return w.calls.Load() == before }, 20*time.Second, 5*time.Millisecond)
			leave()
			require.Error(t, <-over)
			if c.ends {
				stopped++
				require.Eventually(t, func() bool { return w.stopped.Load() == stopped }, 20*time.Second, 5*time.Millisecond)
				continue
			}
			w.release <- struct{}{} // it still runs
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Meta: c.meta, Name: "slow"})
			require.NoError(t, err)
			assert.Equal(t, "late", textOf(t, res))
			assert.Equal(t, before, w.calls.Load(), "it was joined")
		}
	}
}

func TestARunThatTakesLongIsAskedForLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Hold = time.Second })
	for _, version := range versions {
		s := w.connect(version, nil)
		res := call(t, s, "slow", nil)
		var still struct{ Run, Status, Next, Progress string }
		require.NoError(t, json.Unmarshal([]byte(textOf(t, res)), &still))
		assert.Equal(t, "running", still.Status)
		assert.Contains(t, still.Next, "get_plan_result")
		assert.Equal(t, "0 of 1 step", still.Progress)

		res = call(t, s, "cancel_plan", map[string]any{"run": still.Run})
		assert.False(t, res.IsError)
		assert.Contains(t, textOf(t, res), `"status":"cancelled"`)
		res = call(t, s, "get_plan_result", map[string]any{"run": still.Run})
		assert.True(t, res.IsError, "it came to nothing")
	}
}

func TestProgressComesAtOnceAndRises(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		told := make(chan *mcp.ProgressNotificationParams, 100)
		s := w.connect(version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
		})
		p := &mcp.CallToolParams{Name: "execute_tool_plan", Arguments: plan(t, `{"steps": [
			{"id": "a", "tool": "greet", "arguments": {"name": "x"}}, {"id": "b", "tool": "slow"}]}`)}
		p.SetProgressToken("tok")
		over := make(chan error, 1)
		go func() {
			_, err := s.CallTool(t.Context(), p)
			over <- err
		}()
		first := <-told
		assert.Equal(t, "submitted", first.Message)
		assert.Equal(t, "tok", first.ProgressToken)
		next := <-told
		for !strings.HasPrefix(next.Message, "1 of 2 steps") {
			assert.Greater(t, next.Progress, first.Progress)
			first, next = next, <-told
		}
		assert.Greater(t, next.Progress, first.Progress)
		assert.InDelta(t, 2, next.Total, 0)
		w.release <- struct{}{}
		require.NoError(t, <-over)
	}
}

// What a worker says of how far its step is reaches the client: of a single tool as it is, of a plan as a part of its
// step. What comes too soon after another is not told, but for the last.
func TestWhatAWorkerSaysIsProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		for name, arguments := range map[string]any{
			"counting": struct{}{},
			"execute_tool_plan": plan(t, `{"steps": [{"id": "a", "tool": "greet", "arguments": {"name": "x"}},
				{"id": "b", "tool": "counting", "depends_on": ["a"]}]}`),
		} {
			told := make(chan *mcp.ProgressNotificationParams, 100)
			s := w.connect(version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
			})
			p := &mcp.CallToolParams{Name: name, Arguments: arguments}
			p.SetProgressToken("tok")
			over := make(chan error, 1)
			go func() {
				_, err := s.CallTool(t.Context(), p)
				over <- err
			}()
			var last *mcp.ProgressNotificationParams
			for before := 0.0; last == nil || !strings.Contains(last.Message, "page two"); before = last.Progress {
				select {
				case last = <-told:
				case err := <-over:
					t.Fatalf("%s is over before it was told: %v", name, err)
				}
				if before > 0 {
					assert.Greater(t, last.Progress, before)
				}
			}
			if name == "counting" {
				assert.Equal(t, "page two", last.Message)
				assert.InDelta(t, 4, last.Total, 0)
				assert.InDelta(t, 2, last.Progress, 0.1)
			} else {
				assert.Equal(t, "1 of 2 steps: b: page two", last.Message)
				assert.InDelta(t, 2, last.Total, 0)
				assert.InDelta(t, 1.5, last.Progress, 0.1)
			}
			w.release <- struct{}{}
			require.NoError(t, <-over)
		}
	}
}

func TestALargeResultIsALinkToBeReadInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		s := w.connect(version, nil)
		const n = 200_000 // two bytes each
		for _, c := range []struct {
			tool, arguments, step string
		}{
			{"many", fmt.Sprintf(`{"n": %d}`, n), "call"},
			{"execute_tool_plan", fmt.Sprintf(`{"steps": [{"id": "big", "tool": "many", "arguments": {"n": %d}}, {"id": "small", "tool": "greet", "arguments": {"name": "x"}}]}`, n), "big"},
			{"execute_tool_plan", fmt.Sprintf(`{"steps": [{"id": "big", "tool": "many", "arguments": {"n": %d}}], "output": {"a": "$ref:big"}}`, n), "="},
		} {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
			require.NoError(t, err)
			assert.Less(t, len(textOf(t, res)), 8<<10)
			require.Len(t, res.Content, 2)
			link, ok := res.Content[1].(*mcp.ResourceLink)
			require.True(t, ok)
			assert.True(t, strings.HasSuffix(link.URI, "/steps/"+c.step), link.URI)

			path := ""
			if c.step == "=" {
				path = "&path=/a"
			}
			var whole strings.Builder
			for {
				read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("%s?offset=%d%s", link.URI, whole.Len(), path)})
				require.NoError(t, err)
				if read.Contents[0].Text == "" {
					break
				}
				assert.LessOrEqual(t, len(read.Contents[0].Text), 256<<10)
				whole.WriteString(read.Contents[0].Text)
			}
			assert.Equal(t, `"`+strings.Repeat("é", n)+`"`, whole.String())
		}
		_, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "stepjet://runs/none/steps/a"})
		assert.Equal(t, int64(jsonrpc.CodeInvalidParams), codeOf(t, err))
		_, err = s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///etc/passwd"})
		assert.Equal(t, int64(jsonrpc.CodeInvalidParams), codeOf(t, err))
	}
}

func TestFoundToolsCanStandInPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Expose = nil })
	s := w.connect(versions[0], nil)
	res := call(t, s, "search_tools", map[string]any{"query": "greeting somebody", "limit": 1})
	var said struct {
		Tools []struct{ Name, Signature string }
	}
	require.NoError(t, json.Unmarshal([]byte(textOf(t, res)), &said))
	require.Len(t, said.Tools, 1)
	assert.Equal(t, "greet", said.Tools[0].Name)
	assert.Contains(t, said.Tools[0].Signature, "Greets somebody by name.")

	worker0 := func(k *worker.Worker) {
		worker.Handle(k, "zebra.count", func(context.Context, struct{}) (int, error) { return 3, nil }, worker.Description("Counts zebras."))
	}
	w.stack.Host(worker0)
	require.Eventually(t, func() bool {
		return strings.Contains(textOf(t, call(t, s, "search_tools", map[string]any{"query": "count zebras", "detail": "schema"})), "zebra.count")
	}, 20*time.Second, 10*time.Millisecond, "the registry is followed")
	res = call(t, s, "execute_tool_plan", plan(t, `{"steps": [{"id": "a", "tool": "zebra.count"}]}`))
	assert.Contains(t, textOf(t, res), `"a":3`)
}

func TestWhatIsNotOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		_, err := w.connect(version, nil).ListPrompts(t.Context(), nil)
		require.Error(t, err, version)
	}
}

func TestOnStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, version := range versions {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- w.s.Serve(context.Background(), fromClient, toClient) }()
		c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		require.NoError(t, err)
		assert.JSONEq(t, `{"text":"hello Ada"}`, textOf(t, call(t, s, "greet", named{"Ada"})))
		_, err = s.ListPrompts(t.Context(), nil)
		assert.Equal(t, int64(jsonrpc.CodeMethodNotFound), codeOf(t, err))
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	}
}
