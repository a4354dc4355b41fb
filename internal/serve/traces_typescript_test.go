//go:build typescript

package serve_test

import (
	"context"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	ofclients "github.com/stepjet/stepjet/observe/spans"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

// TestOneTraceToAWorkerInTypeScript: a client in Go, two orchestrators of which the first is killed in the middle of the
// run, a toolworker and the example's worker in TypeScript, each a process, make one tree of spans. "make typescript"
// builds the worker and runs this.
func TestOneTraceToAWorkerInTypeScript(t *testing.T) {
	t.Parallel()
	to := collect(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + to.url, "OTEL_BSP_SCHEDULE_DELAY=50"}
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	folder := t.TempDir()
	begun, proceed := filepath.Join(folder, "begun"), filepath.Join(folder, "go")
	tools := filepath.Join(folder, "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(
		`{"tools":[{"name":"slow","exec":{"argv":["/bin/sh","-c","echo > `+begun+`; while [ ! -e `+proceed+` ]; do sleep 0.05; done; echo 2"]}}]}`), 0o600))
	first := startWith(t, env, "orchestrator", srv.URL(), "--health", "127.0.0.1:0")
	first.says("msg=ready")
	startWith(t, env, "toolworker", srv.URL(), "--tools", tools, "--health", "127.0.0.1:0").says("msg=ready")
	node := exec.Command("node", "../../examples/typescript/dist/worker.js")
	node.Env = append(append(os.Environ(), env...), "NATS_URL="+srv.URL())
	node.Stderr = os.Stderr
	require.NoError(t, node.Start())
	t.Cleanup(func() { _ = node.Process.Kill() })

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to.url+"/v1/traces"))
	require.NoError(t, err)
	p := sdk.NewTracerProvider(sdk.WithBatcher(out), sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "client"))))
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{Observer: ofclients.New(p)})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		known, err := c.Tools(ctx)
		return err == nil && slices.ContainsFunc(known, func(x tool.Registered) bool { return x.Name == "conformance" })
	}, 2*time.Minute, 20*time.Millisecond, "the worker in TypeScript has not registered its tool")
	traced, caller := p.Tracer("test").Start(ctx, "caller")
	run, err := c.Submit(ctx, []byte(`{"steps":[{"id":"a","tool":"conformance","arguments":{"echo":1}},{"id":"b","tool":"slow","depends_on":["a"]},
		{"id":"c","tool":"conformance","arguments":{"echo":"$ref:b"}},{"id":"d","tool":"conformance","arguments":{"fail":"secret"}}]}`),
		client.SubmitOptions{Header: nats.Header(ofclients.Header(traced))})
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, 2*time.Minute, 5*time.Millisecond)
	require.NoError(t, first.cmd.Process.Kill())
	<-first.done
	startWith(t, env, "orchestrator", srv.URL(), "--health", "127.0.0.1:0").says("msg=ready")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	end, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, end.Status)
	caller.End()
	c.Close()
	require.NoError(t, p.Shutdown(ctx))
	require.NoError(t, node.Process.Signal(syscall.SIGTERM)) // it sends what waits
	require.NoError(t, node.Wait())

	require.Eventually(t, func() bool {
		return len(to.named("step conformance")) == 3 && len(to.named("execute_tool slow")) == 1 && len(to.named("step slow")) == 1
	}, 2*time.Minute, 20*time.Millisecond)
	root := caller.SpanContext()
	require.Len(t, to.named("caller"), 1)
	all := to.named("execute_tool conformance")
	require.Len(t, all, 3)
	failed := 0
	for _, x := range append(all, to.named("execute_tool slow")...) {
		require.Equal(t, root.TraceID().String(), hex.EncodeToString(x.TraceId))
		of := "stepjet-node"
		if x.Name == "execute_tool slow" {
			of = "stepjet-toolworker"
		}
		programs, above := to.from(x)
		require.Equal(t, []string{of, of, "stepjet-orchestrator", "stepjet-orchestrator", "client"}, programs)
		require.Equal(t, "", above, "the caller's span is the root")
		if x.Status.GetMessage() == "tool_failed" {
			failed++
		}
		require.NotContains(t, x.String(), "secret")
	}
	require.Equal(t, 1, failed)
	sent := to.named("send plan.submit")
	require.Len(t, sent, 1)
	require.Equal(t, root.SpanID().String(), hex.EncodeToString(sent[0].ParentSpanId))
}
