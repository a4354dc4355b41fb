package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
)

// key is what no record, error or log may show.
const key = "sk-test-0123456789abcdef"

// asked is a request as it came over the wire.
type asked struct {
	path   string
	header http.Header
	body   []byte
}

// script is a provider that answers by a list, byte by byte as the references have it, and keeps what it was asked. The
// last answer is given from then on.
type script struct {
	*httptest.Server
	t  testing.TB
	mu sync.Mutex

	answers []http.HandlerFunc
	got     []asked
}

func newScript(t testing.TB, answers ...http.HandlerFunc) *script {
	s := &script{t: t, answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *script) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	n := len(s.got)
	s.got = append(s.got, asked{r.URL.Path, r.Header, body})
	answer := s.answers[min(n, len(s.answers)-1)]
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked{}, s.got...)
}

// stream sends lines of text/event-stream as they stand.
func stream(lines string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range strings.SplitAfter(lines, "\n\n") {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	}
}

// status answers with a status, headers as "Name: value", and a body.
func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Chunks of Chat Completions.

func chunk(delta, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` +
		delta + `,"logprobs":null,"finish_reason":` + finish + `}],"usage":null}` + "\n\n"
}

func quoted(s string) string { raw, _ := json.Marshal(s); return string(raw) }

func content(text string) string { return chunk(`{"content":`+quoted(text)+`}`, "null") }

const counted = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020,"prompt_tokens_details":{"cached_tokens":800}}}` +
	"\n\ndata: [DONE]\n\n"

// said is a whole answer of Chat Completions.
func said(texts ...string) string {
	all := chunk(`{"role":"assistant","content":"","refusal":null}`, "null")
	for _, t := range texts {
		all += content(t)
	}
	return all + chunk(`{}`, "stop") + counted
}

// Events of Messages.

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

const begun = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":50,"cache_creation_input_tokens":150,"cache_read_input_tokens":800,"output_tokens":1}}}`

func stopped(reason string) string {
	return event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":20}}`) +
		event("message_stop", `{"type":"message_stop"}`)
}

// blockOf is a block with its deltas.
func blockOf(i int, start string, deltas ...string) string {
	all := event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, start))
	for _, d := range deltas {
		all += event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
	}
	return all + event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}

func textDelta(s string) string { return `{"type":"text_delta","text":` + quoted(s) + `}` }
func jsonDelta(s string) string {
	return `{"type":"input_json_delta","partial_json":` + quoted(s) + `}`
}

// messages is a whole answer of Messages.
func messages(reason string, blocks ...string) string {
	return event("message_start", begun) + event("ping", `{"type": "ping"}`) + strings.Join(blocks, "") + stopped(reason)
}

// caller asks scripts: the first is the model "large", the others "second" and so on, its fallbacks.
func caller(t testing.TB, form string, more string, scripts ...*script) *provider.Caller {
	t.Helper()
	names := []string{"large", "second", "third"}
	models, fallback := "", ""
	for i, s := range scripts {
		if i > 0 {
			fallback += `,"` + names[i] + `"`
		}
		models += fmt.Sprintf(`,%q:{"id":"id-%s","provider":%q,"base_url":%q,"key_env":"KEY","input_usd":1,"output_usd":10,"cached_usd":0.1,"cache_write_usd":1.25%s%s}`,
			names[i], names[i], form, s.URL+"/v1", more, "FALLBACK")
		_ = i
	}
	models = strings.Replace(models, "FALLBACK", `,"fallback":[`+strings.TrimPrefix(fallback, ",")+`]`, 1)
	models = strings.ReplaceAll(models, "FALLBACK", "")
	c, err := model.ParseConfig([]byte(`{"default":"large","idle_ms":2000,"models":{`+models[1:]+`}}`), "")
	require.NoError(t, err)
	all, err := provider.New(c, func(name string) (string, bool) { return key, name == "KEY" })
	require.NoError(t, err)
	t.Cleanup(all.Close)
	return all
}
