package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answer is what a request over HTTP came to.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Result map[string]json.RawMessage
	Error  *struct {
		Code    int64
		Message string
		Data    json.RawMessage
	}
}

// request is a request of 2026-07-28, as it is on the wire: for what the SDK's client knows nothing of.
type request struct {
	method string
	params map[string]any
	name   string   // the header Mcp-Name; "-": none
	tasks  bool     // the client knows tasks
	elicit bool     // and forms
	header []string // more headers, name and value by turns
}

// send sends a request and reads its answer.
func (w *world) send(t *testing.T, r request) answer {
	t.Helper()
	capabilities := map[string]any{}
	if r.tasks {
		capabilities["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
	}
	if r.elicit {
		capabilities["elicitation"] = map[string]any{}
	}
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "raw", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": capabilities,
	}
	params := map[string]any{"_meta": meta}
	for k, v := range r.params {
		if k == "_meta" {
			for name, value := range v.(map[string]any) {
				meta[name] = value
			}
			continue
		}
		params[k] = v
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": r.method, "params": params})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", r.method)
	switch {
	case r.name == "-":
	case r.name != "":
		req.Header.Set("Mcp-Name", r.name)
	case params["name"] != nil:
		req.Header.Set("Mcp-Name", params["name"].(string))
	case params["taskId"] != nil:
		req.Header.Set("Mcp-Name", params["taskId"].(string))
	}
	for i := 0; i+1 < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
		if r.header[i] == "Host" {
			req.Host = r.header[i+1]
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	a := answer{Status: res.StatusCode, Header: res.Header, Body: string(text)}
	last := string(text)
	for line := range strings.Lines(string(text)) { // the last event of a stream is the answer
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			last = data
		}
	}
	_ = json.Unmarshal([]byte(last), &a) // what is no JSON is in Body
	a.Status, a.Body = res.StatusCode, string(text)
	return a
}

// field reads one member of a result.
func field[T any](t *testing.T, a answer, name string) (v T) {
	t.Helper()
	require.NotNil(t, a.Result, a.Body)
	if raw, there := a.Result[name]; there {
		require.NoError(t, json.Unmarshal(raw, &v), string(raw))
	}
	return v
}
