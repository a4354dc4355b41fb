package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// serverVariable makes the test's program an MCP server on stdio; its value is a folder that the server works in.
const serverVariable = "BRIDGE_TEST_SERVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverVariable); dir != "" {
		if err := serveStdio(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if file := os.Getenv(workerVariable); file != "" {
		fmt.Fprintln(os.Stderr, runWorker(file))
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// serveStdio serves the tools of this file until standard input ends. The process's number stands in the folder.
func serveStdio(dir string) error {
	pid := strconv.Itoa(os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "pid."+pid), nil, 0o600); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "broken")); err == nil {
		return fmt.Errorf("it is broken on purpose")
	}
	return testServer(dir).Run(context.Background(), &mcp.StdioTransport{})
}

// testServer is a server of go-sdk. Its files lie in dir.
func testServer(dir string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, nil)
	description := "Returns what it is given."
	if raw, err := os.ReadFile(filepath.Join(dir, "description")); err == nil {
		description = string(raw)
	}
	add(s, "echo", description, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: r.Params.Arguments, Content: []mcp.Content{}}, nil
	})
	add(s, "text", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textOf(argument(r, "text")), nil
	})
	add(s, "meta", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		meta := map[string]any{}
		for k, v := range r.Params.Meta {
			if !strings.HasPrefix(k, "io.modelcontextprotocol/") && k != "progressToken" {
				meta[k] = v
			}
		}
		if r.Extra != nil && r.Extra.Header != nil {
			meta["authorization"] = r.Extra.Header.Get("Authorization")
		}
		return &mcp.CallToolResult{StructuredContent: meta}, nil
	})
	add(s, "picture", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "look"}, &mcp.ImageContent{Data: []byte{0, 1, 255}, MIMEType: "image/png"},
		}}, nil
	})
	add(s, "pid", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textOf(strconv.Itoa(os.Getpid())), nil
	})
	addTroubles(s, dir)
	return s
}

// addTroubles adds what goes wrong.
func addTroubles(s *mcp.Server, dir string) {
	add(s, "fails", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result := textOf(argument(r, "text"))
		result.IsError = true
		return result, nil
	})
	add(s, "rpc", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		code, err := strconv.ParseInt(argument(r, "code"), 10, 64)
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: code, Message: "no", Data: json.RawMessage(`{"why":"because"}`)}
	})
	add(s, "crash", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		once := filepath.Join(dir, "crashed")
		if _, err := os.Stat(once); err == nil && argument(r, "once") != "" {
			return textOf("alive"), nil
		}
		_ = os.WriteFile(once, nil, 0o600)
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(3)
		return nil, nil
	})
	add(s, "huge", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textOf(strings.Repeat("x", 17<<20)), nil
	})
	add(s, "counts", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			p := &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 4, Message: fmt.Sprint("page ", i+1),
			}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		<-appears(ctx, filepath.Join(dir, argument(r, "name")+".go"))
		return textOf("read"), nil
	})
	add(s, "asks", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name := argument(r, "name") + "1"
		if r.Params.RequestState != "" {
			name = argument(r, "name") + "2"
		}
		_ = os.WriteFile(filepath.Join(dir, name+".began"), nil, 0o600)
		<-appears(ctx, filepath.Join(dir, name+".go"))
		if said, ok := r.Params.InputResponses["c"].(*mcp.ElicitResult); ok {
			return textOf(fmt.Sprint("in ", said.Content["city"])), nil
		}
		return &mcp.CallToolResult{RequestState: "mine", InputRequests: mcp.InputRequestMap{"c": &mcp.ElicitParams{
			Message: "Which city?", RequestedSchema: json.RawMessage(cityForm),
		}}}, nil
	})
	add(s, "waits", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name := argument(r, "name")
		_ = os.WriteFile(filepath.Join(dir, name+".began"), nil, 0o600)
		select {
		case <-ctx.Done():
			_ = os.WriteFile(filepath.Join(dir, name+".cancelled"), nil, 0o600)
		case <-appears(ctx, filepath.Join(dir, name+".go")):
		}
		return textOf("done"), nil
	})
}

// appears is closed when a file is there, or ctx has ended.
func appears(ctx context.Context, path string) <-chan struct{} {
	there := make(chan struct{})
	go func() {
		defer close(there)
		for ctx.Err() == nil {
			if _, err := os.Stat(path); err == nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return there
}

func add(s *mcp.Server, name, description string, h mcp.ToolHandler) {
	s.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, h)
}

func textOf(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func argument(r *mcp.CallToolRequest, name string) string {
	var all map[string]any
	_ = json.Unmarshal(r.Params.Arguments, &all)
	s, _ := all[name].(string)
	return s
}

// child is an entry that starts the test's program as a server, in a folder.
func childEntry(t testing.TB, dir string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return map[string]any{"command": self, "env": map[string]string{serverVariable: dir}}
}

// webServer serves an MCP server by Streamable HTTP; with stateful, in the way of versions before 2026-07-28.
func webServer(t testing.TB, s *mcp.Server, stateful bool, see func(*http.Request) int) map[string]any {
	t.Helper()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: !stateful, PropagateRequestCancellation: !stateful})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if see != nil {
			if status := see(r); status != 0 {
				w.Header().Set("Retry-After", "7")
				http.Error(w, "refused", status)
				return
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.CloseClientConnections)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return map[string]any{"url": srv.URL, "x-stepjet": map[string]any{"allow_private": true}}
}

// webServerDropping is webServer without state, whose connections drop closes.
func webServerDropping(t testing.TB, s *mcp.Server, drop *func()) map[string]any {
	t.Helper()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	srv := httptest.NewServer(h)
	*drop = srv.CloseClientConnections
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return map[string]any{"url": srv.URL, "x-stepjet": map[string]any{"allow_private": true}}
}

// fileOf writes a file of servers into a folder of its own.
func fileOf(t testing.TB, servers map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), ".mcp.json")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

// pids returns the processes that have served in a folder, running or not.
func pids(t testing.TB, dir string) (all []int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "pid.*"))
	require.NoError(t, err)
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(name), "."))
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// seen counts things under a lock.
type seen struct {
	mu  sync.Mutex
	all []string
}

func (s *seen) add(one string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
}

func (s *seen) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.all...)
}

// zero is the signal that asks whether a process is there.
const zero = syscall.Signal(0)
