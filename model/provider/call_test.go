package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(t testing.TB, c *provider.Caller, request string) (*model.Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return c.Call(ctx, json.RawMessage(request))
}

const plain = `{"instructions":"Be short.","input":"What is 2+2?"}`

// tools is a request with two tools, one of a name that no provider takes.
const tools = `{"mode":"tools","input":"Go.","tools":[
	{"name":"web.search","description":"Searches.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}},
	{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"number"}}}}]}`

// Both forms, the same request, the same answer.
func TestAPlainCall(t *testing.T) {
	t.Parallel()
	for form, lines := range map[string]string{
		model.OpenAI:    said("fo", "ur"),
		model.Anthropic: messages("end_turn", blockOf(0, `{"type":"text","text":""}`, textDelta("fo"), textDelta("ur"))),
	} {
		s := newScript(t, stream(lines))
		a, err := ask(t, caller(t, form, "", s), plain)
		require.NoError(t, err, form)
		require.Equal(t, "four", a.Text)
		require.Equal(t, "large", a.Usage.Model)
		require.EqualValues(t, []int64{1000, 20, 800}, []int64{a.Usage.InputTokens, a.Usage.OutputTokens, a.Usage.CachedTokens})
		want := 0.00048 // 200 at 1, 800 at 0.1, 20 at 10 dollars a million
		if form == model.Anthropic {
			want = 0.0005175 // of the 200, 150 were written to the cache at 1.25
		}
		require.InDelta(t, want, *a.Usage.CostUSD, 1e-12, form)
		got := s.requests()
		require.Len(t, got, 1)
		switch form {
		case model.OpenAI:
			require.Equal(t, "/v1/chat/completions", got[0].path)
			require.Equal(t, "Bearer "+key, got[0].header.Get("Authorization"))
		default:
			require.Equal(t, "/v1/v1/messages", got[0].path)
			require.Equal(t, key, got[0].header.Get("X-Api-Key"))
			require.Equal(t, "2023-06-01", got[0].header.Get("Anthropic-Version"))
			require.Empty(t, got[0].header.Get("Authorization"))
		}
		require.Equal(t, "text/event-stream", got[0].header.Get("Accept"))
	}
}

