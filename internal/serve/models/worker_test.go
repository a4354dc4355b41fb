package models

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/worker"
)

const key = "sk-test-0123456789abcdef"

const answer = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"the Aare"},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":31,"completion_tokens":6}}` + "\n\ndata: [DONE]\n\n"

// everything is what leaves a process: what it logs, and what it says to NATS.
type everything struct {
	nc *nats.Conn
	mu sync.Mutex
	b  bytes.Buffer
}

func (e *everything) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.Write(b)
}

// text is all that was said before it is called.
func (e *everything) text(t *testing.T) (all string) {
	t.Helper()
	require.NoError(t, e.nc.Publish("so.far", nil))
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		all = e.b.String()
		return strings.Contains(all, "so.far")
	}, time.Minute, time.Millisecond)
	return all
}

// world is a Stepjet whose workers host the model of a server, and all that was said.
func world(t *testing.T, workers int, more string, serve http.HandlerFunc) (*client.Client, *everything) {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	keys := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keys, []byte(key), 0o600))
	said := &everything{}
	s := stepjettest.New(t, stepjettest.Logger(slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	said.nc = nc
	_, err = nc.Subscribe(">", func(m *nats.Msg) { _, _ = fmt.Fprintf(said, "%s %v %s\n", m.Subject, m.Header, m.Data) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	for range workers {
		f, err := parse(fmt.Appendf(nil, `{"tools":[{"name":"model","model":{"provider":"openai","base_url":%q,"key_file":%q,
			"models":{"small":{"id":"m","input_usd":1,"output_usd":2%s}}}}]}`, srv.URL, keys, more), nil)
		require.NoError(t, err)
		t.Cleanup(f.close)
		rates := &shared{nc: nc}
		t.Cleanup(rates.close)
		s.Host(func(w *worker.Worker) {
			require.NoError(t, f.register(w, rates, slog.New(slog.NewTextHandler(said, nil))))
		})
	}
	return s.Client(), said
}

func run(t *testing.T, c *client.Client, steps ...string) *outcome.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := c.Run(ctx, []byte(`{"steps":[`+strings.Join(steps, ",")+`]}`), client.SubmitOptions{})
	require.NoError(t, err)
	return out
}

const step = `{"id":"ask","tool":"model","arguments":{"instructions":"Be short.","input":"Which river flows through Bern?"}}`

func TestAStepAsksAModel(t *testing.T) {
	t.Parallel()
	c, said := world(t, 1, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	out := run(t, c, step, `{"id":"up","tool":"model","arguments":{"input":"Again: $ref:ask.text"}}`)
	require.Equal(t, outcome.Succeeded, out.Status, "%v", out.Errors)
	got, ok := out.Results.Get("ask")
	require.True(t, ok)
	require.JSONEq(t, `{"text":"the Aare","usage":{"model":"small","input_tokens":31,"output_tokens":6,"cost_usd":0.000043}}`, string(got))
	all := said.text(t)
	require.False(t, strings.Contains(all, key), "the key is out")
	require.True(t, strings.Contains(all, "the Aare"), "what is looked through is what was said")
}

// A key that a provider refuses, and echoes in each way it can, is nowhere in what leaves the process.
func TestAKeyIsInNothingThatLeaves(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]http.HandlerFunc{
		"401": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"invalid_api_key"}}`, r.Header.Get("Authorization"))
		},
		"400": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, "<html>%v</html>", r.Header)
		},
		"stream": func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "data: {\"error\":{\"message\":%q,\"code\":\"content_policy\"}}\n\n", fmt.Sprint(r.Header))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, said := world(t, 1, "", serve)
			out := run(t, c, step)
			require.Equal(t, outcome.Failed, out.Status)
			require.Equal(t, fault.ToolTerminal, out.Errors[0].Code)
			require.NotEmpty(t, out.Errors[0].Hint)
			all := said.text(t) + string(out.JSON())
			require.False(t, strings.Contains(all, key[8:]), "the key is out")
			require.True(t, strings.Contains(all, "tool_terminal"))
		})
	}
}

// A step that was told to wait holds no slot: others are answered in between.
func TestAStepThatWaitsHoldsNoSlot(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	c, _ := world(t, 1, "", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("Bern")) && calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	started := time.Now()
	other := make(chan time.Duration, 1)
	go func() {
		out, err := c.Run(context.Background(), []byte(`{"steps":[{"id":"a","tool":"model","arguments":{"input":"quick"}}]}`), client.SubmitOptions{})
		if err == nil && out.Status == outcome.Succeeded {
			other <- time.Since(started)
		}
		close(other)
	}()
	out := run(t, c, step)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.EqualValues(t, 2, calls.Load())
	require.GreaterOrEqual(t, time.Since(started), 2*time.Second)
	took, ok := <-other
	require.True(t, ok)
	require.Less(t, took, 2*time.Second)
}

// A model that writes slowly keeps its lease, which is 5 s here, though it is silent for longer than that in between: nobody
// else is handed the step, and the model is asked once.
func TestASlowStreamKeepsItsLease(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	c, _ := world(t, 2, "", func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		for _, part := range strings.SplitAfter(answer, "\n\n") {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(6 * time.Second):
			case <-r.Context().Done():
				return
			}
		}
	})
	out := run(t, c, step)
	require.Equal(t, outcome.Succeeded, out.Status, "%v", out.Errors)
	require.GreaterOrEqual(t, float64(out.Stats.ElapsedMS), 12_000.0)
	require.EqualValues(t, 1, calls.Load())
}

// Four workers ask one model that takes ten calls at once and ten a second from then on, and knows of no more. Without a
// rate of their own most of forty calls would be refused; with it each waits once, in turn, and none is.
func TestWorkersShareARate(t *testing.T) {
	t.Parallel()
	const calls, burst = 40, 10
	var mu sync.Mutex
	var begun []time.Time
	c, said := world(t, 4, `,"rpm":600,"tpm":60000000`, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		begun = append(begun, time.Now())
		mu.Unlock()
		// what the provider says is left: the workers' own minute's worth would let all in at once
		w.Header().Set("X-Ratelimit-Remaining-Requests", "0")
		_, _ = io.WriteString(w, answer)
	})
	var steps []string
	for i := range calls {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"model","arguments":{"input":"%d"}}`, i, i))
	}
	out := run(t, c, `{"id":"first","tool":"model","arguments":{"input":"x"}}`)
	require.Equal(t, outcome.Succeeded, out.Status)
	out = run(t, c, steps...)
	require.Equal(t, outcome.Succeeded, out.Status, "%v", out.Errors)
	require.Len(t, begun, calls+1)
	for i := burst; i < len(begun); i++ {
		// What a busy machine shifts comes later, never sooner.
		require.Greater(t, begun[i].Sub(begun[0]), time.Duration(i-burst)*time.Second/10, "call %d", i)
	}
	all := said.text(t)
	require.True(t, strings.Contains(all, "model_waits"))
	require.False(t, strings.Contains(all, "can't be kept to"))
}

