package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
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

// TestARoundInABlob: its record says where it lies and what one has to know. What names another run's, or anything but a
// round's bytes, is an answer of no use.
func TestARoundInABlob(t *testing.T) {
	t.Parallel()
	run, digest := subjects.NewRun("acme", "r"), strings.Repeat("ab", 32)
	blob := &outcome.Handle{Name: subjects.RoundBlobName(run, 7, digest), Size: 300 << 10, SHA256: digest, NUID: "n", Chunks: 1, Bucket: "blobs-acme"}
	h, body := wire.LargeRoundMessage(blob)
	wiretest.Golden(t, *update, "round_blob", nats.Msg{Header: h, Data: body})
	require.True(t, wire.KindRound.Known(h))
	require.Equal(t, []string{wire.LargeRounds}, wire.RecordNeeds(h, body))
	require.Equal(t, blob, wire.RoundBlob(h, body, run, 7, "blobs-acme"))
	require.Equal(t, fault.InvalidRecord, wire.ParseRound(body).Problems[0].Code, "nobody takes it for a round that ends")
	for name, change := range map[string]func(h *outcome.Handle){
		"another run's":        func(h *outcome.Handle) { h.Name = subjects.RoundBlobName(subjects.NewRun("acme", "s"), 7, digest) },
		"another generation's": func(h *outcome.Handle) { h.Name = subjects.RoundBlobName(run, 8, digest) },
		"a result":             func(h *outcome.Handle) { h.Name = subjects.RunBlobName(run, 7, "value", digest) },
		"other bytes":          func(h *outcome.Handle) { h.SHA256 = strings.Repeat("cd", 32) },
		"another bucket":       func(h *outcome.Handle) { h.Bucket = "blobs-other" },
		"too large":            func(h *outcome.Handle) { h.Size = wire.MaxRound + 1 },
	} {
		other := *blob
		change(&other)
		h, body := wire.LargeRoundMessage(&other)
		require.Nil(t, wire.RoundBlob(h, body, run, 7, "blobs-acme"), name)
	}
	require.Nil(t, wire.RoundBlob(wire.Versioned(), body, run, 7, "blobs-acme"), "of the version before")
}