// Parallel calls become steps; a call whose arguments are not quite JSON is mended, one that is none is told of.
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	name := "web_search_9d4db8c0"
	openAI := chunk(`{"role":"assistant","content":null}`, "null") + content("Looking.") +
		chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"NAME","arguments":""}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"add","arguments":"{a: 1,}"}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}}]}`, "null") +
		chunk(`{"tool_calls":[{"index":2,"id":"call_3","type":"function","function":{"name":"add","arguments":"no JSON"}}]}`, "null") +
		chunk(`{}`, "tool_calls") + counted
	anthropic := messages("tool_use", blockOf(0, `{"type":"text","text":""}`, textDelta("Looking.")),
		blockOf(1, `{"type":"tool_use","id":"call_1","name":"NAME","input":{}}`, jsonDelta(""), jsonDelta(`{"q":`), jsonDelta(`"x"}`)),
		blockOf(2, `{"type":"tool_use","id":"call_2","name":"add","input":{}}`, jsonDelta(`{a: 1,}`)),
		blockOf(3, `{"type":"tool_use","id":"call_3","name":"add","input":{}}`, jsonDelta(`no JSON`)))
	var answers []string
	for form, lines := range map[string]string{model.OpenAI: openAI, model.Anthropic: anthropic} {
		s := newScript(t, stream("data: {}\n\n"))
		c := caller(t, form, "", s)
		_, _ = ask(t, c, tools)
		var sent struct {
			Tools []struct {
				Name     string
				Function struct{ Name string }
			}
		}
		require.NoError(t, json.Unmarshal(s.requests()[0].body, &sent))
		require.Len(t, sent.Tools, 2)
		name = sent.Tools[1].Name + sent.Tools[1].Function.Name
		require.Regexp(t, `^web_search_[0-9a-f]{8}$`, name, "sorted, and of a name that the provider takes")

		s = newScript(t, stream(strings.ReplaceAll(lines, "NAME", name)))
		a, err := ask(t, caller(t, form, "", s), tools)
		require.NoError(t, err)
		a.Usage = model.Usage{}
		answers = append(answers, string(a.JSON()))
	}
	require.Equal(t, `{"text":"Looking.","steps":[{"id":"call_1","tool":"web.search","arguments":{"q":"x"}},`+
		`{"id":"call_2","tool":"add","arguments":{"a":1}},{"id":"call_3","tool":"add","arguments":"no JSON"}],"repaired":true,`+
		`"problems":[{"at":"/steps/2/arguments","message":"they are no JSON object","hint":"write the arguments of add as one JSON object"}],`+
		`"usage":{"model":""}}`, answers[0])
	require.Equal(t, answers[0], answers[1], "the same answer by both forms")
}

// What a provider says when it does not answer, by both forms, and what a step is told.
func TestFailures(t *testing.T) {
	t.Parallel()
	openAI := func(message, code string) string {
		return `{"error":{"message":` + quoted(message) + `,"type":"invalid_request_error","param":null,"code":` + quoted(code) + `}}`
	}
	anthropic := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":` + quoted(message) + `},"request_id":"req_1"}`
	}
	leak := "Incorrect key " + key
	for name, c := range map[string]struct {
		form   string
		answer http.HandlerFunc
		code   fault.Code
		kind   model.Kind
		after  time.Duration
	}{
		"limited":            {model.OpenAI, status(429, openAI("Rate limit reached", "rate_limit_exceeded"), "Retry-After: 7"), fault.ToolFailed, model.Limited, 7 * time.Second},
		"limited, ms":        {model.OpenAI, status(429, "", "Retry-After-Ms: 1500", "Retry-After: 9"), fault.ToolFailed, model.Limited, 1500 * time.Millisecond},
		"limited, unsaid":    {model.OpenAI, status(429, "slow down", "Retry-After: NaN"), fault.ToolFailed, model.Limited, 5 * time.Second},
		"limited, dated":     {model.OpenAI, status(429, "", "Retry-After: Thu, 26 Nov 2026 17:02:00 GMT", "Date: Thu, 26 Nov 2026 17:00:30 GMT"), fault.ToolFailed, model.Limited, 90 * time.Second},
		"limited, past":      {model.OpenAI, status(429, "", "Retry-After: Thu, 26 Nov 2026 17:00:00 GMT", "Date: Thu, 26 Nov 2026 17:00:30 GMT"), fault.ToolFailed, model.Limited, 5 * time.Second},
		"limited, forever":   {model.OpenAI, status(429, "", "Retry-After: 1e300"), fault.ToolFailed, model.Limited, 168 * time.Hour},
		"quota":              {model.OpenAI, status(429, openAI("You exceeded your current quota", "insufficient_quota")), fault.ToolTerminal, model.Exhausted, 0},
		"overloaded":         {model.Anthropic, status(529, anthropic("overloaded_error", "Overloaded"), "Retry-After: 3"), fault.ToolFailed, model.Overloaded, 3 * time.Second},
		"limited there":      {model.Anthropic, status(429, anthropic("rate_limit_error", "limit"), "Retry-After: 2"), fault.ToolFailed, model.Limited, 2 * time.Second},
		"overloaded, stream": {model.Anthropic, stream(event("message_start", begun) + event("error", anthropic("overloaded_error", "Overloaded"))), fault.ToolFailed, model.Overloaded, 5 * time.Second},
		"error, stream":      {model.OpenAI, stream(content("Hel") + "data: " + openAI("The server had an error", "server_error") + "\n\n"), fault.ToolFailed, model.Server, 0},
		"server":             {model.OpenAI, status(502, "<html>Bad Gateway</html>"), fault.ToolFailed, model.Server, 0},
		"no JSON at all":     {model.Anthropic, status(500, "\x00\xff\x1b[31m"), fault.ToolFailed, model.Server, 0},
		"invalid":            {model.OpenAI, status(400, openAI("Invalid value", "invalid_value")), fault.ToolTerminal, model.Invalid, 0},
		"too long":           {model.OpenAI, status(400, openAI("This model's maximum context length is 8192 tokens", "context_length_exceeded")), fault.ToolTerminal, model.TooLong, 0},
		"too long there":     {model.Anthropic, status(400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")), fault.ToolTerminal, model.TooLong, 0},
		"too many bytes":     {model.Anthropic, status(413, anthropic("request_too_large", "Request exceeds")), fault.ToolTerminal, model.TooLong, 0},
		"full":               {model.Anthropic, stream(messages("model_context_window_exceeded", blockOf(0, `{"type":"text","text":""}`, textDelta("a")))), fault.ToolTerminal, model.TooLong, 0},
		"key":                {model.OpenAI, status(401, openAI(leak, "invalid_api_key")), fault.ToolTerminal, model.Forbidden, 0},
		"key there":          {model.Anthropic, status(401, anthropic("authentication_error", leak)), fault.ToolTerminal, model.Forbidden, 0},
		"key in a 400":       {model.OpenAI, status(400, openAI(leak+" \x01"+key, "x")), fault.ToolTerminal, model.Invalid, 0},
		"key in a stream":    {model.OpenAI, stream("data: " + openAI(leak, "server_error") + "\n\n"), fault.ToolFailed, model.Server, 0},
		"key in two":         {model.OpenAI, status(400, openAI(key[:9]+"\x00"+key[9:], "x")), fault.ToolTerminal, model.Invalid, 0},
		"no such model":      {model.OpenAI, status(404, openAI("The model does not exist", "model_not_found")), fault.ToolTerminal, model.Unknown, 0},
		"refusal":            {model.OpenAI, stream(chunk(`{"refusal":"I can't help"}`, "null") + chunk(`{"refusal":" with that."}`, "stop") + counted), fault.ToolTerminal, model.Refused, 0},
		"filter":             {model.OpenAI, stream(content("a") + chunk(`{}`, "content_filter") + counted), fault.ToolTerminal, model.Refused, 0},
		"refusal there":      {model.Anthropic, stream(messages("refusal", blockOf(0, `{"type":"text","text":""}`, textDelta("No")))), fault.ToolTerminal, model.Refused, 0},
		"cut":                {model.OpenAI, stream(said("Hel")[:400]), fault.ToolFailed, model.Broken, 0},
		"cut there":          {model.Anthropic, stream(event("message_start", begun)), fault.ToolFailed, model.Broken, 0},
		"nothing":            {model.OpenAI, stream(""), fault.ToolFailed, model.Broken, 0},
		"no stream":          {model.OpenAI, status(200, `{"id":"x","choices":[]}`), fault.ToolFailed, model.Broken, 0},
		"garbage":            {model.Anthropic, stream("data: {\"type\":\n\n"), fault.ToolFailed, model.Broken, 0},
		"redirect":           {model.OpenAI, status(307, "", "Location: http://127.0.0.1:1/"), fault.ToolTerminal, model.Invalid, 0},
		"connection lost":    {model.OpenAI, lost, fault.ToolFailed, model.Broken, 0},
		"silence":            {model.Anthropic, silent, fault.ToolFailed, model.Late, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, c.answer)
			_, err := ask(t, caller(t, c.form, "", s), plain)
			var f *fault.Error
			require.ErrorAs(t, err, &f)
			require.Equal(t, c.code, f.Code, "%v", f)
			require.Equal(t, "model_"+string(c.kind), f.ToolCode, "%v", f)
			require.Equal(t, c.after, f.RetryAfter)
			require.Equal(t, c.code == fault.ToolFailed, f.Retryable)
			whole, err := json.Marshal(f)
			require.NoError(t, err)
			for _, secret := range []string{key, key[:9], key[9:]} {
				require.NotContains(t, string(whole)+f.Error(), secret)
			}
			require.NotRegexp(t, `[\x00-\x1f\x7f]`, f.Message)
			if c.code == fault.ToolTerminal {
				require.NotEmpty(t, f.Hint)
			}
			require.Len(t, s.requests(), 1, "nothing is tried again here")
		})
	}
}

