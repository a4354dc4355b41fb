package models

import (
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
	"github.com/stepjet/stepjet/internal/lab/modelscript"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// TestWhatAModelWritesBegins while it goes on writing, in both forms and both modes: a tool has begun before the model's answer is over, is
// called once, and the agent comes to the same as without. It says how many milliseconds that was worth.
func TestWhatAModelWritesBegins(t *testing.T) {
	t.Parallel()
	query := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"query":"what the tide tables of the North Sea say about week %d, hour by hour"}`, n, n)
	}
	var calls []modelscript.Call
	var steps []string
	for n := range 4 {
		calls = append(calls, modelscript.Call{ID: fmt.Sprint("call_", n), Tool: "find", Arguments: query(n)})
		steps = append(steps, fmt.Sprintf(`{"id":"call_%d","tool":"find","arguments":%s}`, n, query(n)))
	}
	turns := map[string][]modelscript.Turn{
		"tools": {{Text: "I look.", Calls: calls}, {Text: "All is there."}},
		"plan":  {{Text: `{"steps":[` + strings.Join(steps, ",") + `]}`}, {Text: `{"output":"All is there."}`}},
	}
	for _, provider := range []string{"openai", "anthropic"} {
		for mode, script := range turns {
			t.Run(provider+" "+mode, func(t *testing.T) {
				t.Parallel()
				model := modelscript.Start(10*time.Millisecond, script...)
				t.Cleanup(model.Close)
				url := model.URL
				if provider == "openai" {
					url += "/v1"
				}
				var made atomic.Int64
				c := modelled(t, provider, url, `"small":{"id":"m"}`, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
					made.Add(1)
					var in struct{ N time.Duration }
					if err := json.Unmarshal(args, &in); err != nil {
						return worker.Output{}, err
					}
					select {
					case <-time.After((4 - in.N) * 250 * time.Millisecond): // the first takes longest
					case <-ctx.Done():
					}
					return worker.Output{Body: args}, nil
				})
				took := map[bool]time.Duration{}
				for _, streams := range []bool{false, true} {
					made.Store(0)
					o, doc := played(t, c, fmt.Sprintf(`{"planner":{"tool":"model","model":"small","mode":%q},"tools":["find"],"stream_plan":%t}`, mode, streams))
					got, _ := o.Results.Get("a")
					require.JSONEq(t, `"All is there."`, string(got), "%s", o.JSON())
					require.EqualValues(t, 4, made.Load(), "each call is made once")
					early := 0
					var planner time.Time
					for _, st := range doc.Steps[0].Steps {
						if st.ID == "a/=0/=plan" {
							planner = st.Ended
						}
						if strings.HasPrefix(st.ID, "a/=0/call_") && st.Started.Before(planner) {
							early++
						}
					}
					require.Equal(t, map[bool]int{true: 3, false: 0}[streams], min(early, 3), "%d calls had begun before the model was done", early)
					took[streams] = doc.Steps[0].Decided.Sub(doc.Steps[0].Ready)
				}
				t.Logf("%s, mode %s: %d ms, and %d ms where steps begin while it writes: %d ms won", provider, mode, took[false].Milliseconds(), took[true].Milliseconds(), (took[false] - took[true]).Milliseconds())
			})
		}
	}
}

// modelled runs a Stepjet with a model and one tool.
func modelled(t *testing.T, provider, url, models string, find func(context.Context, json.RawMessage) (worker.Output, error)) *client.Client {
	t.Helper()
	c, _ := connected(t, provider, url, models, find)
	return c
}

// connected is modelled, with a connection to its server.
func connected(t *testing.T, provider, url, models string, find func(context.Context, json.RawMessage) (worker.Output, error)) (*client.Client, *nats.Conn) {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keys, []byte(key), 0o600))
	s := stepjettest.New(t)
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	f, err := parse(fmt.Appendf(nil, `{"tools":[{"name":"model","model":{"provider":%q,"base_url":%q,"key_file":%q,"models":{%s}}}]}`, provider, url, keys, models), nil)
	require.NoError(t, err)
	t.Cleanup(f.close)
	rates := &shared{nc: nc}
	t.Cleanup(rates.close)
	s.Host(func(w *worker.Worker) {
		require.NoError(t, f.register(w, rates, slog.New(slog.NewTextHandler(io.Discard, nil))))
		require.NoError(t, w.HandleRaw(&tool.Definition{Name: "find"}, find))
	})
	return s.Client(), nc
}

// played runs an agent of its own.
func played(t *testing.T, c *client.Client, agent string) (*outcome.Outcome, *outcome.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o, err := c.Run(ctx, []byte(`{"steps":[{"id":"a","agent":`+agent+`}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	doc, err := c.Get(ctx, o.Run)
	require.NoError(t, err)
	return o, doc
}

// TestAModelThatBreaksOff in mid-answer, of which a call has begun: no other model is asked in the same attempt, whose answer would not have
// that call. The next attempt is told of it, and the call is not made again.
func TestAModelThatBreaksOff(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, string(body))
		n := len(asked)
		mu.Unlock()
		if n > 1 {
			_, _ = io.WriteString(w, answer)
			return
		}
		for i, call := range []string{`{\"n\":1}`, `{\"n\"`} {
			_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"call_%d","function":{"name":"find","arguments":"%s"}}]},"finish_reason":null}]}`+"\n\n", i, i, call)
		}
		_ = http.NewResponseController(w).Flush()
		<-begun
		panic(http.ErrAbortHandler) // it breaks off
	}))
	t.Cleanup(srv.Close)
	var made atomic.Int64
	c := modelled(t, "openai", srv.URL, `"small":{"id":"m","fallback":["other"]},"other":{"id":"o"}`, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		if made.Add(1) == 1 {
			close(begun)
		}
		return worker.Output{Body: args}, nil
	})
	o, _ := played(t, c, `{"planner":{"tool":"model","model":"small","mode":"tools"},"tools":["find"],"stream_plan":true}`)
	got, _ := o.Results.Get("a")
	require.JSONEq(t, `"the Aare"`, string(got), "%s", o.JSON())
	require.EqualValues(t, 1, made.Load())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, asked, 2)
	for _, body := range asked {
		require.Contains(t, body, `"model":"m"`)
	}
	require.NotContains(t, asked[0], "broke off")
	require.Contains(t, asked[1], "Calls that began while an answer was written that broke off")
	require.Contains(t, asked[1], `call_0`)
}
