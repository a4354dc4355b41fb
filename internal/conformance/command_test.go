package conformance_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/conformance"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
)

func TestAProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	o := conformance.Options{
		Conn: natstest.Connect(t, srv),
		Host: conformance.Command{Args: []string{self}, Env: []string{asWorker + "=1", "NATS_URL=" + srv.URL()}},
		Only: []string{"drain", "redelivered", "poisoned", "claimed"},
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := conformance.Run(ctx, o)
	require.NoError(t, err)
	for _, name := range append(o.Only, "takes-steps") {
		c := find(t, r, name)
		require.Equal(t, conformance.Passed, c.Status, "%s: %s %v", name, c.Why, c.Findings)
	}
}

func TestAProgramThatEnds(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	self, err := os.Executable()
	require.NoError(t, err)
	o := conformance.Options{Conn: natstest.Connect(t, srv), Host: conformance.Command{Args: []string{self}, Env: []string{asWorker + "=1", "NATS_URL=nats://127.0.0.1:1"}}}
	began := time.Now()
	r, err := conformance.Run(t.Context(), o)
	require.NoError(t, err)
	require.False(t, r.Conforms)
	require.Less(t, time.Since(began), 10*time.Second, "a worker that has ended is not waited for")
	seen := find(t, r, "takes-steps").Findings[0].Seen
	require.Contains(t, seen, "exit status 1")
	require.Contains(t, seen, "no servers available")
	require.Equal(t, conformance.Skipped, find(t, r, "heartbeat").Status)
}

func TestWhatCannotBeDriven(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	refused := func(says string, o conformance.Options) {
		t.Helper()
		o.Conn = nc
		_, err := conformance.Run(t.Context(), o)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, says)
	}
	refused("no check", conformance.Options{Only: []string{"everything"}})
	refused("at least 1s", conformance.Options{Lease: time.Millisecond})
	refused("no tool name", conformance.Options{Tool: "a b"})
	refused("starting the worker", conformance.Options{Host: conformance.Command{Args: []string{"/there/is/no/such/program"}}})

	orch, err := orchestrator.New(natstest.Connect(t, srv), orchestrator.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- orch.Run(ctx) }()
	<-orch.Ready()
	refused("an orchestrator works on this server", conformance.Options{})
	cancel()
	require.NoError(t, <-done)
}