// lost breaks the connection off in the middle of a chunk.
func lost(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, content("Hel")+`data: {"choi`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// silent begins and says nothing more.
func silent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, event("message_start", begun))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestAModelThatIsGone(t *testing.T) {
	t.Parallel()
	s := newScript(t, stream(said("x")))
	s.Close()
	_, err := ask(t, caller(t, model.OpenAI, "", s), plain)
	require.Equal(t, fault.ToolFailed, fault.CodeOf(err))
	require.Equal(t, "model_unreachable", fault.As(err).ToolCode)
}

// A slow stream is no silent one: what is heard keeps it open.
func TestASlowStreamIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	parts := strings.SplitAfter(said("a", "b", "c", "d", "e", "f"), "\n\n")
	s := newScript(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			select { // longer than idle_ms in all, and not between any two
			case <-time.After(400 * time.Millisecond):
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, ": keep-alive\n\n"+part)
			w.(http.Flusher).Flush()
		}
	})
	a, err := ask(t, caller(t, model.OpenAI, "", s), plain)
	require.NoError(t, err)
	require.Equal(t, "abcdef", a.Text)
}

// What a step is cancelled for is what it ends with.
func TestACancelledCallEndsWithItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the run was cancelled")
	s := newScript(t, func(w http.ResponseWriter, r *http.Request) { cancel(why); silent(w, r) })
	_, err := caller(t, model.Anthropic, "", s).Call(ctx, json.RawMessage(plain))
	require.ErrorIs(t, err, why)
}

// An endless answer ends at the limit, whatever it is endless in.
func TestEndlessAnswersEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct{ form, first, part string }{
		"text":      {model.OpenAI, "", content(long)},
		"refusal":   {model.OpenAI, "", chunk(`{"refusal":"`+long+`"}`, "null")},
		"arguments": {model.OpenAI, "", chunk(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"`+long+`"}}]}`, "null")},
		"calls":     {model.OpenAI, "", chunk(`{"tool_calls":[{"index":0,"id":"","function":{"name":"`+long+`","arguments":""}}]}`, "null")},
		"thinking": {model.Anthropic, event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`),
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"`+long+`"}}`)},
		"nothing":  {model.OpenAI, "", strings.Repeat(chunk(`{}`, "null"), 300)},
		"comments": {model.OpenAI, "", ":" + long + "\n\n"},
		"one line": {model.OpenAI, "data: ", long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, func(w http.ResponseWriter, r *http.Request) {
				_, err := io.WriteString(w, c.first)
				for err == nil && r.Context().Err() == nil {
					_, err = io.WriteString(w, c.part)
				}
			})
			_, err := ask(t, caller(t, c.form, "", s), plain)
			require.Error(t, err)
			if name != "one line" { // which is none of the form
				require.Equal(t, "model_too_large", fault.As(err).ToolCode, "%v", err)
				require.Equal(t, fault.ToolTerminal, fault.CodeOf(err))
			}
		})
	}
}