// A worker that may not read or write the bucket asks all the same, and says so.
func TestWithoutTheBucketModelsAreAskedAllTheSame(t *testing.T) {
	t.Parallel()
	c, said := world(t, 1, `,"rpm":1`, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	js, err := said.nc.JetStream()
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream("KV_rates"))
	out := run(t, c, step, `{"id":"b","tool":"model","arguments":{"input":"x"}}`)
	require.Equal(t, outcome.Succeeded, out.Status, "%v", out.Errors)
	require.True(t, strings.Contains(said.text(t), "can't be kept to"))
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{}`: "/tools: there is none", `{"tools":[{"name":"a b","model":{}}]}`: "/tools/0/name",
		`{"tools":[{"name":"a","model":{"provider":"x","models":{"m":{"id":""}}}}]}`: "/tools/0/model/models/m/id", `[`: "unexpected",
		`{"tools":[{"name":"a","model":{"provider":"openai","models":{"m":{"id":"x"}}}},{"name":"a","model":{}}]}`: "/tools/1/name",
		`{"tools":[{"name":"a","key":"sk-1"}]}`: `unknown field "key"`,
	} {
		path := filepath.Join(t.TempDir(), "models.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := load(path, nil)
		require.ErrorContains(t, err, says, text)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
		require.NotContains(t, err.Error(), "sk-1")
	}
	path := filepath.Join(t.TempDir(), "models.json")
	require.NoError(t, os.WriteFile(path, []byte("\ufeff"+`{"tools":[{"name":"a","model":{"provider":"openai","key_env":"K","models":{"m":{"id":"x"}}}}]}`), 0o600))
	_, err := load(path, func(string) (string, bool) { return "", false })
	require.ErrorContains(t, err, `the tool "a": the model "m": the environment variable K, which holds the key, is not set`)
	require.Contains(t, fault.As(err).Hint, "leave key_env out", "what is said of a key is told on")
	f, err := load(path, func(string) (string, bool) { return "k", true })
	require.NoError(t, err)
	f.close()
	_, err = load("absent.json", nil)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

// The page's file is one.
func TestTheFileOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/models.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(rest, "```")
	t.Setenv("OPENAI_API_KEY", key)
	f, err := parse([]byte(text), nil)
	require.NoError(t, err)
	defer f.close()
	var any map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &any))
	require.Len(t, f.tools, 1)
}
