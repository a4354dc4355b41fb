package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/wire"
)

func TestRoundForms(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]wire.Round{
		"round": {
			Fragment: json.RawMessage(`{"steps":[{"id":"find","tool":"look","arguments":{"q":"$ref:r0.a.title"}},{"id":"open","tool":"db"},{"id":"ship","tool":"ship"},{"id":"r0","tool":"r0"}]}`),
			Tools:    map[string]string{"look": "search"}, Own: []string{"db"},
			Bound:   map[string]map[string]json.RawMessage{"find": {"limit": json.RawMessage("3"), "user": json.RawMessage(`{"bound_to":"$state.user"}`)}},
			Settled: map[string]wire.Settled{"open": {Result: json.RawMessage(`"opened"`)}, "ship": {Error: fault.New(fault.Locked, "call pay first")}},
			Waits:   map[string][]string{"ship": {"find"}}, Rest: []string{"late"}, Earlier: map[string][]string{"r0": {"a"}}, Direct: []string{"find"},
		},
		"round_end":     {End: "output", Output: json.RawMessage(`{"answer":42}`)},
		"round_invalid": {Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Message: "there is no tool", Hint: "write search"}}},
	} {
		h, body, err := r.Message()
		require.NoError(t, err)
		golden(t, name, h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
			read := wire.ParseRound(m.Data)
			h, body, err := read.Message()
			require.NoError(t, err)
			return nats.Msg{Header: h, Data: body}
		})
		read := wire.ParseRound(body)
		again, _ := json.Marshal(read)
		require.JSONEq(t, string(body), string(again))
	}
	require.Len(t, wire.ParseRound([]byte("no json")).Problems, 1)
}
