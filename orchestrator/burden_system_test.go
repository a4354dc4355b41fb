//go:build !race

// It compares how long small runs take, which the race detector makes ten times as long: "make test-pure" runs it
// without.

package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// heavy is a plan whose n items have 800 kB of arguments each.
func heavy(n int) string {
	list := strings.TrimSuffix(strings.Repeat("1,", n), ",")
	return `{"steps":[{"id":"big","tool":"big","arguments":{"Bytes":800000}},
		{"id":"all","tool":"heavy","for_each":{"in":[` + list + `]},"arguments":{"n":"$ref:item","text":"$ref:big.text"}},
		{"id":"beside","tool":"echo","arguments":{"small":"$ref:big.n"}}]}`
}

// TestBytesOutAreBounded has runs of many large items beside small ones of another tenant, first while nothing of the
// large ones is decided, then while they go on.
func TestBytesOutAreBounded(t *testing.T) {
	s := start(t, func(c *orchestrator.Config) { c.Store.AckWait = time.Minute })
	gate := make(chan struct{})
	w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: "strong", Logger: logger(t), Slots: 8})
	require.NoError(t, err)
	def := &tool.Definition{Name: "heavy", Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 1024, TimeoutMS: patient.TimeoutMS}}
	require.NoError(t, w.HandleRaw(def, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
		select {
		case <-gate:
			return worker.Output{Body: []byte("1")}, nil
		case <-ctx.Done():
			return worker.Output{}, context.Cause(ctx)
		}
	}))
	s.background(w.Run, w.Ready())
	other, err := client.New(context.Background(), s.nc, client.Config{Tenant: "other", Logger: logger(t)})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	small := func(kind string, n int) time.Duration {
		var took []time.Duration
		for i := range n {
			began := time.Now()
			o, err := other.Run(ctx(t), []byte(`{"steps":[{"id":"a","tool":"echo","arguments":{}},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}}]}`), client.SubmitOptions{Run: fmt.Sprint(kind, i)})
			require.NoError(t, err)
			require.Equal(t, outcome.Succeeded, o.Status)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%s: p50 %s, most %s", kind, took[n/2], took[n-1])
		return took[n/2]
	}
	alone := small("alone", 30)

	const runs, items = 6, 50
	var large []*client.Run
	for i := range runs {
		large = append(large, s.submit(heavy(items), fmt.Sprint("large", i)))
	}
	out := func() (n int) {
		for p := range subjects.Partitions {
			ids, err := s.store.Queue.Pending(ctx(t), 0, p)
			require.NoError(t, err)
			for id := range ids {
				if strings.Contains(id, "/all=") { // small steps come and go
					n++
				}
			}
		}
		return n
	}
	const most = (64<<20)/800_000 + 1 // of the tenant, each with a few bytes more
	require.Eventually(t, func() bool { return out() >= most-5 }, patience, 20*time.Millisecond, "%d are out", out())
	require.Eventually(t, func() bool {
		doc, err := s.client.Get(ctx(t), "large0")
		return err == nil && doc.Steps[2].Status == outcome.StepSucceeded
	}, patience, 20*time.Millisecond, "what is small waits for no bytes")
	small("while the large ones wait ", 30)
	require.LessOrEqual(t, out(), most)
	doc, err := s.client.Get(ctx(t), "large0")
	require.NoError(t, err)
	require.Contains(t, doc.Steps[1].Items[items-1].Waiting, "MiB of arguments of this ")

	close(gate)
	beside := small("while the large ones go on ", 30)
	require.Less(t, beside, 20*alone+3*time.Second)
	for _, r := range large {
		require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	}
}
