package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestWaitingRunsHoldNothingUp has runs wait in every part of the ledger while many others come and go. Of these nothing
// stays, and no request is made for it that costs the more the more lies there.
func TestWaitingRunsHoldNothingUp(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Grace = time.Second })
	var filters atomic.Int64
	_, err := s.nc.Subscribe(subjects.StreamRequest("PURGE", subjects.LedgerStream(0)), func(m *nats.Msg) {
		var p struct{ Filter string }
		if _ = json.Unmarshal(m.Data, &p); !subjects.Literal(p.Filter) {
			filters.Add(1)
		}
	})
	require.NoError(t, err)
	const waiting, short = 80, 1500
	var runs []*client.Run
	for i := range waiting {
		runs = append(runs, s.submit(`{"steps":[{"id":"a","tool":"echo"},{"id":"g","tool":"gate","depends_on":["a"]}]}`, fmt.Sprint("waits", i)))
	}
	var all sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= short; i = next.Add(1) {
				o, err := s.client.Run(ctx(t), []byte(`{"steps":[{"id":"a","tool":"echo"}]}`), client.SubmitOptions{Run: fmt.Sprint("short", i)})
				if err != nil || o.Status != outcome.Succeeded {
					t.Errorf("short%d: %v %v", i, o, err)
				}
			}
		})
	}
	all.Wait()
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := js.StreamInfo(subjects.LedgerStream(0))
		require.NoError(t, err)
		return info.State.Msgs == 3*waiting // plan, start and a
	}, patience, 50*time.Millisecond)
	require.Zero(t, filters.Load())
	close(s.tools.gate)
	for _, r := range runs {
		require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	}
	s.emptyLedger()
}
