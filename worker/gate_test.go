package worker

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

// What the worker with the closed gate doesn't take, the other one does, and the other way round once the gates have
// changed; a gate that both its tools share is of both.
func TestAClosedGateLeavesStepsToOthers(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var gates [2]Gate
	gates[1].Close()
	names := [2]string{"w0", "w1"}
	for i := range gates {
		w.worker(Config{Name: names[i]}, func(worker *Worker) {
			for _, name := range []string{"one", "two"} {
				require.NoError(t, worker.HandleRaw(&tool.Definition{Name: name},
					func(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }, Gated(&gates[i])))
			}
		})
	}
	for round, open := range []int{0, 1, 0, 1} {
		for range 5 {
			for _, name := range []string{"one", "two"} {
				require.Equal(t, names[open], w.run(name, `{}`).Worker, "round %d", round)
			}
		}
		next := 1 - open
		gates[next].Open()
		gates[open].Close()
		require.True(t, gates[open].Closed())
		gates[open].Close() // again is nothing
	}
}

func TestAGateIsNotForBatches(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	worker, err := New(w.nc, Config{})
	require.NoError(t, err)
	def := &tool.Definition{Name: "b", Orchestration: &tool.Orchestration{Batch: &tool.Batch{Argument: "items", MaxItems: 2}}}
	err = worker.HandleRaw(def, func(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }, Gated(&Gate{}))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	require.ErrorContains(t, err, "gate")
}

func TestAHandlerKeepsBytes(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	picture := []byte{0x89, 'P', 'N', 'G', 0xff, 0}
	w.worker(Config{}, func(worker *Worker) {
		require.NoError(t, worker.HandleRaw(&tool.Definition{Name: "draw"},
			func(ctx context.Context, _ json.RawMessage) (Output, error) {
				h, err := Keep(ctx, picture)
				if err != nil {
					return Output{}, err
				}
				body, err := json.Marshal(h)
				return Output{Body: body}, err
			}))
	})
	var h outcome.Handle
	require.NoError(t, json.Unmarshal(w.run("draw", `{}`).Body, &h))
	data, err := w.store.Archive.Blob(w.ctx(), &h)
	require.NoError(t, err)
	require.Equal(t, picture, data)
	_, err = Keep(context.Background(), picture)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}
