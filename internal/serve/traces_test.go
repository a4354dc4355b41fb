package serve_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
)

// spans is a collector of OpenTelemetry's: it takes what programs send to it, by id.
type spans struct {
	url string
	mu  sync.Mutex
	by  map[string]*tracepb.Span
	of  map[string]string // which program sent it
}

func collect(t *testing.T) *spans {
	t.Helper()
	s := &spans{by: map[string]*tracepb.Span{}, of: map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		m, bad := decoded(r.Header.Get("Content-Type"), raw)
		if err != nil || r.URL.Path != "/v1/traces" || bad != nil {
			http.Error(w, "no spans", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, of := range m.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				if a.Key == "service.name" {
					for _, scope := range of.ScopeSpans {
						for _, x := range scope.Spans {
							id := hex.EncodeToString(x.SpanId)
							s.by[id], s.of[id] = x, a.Value.GetStringValue()
						}
					}
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// decoded reads what was sent, by Go's exporter or by JavaScript's, whose JSON has ids in hex.
func decoded(form string, raw []byte) (*collector.ExportTraceServiceRequest, error) {
	var m collector.ExportTraceServiceRequest
	if form != "application/json" {
		return &m, proto.Unmarshal(raw, &m)
	}
	ids := regexp.MustCompile(`"(?:traceId|spanId|parentSpanId)":"([0-9a-f]+)"`)
	raw = ids.ReplaceAllFunc(raw, func(field []byte) []byte {
		digits := ids.FindSubmatch(field)[1]
		id, _ := hex.DecodeString(string(digits))
		return bytes.Replace(field, digits, []byte(base64.StdEncoding.EncodeToString(id)), 1)
	})
	return &m, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(raw, &m)
}

// named returns the spans of a name.
func (s *spans) named(name string) (all []*tracepb.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.by {
		if x.Name == name {
			all = append(all, x)
		}
	}
	return all
}

// from returns the names of the programs whose spans stand from this one up to the root, and the root's parent.
func (s *spans) from(x *tracepb.Span) (programs []string, parent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		programs = append(programs, s.of[hex.EncodeToString(x.SpanId)])
		parent = hex.EncodeToString(x.ParentSpanId)
		if s.by[parent] == nil {
			return programs, parent
		}
		x = s.by[parent]
	}
}

// TestOneTraceAcrossADeath: the owner of a run dies in its middle, another ends it, and what all of them did is one
// tree below the span of who submitted it.
func TestOneTraceAcrossADeath(t *testing.T) {
	t.Parallel()
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	to := collect(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + to.url, "OTEL_BSP_SCHEDULE_DELAY=50"}
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	folder := t.TempDir()
	begun, proceed := filepath.Join(folder, "begun"), filepath.Join(folder, "go")
	tools := filepath.Join(folder, "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(
		`{"tools":[{"name":"quick","exec":{"argv":["/bin/echo","1"]}},
		{"name":"slow","exec":{"argv":["/bin/sh","-c","echo > `+begun+`; while [ ! -e `+proceed+` ]; do sleep 0.05; done; echo 2"]}}]}`), 0o600))
	first := startWith(t, env, "orchestrator", srv.URL(), "--health", "127.0.0.1:0")
	hosting := startWith(t, env, "toolworker", srv.URL(), "--tools", tools, "--health", "127.0.0.1:0")
	hosting.says("msg=ready")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	run, err := c.Submit(ctx, []byte(`{"steps":[{"id":"a","tool":"quick"},{"id":"b","tool":"slow","depends_on":["a"]},{"id":"c","tool":"quick","depends_on":["b"]}]}`),
		client.SubmitOptions{Header: nats.Header{"traceparent": {"00-" + trace + "-" + caller + "-01"}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, 2*time.Minute, 5*time.Millisecond)
	require.NoError(t, first.cmd.Process.Kill())
	<-first.done
	startWith(t, env, "orchestrator", srv.URL(), "--health", "127.0.0.1:0").says("msg=ready")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	end, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, end.Status)

	require.Eventually(t, func() bool {
		return len(to.named("execute_tool quick")) == 2 && len(to.named("execute_tool slow")) == 1 && len(to.named("invoke_workflow")) == 1 &&
			len(to.named("step quick")) == 2 && len(to.named("step slow")) == 1
	}, 2*time.Minute, 20*time.Millisecond)
	for _, tool := range []string{"quick", "slow"} {
		for _, x := range to.named("execute_tool " + tool) {
			require.Equal(t, trace, hex.EncodeToString(x.TraceId))
			programs, above := to.from(x)
			require.Equal(t, []string{"stepjet-toolworker", "stepjet-toolworker", "stepjet-orchestrator", "stepjet-orchestrator"}, programs)
			require.Equal(t, caller, above)
		}
	}
}

// TestAShareOfRunsIsTraced: what an orchestrator is told of its share reaches runs that come without a traceparent, and
// their steps, through the whole program.
func TestAShareOfRunsIsTraced(t *testing.T) {
	t.Parallel()
	to := collect(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + to.url, "OTEL_BSP_SCHEDULE_DELAY=50"}
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	startWith(t, env, "orchestrator", srv.URL(), "--health", "127.0.0.1:0", "--trace-share", "1").says("msg=ready")
	startWith(t, env, "toolworker", srv.URL(), "--health", "127.0.0.1:0").says("msg=ready")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	run, err := c.Submit(ctx, []byte(`{"steps":[{"id":"a","tool":"echo","arguments":{}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	end, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, end.Status)
	require.Eventually(t, func() bool {
		return len(to.named("execute_tool echo")) == 1 && len(to.named("step echo")) == 1 && len(to.named("invoke_workflow")) == 1
	}, 2*time.Minute, 20*time.Millisecond)
	programs, above := to.from(to.named("execute_tool echo")[0])
	require.Equal(t, []string{"stepjet-toolworker", "stepjet-toolworker", "stepjet-orchestrator", "stepjet-orchestrator"}, programs)
	require.Equal(t, "", above)
}
