package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestFairFigures(t *testing.T) {
	if os.Getenv("FAIR") == "" {
		t.Skip()
	}
	srv := natstest.Start(t)
	orc, err := orchestrator.New(natstest.Connect(t, srv), orchestrator.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go orc.Run(ctx)
	<-orc.Ready()
	w, err := worker.New(natstest.Connect(t, srv), worker.Config{Slots: 256})
	require.NoError(t, err)
	for name, x := range map[string]struct {
		limit int
		d     time.Duration
	}{"noop": {4096, 0}, "five64": {64, 5 * time.Millisecond}, "fifty8": {8, 50 * time.Millisecond}} {
		require.NoError(t, w.HandleRaw(&tool.Definition{Name: name, Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: x.limit}},
			func(_ context.Context, args json.RawMessage) (worker.Output, error) {
				time.Sleep(x.d)
				return worker.Output{Body: args}, nil
			}))
	}
	go w.Run(ctx)
	<-w.Ready()
	small, err := client.New(ctx, natstest.Connect(t, srv), client.Config{Tenant: "small"})
	require.NoError(t, err)
	huge, err := client.New(ctx, natstest.Connect(t, srv), client.Config{Tenant: "huge"})
	require.NoError(t, err)
	for _, name := range []string{"noop", "five64", "fifty8"} {
		n := 300
		if name == "fifty8" {
			n = 60
		}
		f, err := fairness(ctx, small, huge, name, n)
		require.NoError(t, err)
		fmt.Printf("%+v ratio %.2f\n", f, f.Ratio())
	}
	cancel()
}
