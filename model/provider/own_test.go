package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/model"
)

// What the providers themselves are sent, at their own addresses, so that their caches know a conversation again: the same
// prompt_cache_key in each request of it, and cache_control where its parts end. Each request begins with the bytes of the
// one before, but for those marks.
func TestPromptCachesOnTheWire(t *testing.T) {
	t.Parallel()
	for form, host := range map[string]string{model.OpenAI: "api.openai.com", model.Anthropic: "api.anthropic.com"} {
		var bodies [][]byte
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Host != host {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			bodies = append(bodies, body)
			if form == model.OpenAI {
				_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
				return
			}
			_, _ = io.WriteString(w, "event: content_block_start\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"yes"}}`+"\n\n"+
				"event: message_delta\n"+`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`+"\n\n"+
				"event: message_stop\n"+`data: {"type":"message_stop"}`+"\n\n")
		}))
		c, err := model.ParseConfig(fmt.Appendf(nil, `{"provider":%q,"key_env":"KEY","models":{"m":{"id":"m"}}}`, form), "")
		require.NoError(t, err)
		all, err := New(c, func(string) (string, bool) { return "sk-test", true })
		require.NoError(t, err)
		all.web.Proxy = nil
		all.web.DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
		}
		request := func(rounds int, input string) string {
			var past []string
			for i := range rounds {
				past = append(past, fmt.Sprintf(`{"round":%d,"text":"I add.","records":[{"id":"a%d","tool":"add","arguments":{"n":%d},"status":"succeeded","result":%d}]}`, i, i, i, i))
			}
			return fmt.Sprintf(`{"mode":"tools","instructions":"Add.","input":%q,"tools":[{"name":"add"}],"rounds":[%s],"facts":{"round":%d}}`,
				input, strings.Join(past, ","), rounds)
		}
		for round := range 4 {
			_, err := all.Call(t.Context(), json.RawMessage(request(round, "one")))
			require.NoError(t, err, form)
		}
		_, err = all.Call(t.Context(), json.RawMessage(request(0, "another")))
		require.NoError(t, err)
		all.Close()
		srv.Close()
		require.Len(t, bodies, 5)
		onTheWire(t, form, bodies)
	}
}

func onTheWire(t *testing.T, form string, bodies [][]byte) {
	t.Helper()
	mark := []byte(`,"cache_control":{"type":"ephemeral"}`)
	var before []byte
	keys := make([]string, len(bodies))
	for i, body := range bodies {
		var in struct {
			Key string `json:"prompt_cache_key"`
		}
		require.NoError(t, json.Unmarshal(body, &in))
		keys[i] = in.Key
		if form == model.Anthropic {
			require.Equal(t, []int{2, 3, 3, 3, 2}[i], bytes.Count(body, mark), "%s", body)
			require.False(t, bytes.HasSuffix(body, []byte(`"ephemeral"}}]}]}`)), "what is true of this request alone is not marked")
		}
		if i == len(bodies)-1 {
			break // another conversation
		}
		plain := bytes.ReplaceAll(body, mark, nil)
		require.True(t, bytes.HasPrefix(plain, before), "%s\n%s", before, plain)
		before, _, _ = bytes.Cut(plain, []byte(`,{"role":"user","content":"Facts`))
		before, _, _ = bytes.Cut(before, []byte(`,{"role":"user","content":[{"type":"text","text":"Facts`))
	}
	if form == model.OpenAI {
		require.NotEmpty(t, keys[0])
		require.Equal(t, []string{keys[0], keys[0], keys[0], keys[0]}, keys[:4])
		require.NotEqual(t, keys[0], keys[4])
	}
}
