// Package modelscript is a language model that plays a script, in the form of OpenAI's API and in that of Anthropic's: what
// it answers is the same in both, streamed in small pieces. It keeps what it was asked, for tests to look at.
package modelscript

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Turn is one answer.
type Turn struct {
	Thinking string // told in Anthropic's form alone, with a signature
	Text     string
	Calls    []Call
}

// Call is a call of a tool; Arguments is JSON.
type Call struct{ ID, Tool, Arguments string }

// Asked is a request as it came.
type Asked struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Server answers by a script: the turn after so many answers as the conversation that it is asked has. So it doesn't
// matter how often it is asked.
type Server struct {
	*httptest.Server
	turns []Turn
	pause time.Duration

	mu    sync.Mutex
	asked []Asked
}

// Start starts a server on the loopback. pause is what it waits for before each piece of an answer.
func Start(pause time.Duration, turns ...Turn) *Server {
	s := &Server{turns: turns, pause: pause}
	s.Server = httptest.NewServer(s)
	return s
}

// Asked returns what the server was asked so far.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Asked{}, s.asked...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, Asked{r.URL.Path, r.Header, body})
	s.mu.Unlock()
	var in struct {
		Messages []struct{ Role string }
	}
	if json.Unmarshal(body, &in) != nil {
		http.Error(w, `{"error":{"message":"that is no JSON"}}`, http.StatusBadRequest)
		return
	}
	n := 0
	for _, m := range in.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	if n >= len(s.turns) {
		http.Error(w, `{"error":{"message":"the script is over"}}`, http.StatusBadRequest)
		return
	}
	var pieces []string
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		pieces = completions(s.turns[n])
	case strings.HasSuffix(r.URL.Path, "/messages"):
		pieces = messages(s.turns[n])
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range pieces {
		select {
		case <-time.After(s.pause):
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, p)
		_ = http.NewResponseController(w).Flush()
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text) // of a string
	return string(raw)
}

// split returns a text in pieces of a few letters, none of which is torn: a piece goes as a string of JSON.
func split(text string) (all []string) {
	const size = 5
	letters := []rune(text)
	for ; len(letters) > size; letters = letters[size:] {
		all = append(all, string(letters[:size]))
	}
	return append(all, string(letters))
}

// completions is an answer in the form of OpenAI's Chat Completions.
func completions(t Turn) (all []string) {
	chunk := func(delta, finish string) {
		all = append(all, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`+
			delta+`,"logprobs":null,"finish_reason":`+finish+`}],"usage":null}`+"\n\n")
	}
	chunk(`{"role":"assistant","content":"","refusal":null}`, "null")
	for _, piece := range split(t.Text) {
		chunk(`{"content":`+quoted(piece)+`}`, "null")
	}
	for i, c := range t.Calls {
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, quoted(c.ID), quoted(c.Tool)), "null")
		for _, piece := range split(c.Arguments) {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(piece)), "null")
		}
	}
	finish := `"stop"`
	if len(t.Calls) > 0 {
		finish = `"tool_calls"`
	}
	chunk(`{}`, finish)
	return append(all, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],`+
		`"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020,"prompt_tokens_details":{"cached_tokens":800}}}`+"\n\n",
		"data: [DONE]\n\n")
}

// messages is an answer in the form of Anthropic's Messages.
func messages(t Turn) (all []string) {
	event := func(name, data string) { all = append(all, "event: "+name+"\ndata: "+data+"\n\n") }
	event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":200,"cache_read_input_tokens":800,"output_tokens":1}}}`)
	n := 0
	block := func(start string, deltas ...string) {
		event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, start))
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, n, d))
		}
		event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, n))
		n++
	}
	if t.Thinking != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":`+quoted(t.Thinking)+`}`,
			`{"type":"signature_delta","signature":"c2ln"}`)
	}
	if t.Text != "" {
		var deltas []string
		for _, piece := range split(t.Text) {
			deltas = append(deltas, `{"type":"text_delta","text":`+quoted(piece)+`}`)
		}
		block(`{"type":"text","text":""}`, deltas...)
	}
	event("ping", `{"type": "ping"}`)
	for _, c := range t.Calls {
		var deltas []string
		for _, piece := range split(c.Arguments) {
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+quoted(piece)+`}`)
		}
		block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quoted(c.ID), quoted(c.Tool)), deltas...)
	}
	reason := "end_turn"
	if len(t.Calls) > 0 {
		reason = "tool_use"
	}
	event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":20}}`)
	event("message_stop", `{"type":"message_stop"}`)
	return all
}
