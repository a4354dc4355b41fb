package orchestrator_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// TestAPlannerIsToldWhatTimeIsLeft when its round begins, by the records: who takes the run over tells it the same. Its agent
// may ask how long it has run, and which models have answered.
func TestAPlannerIsToldWhatTimeIsLeft(t *testing.T) {
	t.Parallel()
	s := start(t)
	const took = 60 * time.Millisecond
	s.host("slow", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		time.Sleep(took) // what is measured
		return worker.Output{Body: []byte(`1`)}, nil
	})
	x := s.plays("planner",
		`{"usage":{"model":"small","input_tokens":10,"output_tokens":1},"steps":[{"id":"s","tool":"slow"},{"id":"open","tool":"process"}]}`,
		`{"usage":{"input_tokens":20,"output_tokens":2,"cost_usd":0.5},"steps":[{"id":"gate","tool":"gate"},{"id":"how","tool":"process_status","depends_on":["gate"]},{"id":"who","tool":"process_models","depends_on":["gate"]},
			{"id":"all","value":{"how":"$ref:how.ms","who":"$ref:who"}}],"output":"$ref:all"}`)
	s.agent("hurried", "", `{"planner":{"tool":"planner","model":"large","mode":"plan"},"tools":["slow","process","gate"],"budget":{"time":"10m"}}`)
	put, err := s.store.Registry.Tool(ctx(t), "hurried")
	require.NoError(t, err)
	require.Contains(t, put.Needs, wire.AgentTime)
	r := s.submit(`{"steps":[{"id":"a","tool":"hurried"}]}`, "hurried")
	<-s.tools.begun
	s.orchestrator()
	s.leave()
	close(s.tools.gate)
	o := s.wait(r)
	left := func(round int) (ms int64) {
		var b struct {
			MS int64 `json:"time_ms"`
		}
		require.NoError(t, json.Unmarshal(x.asked[round]["budget"], &b))
		return b.MS
	}
	const all = int64(10 * time.Minute / time.Millisecond)
	require.Equal(t, all, left(0))
	require.LessOrEqual(t, left(1), all-took.Milliseconds())
	require.Greater(t, left(1), all/2)
	var said struct {
		How int64
		Who json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(result(t, o, "a")), &said), "%s", o.JSON())
	require.InDelta(t, all-left(1), said.How, 1, "both are of the record by which the round began")
	require.JSONEq(t, `[{"model":"small","answers":1,"tokens":11,"cost_usd":0},{"model":"large","answers":1,"tokens":22,"cost_usd":0.5}]`, string(said.Who))
}
