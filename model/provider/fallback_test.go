package provider_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
)

// What may pass is asked of the next model, anything else of none, and the answer says who gave it.
func TestFallback(t *testing.T) {
	t.Parallel()
	limited := status(429, `{"error":{"message":"m","code":"rate_limit_exceeded"}}`, "Retry-After: 7")
	for name, c := range map[string]struct {
		first, second http.HandlerFunc
		answers       string // empty: nobody
		asked         int    // of the second
		kind          string
	}{
		"limited":           {first: limited, second: stream(said("b")), answers: "second", asked: 1},
		"overloaded":        {first: status(529, ""), second: stream(said("b")), answers: "second", asked: 1},
		"server":            {first: status(500, ""), second: stream(said("b")), answers: "second", asked: 1},
		"broken":            {first: lost, second: stream(said("b")), answers: "second", asked: 1},
		"silent":            {first: silent, second: stream(said("b")), answers: "second", asked: 1},
		"invalid":           {first: status(400, `{"error":{"message":"bad"}}`), second: stream(said("b")), kind: "model_invalid"},
		"refused":           {first: stream(chunk(`{"refusal":"no"}`, "stop") + counted), second: stream(said("b")), kind: "model_refused"},
		"key":               {first: status(401, ""), second: stream(said("b")), kind: "model_forbidden"},
		"both limited":      {first: limited, second: status(500, ""), asked: 1, kind: "model_limited"},
		"then invalid":      {first: limited, second: status(400, `{"error":{"message":"bad"}}`), asked: 1, kind: "model_invalid"},
		"the first answers": {first: stream(said("a")), second: stream(said("b")), answers: "large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := newScript(t, c.first), newScript(t, c.second)
			a, err := ask(t, caller(t, model.OpenAI, "", one, two), plain)
			require.Len(t, one.requests(), 1)
			require.Len(t, two.requests(), c.asked)
			if c.answers != "" {
				require.NoError(t, err)
				require.Equal(t, c.answers, a.Usage.Model)
				return
			}
			require.Equal(t, c.kind, fault.As(err).ToolCode)
		})
	}
}

// An endpoint that takes no schema says so once; from then on it is asked in words.
func TestAnEndpointWithoutSchemas(t *testing.T) {
	t.Parallel()
	const shaped = `{"input":"x","outputSchema":{"type":"object"}}`
	s := newScript(t, status(400, `{"error":{"message":"response_format is not supported"}}`), stream(said("```json\n", `{"a":1}`, "\n```")))
	c := caller(t, model.OpenAI, "", s)
	for range 2 {
		a, err := ask(t, c, shaped)
		require.NoError(t, err)
		require.JSONEq(t, `{"a":1}`, string(a.Output))
	}
	got := s.requests()
	require.Len(t, got, 3)
	require.Contains(t, string(got[0].body), `"response_format"`)
	require.NotContains(t, string(got[1].body), `"response_format"`)
	require.NotContains(t, string(got[2].body), `"response_format"`)
	s = newScript(t, status(400, `{"error":{"message":"Invalid schema for response_format"}}`), stream(said("1")))
	c = caller(t, model.OpenAI, "", s)
	for _, request := range []string{shaped, shaped, `{"input":"x","outputSchema":{"type":"integer"}}`} {
		_, err := ask(t, c, request)
		require.NoError(t, err)
	}
	got = s.requests()
	require.Len(t, got, 4)
	require.NotContains(t, string(got[2].body), `"response_format"`)
	require.Contains(t, string(got[3].body), `"response_format"`, "what is wrong with one schema says nothing of another")
}

// The connection is closed as soon as nothing is to be executed: the provider writes no more.
func TestCommandsAreClosedEarly(t *testing.T) {
	t.Parallel()
	for form, first := range map[string]string{
		model.OpenAI: content(`{"next_action":`) + content(`"response"`),
		model.Anthropic: event("message_start", begun) + event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":{}}}`) +
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+jsonDelta(`{"next_action":"response"`)+`}`),
	} {
		closed := make(chan struct{})
		s := newScript(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, first)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(closed)
		})
		a, err := ask(t, caller(t, form, "", s), `{"input":"x","mode":"commands"}`)
		require.NoError(t, err)
		require.Equal(t, `{"next_action":"response","usage":{"model":"large"}}`, string(a.JSON()))
		<-closed
	}
}

