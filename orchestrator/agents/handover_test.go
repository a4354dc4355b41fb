package agents_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/tool"
)

// TestStepsAreTakenInTheOrderThatTheyNeed: steps that are handed over with each before what it refers to begin all the same, and cost
// what they cost in order. Where each had to be gone through once more for each other, 48 of them cost fourteen times as much.
func TestStepsAreTakenInTheOrderThatTheyNeed(t *testing.T) { //nolint:paralleltest // it counts bytes
	const calls = 48
	var chain []json.RawMessage
	for i := range calls {
		refers := []string{`"arguments":{"n":1}`, `"arguments":{"n":"$ref:s%d.n"}`, `"depends_on":["s%d"]`}[min(i, 1+i%2)]
		if i > 0 {
			refers = fmt.Sprintf(refers, i-1)
		}
		chain = append(chain, json.RawMessage(fmt.Sprintf(`{"id":"s%d","tool":"find",%s}`, i, refers)))
	}
	took := func(steps []json.RawMessage) uint64 {
		l := &agents.Loop{Definition: define(t, `"tools":["find"],"stream_plan":true`), Rounds: []*agents.Round{{}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		over, err := agents.HandOver(l, nil, steps, map[string]*tool.Contract{"find": {MaxAttempts: 1}})
		runtime.ReadMemStats(&after)
		require.Nil(t, err)
		require.Empty(t, over.Reply.Held)
		require.Len(t, over.Add, calls)
		return after.TotalAlloc - before.TotalAlloc
	}
	_ = took(chain)
	in := took(chain)
	slices.Reverse(chain)
	reversed := took(chain)
	t.Logf("%d bytes in order, %d reversed", in, reversed)
	require.Less(t, reversed, in*3/2)
}
