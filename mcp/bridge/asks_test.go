package bridge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/tool"
)

const cityForm = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`

// The error of a tool that asks has the question, and its hint says what can be done about just that.
func TestWhatToDoAboutAToolThatAsks(t *testing.T) {
	t.Parallel()
	b := &bridged{name: "forecast", up: &upstream{entry: &servers.Entry{Name: "weather"}}, def: &tool.Definition{
		Name: "weather_forecast", InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{},"unit":{}}}`),
	}}
	const exclude = `"x-stepjet": {"exclude": "forecast"}`
	for _, c := range []struct{ asked, says, hint string }{
		{
			`{"a":{"method":"elicitation/create","params":{"message":"Which <city>?","requestedSchema":` + cityForm + `}}}`, ": Which <city>?",
			`ask before it, {"arguments":{"question":"Which <city>?","schema":` + cityForm +
				`},"id":"asked","tool":"ask"}, and hand over "city": "$ref:asked.city"; or leave`,
		},
		{
			`{"a":{"method":"elicitation/create","params":{"message":"Pay?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}}}}}}`,
			": Pay?", "it has no argument for sure: look",
		},
		{`{"a":{"method":"elicitation/create","params":{"mode":"url","message":"Log in","url":"https://x.example/login"}}}`, ": Log in", "open https://x.example/login,"},
		{`{"a":{"method":"sampling/createMessage","params":{"messages":[]}}}`, ": sampling/createMessage", "language model's answer"},
		{`{"a":{"method":"roots/list"}}`, ": roots/list", "offers nothing of that kind"},
		{`{"a":{"method":"elicitation/create","params":{"message":"One?"}},"b":{"method":"elicitation/create","params":{"message":"Two?"}}}`, ": One?; Two?", "put a step with the tool ask before it"},
		{`7`, ": something", "put a step with the tool ask before it"},
	} {
		_, err := b.output(t.Context(), json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":`+c.asked+`}`), nil)
		f := fault.As(err)
		require.Equal(t, fault.ToolTerminal, f.Code, c.asked)
		require.Contains(t, f.Message, c.says, c.asked)
		require.Contains(t, f.Hint, c.hint, c.asked)
		require.Contains(t, f.Hint, exclude, c.asked)
	}
}

// asking serves one tool in the way of 2025-11-25, which asks in the middle of its call, whatever its caller has
// declared, and then ends as its argument says.
func asking(t *testing.T) map[string]any {
	t.Helper()
	refused := make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Error  json.RawMessage `json:"error"`
			Params struct {
				Arguments struct {
					Then string `json:"then"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer := func(what string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, what)
		}
		switch m.Method {
		case "initialize":
			answer(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}`)
		case "tools/list":
			answer(`"result":{"tools":[{"name":"ask","inputSchema":{"type":"object","properties":{"city":{},"then":{}}}}]}`)
		case "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"Where?\",\"requestedSchema\":%s}}\n\n", cityForm)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-refused:
			case <-r.Context().Done():
				return
			}
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n\n", m.ID, m.Params.Arguments.Then)
		case "":
			if m.Error != nil {
				refused <- struct{}{}
			}
			w.WriteHeader(http.StatusAccepted)
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		default:
			answer(`"error":{"code":-32601,"message":"no such method"}`)
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return map[string]any{"url": srv.URL, "x-stepjet": map[string]any{"allow_private": true, "retry_errors": "try later"}}
}

// A server of before 2026-07-28 that asks in the middle of a call is refused. Where its tool then fails, the step says
// what was asked; where the tool does without, its result counts.
func TestAQuestionInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	w := start(t, map[string]any{"old": asking(t)})
	then := func(what string) string {
		raw, err := json.Marshal(map[string]string{"then": what})
		require.NoError(t, err)
		return string(raw)
	}
	for _, what := range []string{
		`"result":{"isError":true,"content":[{"type":"text","text":"nobody answers"}]}`,
		`"error":{"code":-32603,"message":"nobody answers"}`,
	} {
		f := w.fails("old_ask", then(what))
		require.Equal(t, fault.ToolTerminal, f.Code, what)
		require.Contains(t, f.Message, "Where?", what)
		require.Contains(t, f.Message, "nobody answers", what)
		require.Contains(t, f.Hint, `"city": "$ref:asked.city"`, what)
	}
	f := w.fails("old_ask", then(`"result":{"isError":true,"content":[{"type":"text","text":"try later"}]}`))
	require.Equal(t, fault.ToolFailed, f.Code, "what the file says is worth another attempt is")
	for _, what := range []string{
		`"result":{"isError":true,"content":[{"type":"text","text":"{\"code\":\"replan\",\"message\":\"sold out\"}"}]}`,
		`"result":{"isError":true,"content":[{"type":"text","text":"Sold out."}],"structuredContent":{"code":"replan","message":"sold out"}}`,
	} {
		f = w.fails("old_ask", then(what))
		require.Equal(t, &fault.Error{Code: fault.ToolFailed, Message: "replan: sold out"}, f, "as a run without agents reads it: %s", what)
	}
	require.Equal(t, `"anywhere"`, w.succeeds("old_ask", then(`"result":{"content":[{"type":"text","text":"anywhere"}]}`)))
}