// A conversation of several rounds: thinking goes back as it came, and the calls with their results.
func TestThinkingGoesBackVerbatim(t *testing.T) {
	t.Parallel()
	s := newScript(t, stream(messages("tool_use",
		blockOf(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"h"}`, `{"type":"thinking_delta","thinking":"m"}`, `{"type":"signature_delta","signature":"c2ln"}`),
		blockOf(1, `{"type":"redacted_thinking","data":"b64=="}`), blockOf(2, `{"type":"text","text":""}`, textDelta(" \n")),
		blockOf(3, `{"type":"tool_use","id":"toolu_1","name":"add","input":{}}`, jsonDelta(`{"a":1}`)))),
		stream(messages("end_turn", blockOf(0, `{"type":"text","text":""}`, textDelta("done")))))
	c := caller(t, model.Anthropic, "", s)
	a, err := ask(t, c, tools)
	require.NoError(t, err)
	var next map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(tools), &next))
	state, err := json.Marshal(a.State)
	require.NoError(t, err)
	next["rounds"] = json.RawMessage(`[{"records":[{"id":"toolu_1","tool":"add","arguments":{"a":1},"status":"succeeded","result":2}],"provider_state":` + string(state) + `}]`)
	again, err := json.Marshal(next)
	require.NoError(t, err)
	a, err = ask(t, c, string(again))
	require.NoError(t, err)
	require.Equal(t, "done", a.Text)
	unmarked := func(request int) string {
		return strings.ReplaceAll(string(s.requests()[request].body), `,"cache_control":{"type":"ephemeral"}`, "")
	}
	body := unmarked(1)
	require.Contains(t, body, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"b64=="},`+
		`{"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"2"}]}`)
	require.True(t, strings.HasPrefix(body, strings.TrimSuffix(unmarked(0), "]}")))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	environment := func(name string) (string, bool) {
		return map[string]string{"BAD": "sk-a\x01b", "EMPTY": " "}[name], name != "NONE"
	}
	make := func(e model.Endpoint) error {
		e.Provider = model.OpenAI
		c, err := provider.New(&model.Config{Endpoint: e, Models: map[string]model.Entry{"a": {ID: "x"}}}, environment)
		if err == nil {
			c.Close()
		}
		return err
	}
	require.NoError(t, make(model.Endpoint{}))
	require.NoError(t, make(model.Endpoint{KeyFile: file("good", key+"\n")}))
	require.NoError(t, make(model.Endpoint{KeyFile: file("windows", "\ufeff"+key+"\r\n")}))
	for says, e := range map[string]model.Endpoint{
		"NONE, which holds the key, is not set": {KeyEnv: "NONE"}, "EMPTY": {KeyEnv: "EMPTY"}, "the variable BAD holds no key": {KeyEnv: "BAD"},
		"reading the key": {KeyFile: filepath.Join(dir, "absent")}, "holds no key": {KeyFile: file("two", key+"\n"+key)},
		"the file " + filepath.Join(dir, "long"): {KeyFile: file("long", strings.Repeat("k", 1<<20))},
	} {
		err := make(e)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, `the model "a"`)
		require.NotEmpty(t, fault.As(err).Hint, says)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
		require.NotContains(t, err.Error(), key)
		require.NotContains(t, err.Error(), "sk-a")
	}
}

// What the SDKs read of the environment by themselves counts for nothing.
func TestTheEnvironmentOfTheSDKsIsNotRead(t *testing.T) {
	other := newScript(t, stream(said("wrong")))
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"} {
		t.Setenv(name, other.URL)
	}
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_CUSTOM_HEADERS"} {
		t.Setenv(name, "X-Ambient: ambient")
	}
	for _, form := range []string{model.OpenAI, model.Anthropic} {
		s := newScript(t, status(500, ""))
		_, err := ask(t, caller(t, form, `,"key_env":""`, s), plain)
		require.Error(t, err)
		require.Len(t, s.requests(), 1)
		for name, values := range s.requests()[0].header {
			require.NotContains(t, strings.Join(values, " "), "ambient", name)
		}
	}
	require.Empty(t, other.requests())
}
