package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

func contractOf(t *testing.T, definition string) tool.Contract {
	t.Helper()
	def, err := tool.ParseDefinition([]byte(definition))
	require.NoError(t, err)
	contract, err := def.Contract()
	require.NoError(t, err)
	return contract
}

// startMsg writes a start.
func startMsg(t *testing.T, s *wire.Start) nats.Msg {
	t.Helper()
	h, body, err := s.Message()
	require.NoError(t, err)
	return nats.Msg{Header: h, Data: body}
}

func TestStartForms(t *testing.T) {
	t.Parallel()
	weather := contractOf(t, `{"name":"get_weather","annotations":{"readOnlyHint":true},"x-orchestration":{"max_concurrency":5,"mode":"fan-out-bounded"}}`)
	warnings := []fault.Problem{{Code: fault.UnknownField, Path: "/thought", Message: "ignored"}}
	accepted := &wire.Start{Warnings: warnings, Tools: map[string]*wire.FrozenTool{"get_weather": {Digest: "ab12", AckWait: 30_000, Contract: weather}}}
	rejected := &wire.Start{Problems: []fault.Problem{{Code: fault.EmptyPlan, Path: "/steps", Message: "no steps", Hint: "add one"}}}
	// Single items make it version 2: an older orchestrator would execute all of them.
	retry := &wire.Start{
		Warnings: warnings,
		Reuse: &wire.Reuse{
			Of: "order-41", From: "tokyo",
			Steps: map[string]wire.ReusedResult{"a": {Value: []byte(`1.0`), Size: 3}, "b": {Blob: &outcome.Handle{Name: "n", Size: 9, SHA256: "cd"}, Size: 9}},
			Items: map[string]*wire.ReusedItems{"c": {List: "ef", Count: 3, Results: map[int]wire.ReusedResult{0: {Value: []byte(`7`), Size: 1}}, Keys: map[int]string{2: "acme/order-41/9/c=2"}}},
			Keys:  map[string]string{"d": "acme/order-41/9/d"},
		},
		Tools: map[string]*wire.FrozenTool{"get_weather": {Digest: "ab12", Shard: 1, AckWait: 30_000, Contract: weather}},
	}
	recode := func(version string, want *wire.Start) func(nats.Msg) nats.Msg {
		return func(m nats.Msg) nats.Msg {
			s, blob, err := wire.ParseStart(m.Header, m.Data)
			require.NoError(t, err)
			require.Nil(t, blob)
			require.Equal(t, want, s)
			m = startMsg(t, s)
			require.Equal(t, []string{version}, m.Header[subjects.HeaderVersion])
			m.Header[subjects.HeaderVersion] = []string{"1"} // that of the golden file, which is about the body
			return m
		}
	}
	for name, s := range map[string]*wire.Start{"start_accepted": accepted, "start_rejected": rejected} {
		m := startMsg(t, s)
		golden(t, name, m.Header, m.Data, wiretest.Ignored, recode("1", s))
	}
	template := &wire.Start{
		Needs: []string{wire.LanguageTwo},
		Tools: map[string]*wire.FrozenTool{"refund": {Digest: "cd34", AckWait: 30_000, Contract: contractOf(t, `{"name":"refund","plan":{"steps":[{"id":"a","tool":"pay"}]}}`), Plan: true}},
	}
	wiretest.Golden(t, *update, "start_template", startMsg(t, template))
	frozen := wiretest.Load(t, "start_template")
	read, _, err := wire.ParseStart(frozen.Header, frozen.Data)
	require.NoError(t, err)
	require.Equal(t, template, read)
	inline := &wire.Start{
		Needs: []string{wire.Agents, wire.InlineAgents, wire.LanguageTwo},
		Tools: map[string]*wire.FrozenTool{"=a": {
			Digest: "ef56", Contract: contractOf(t, `{"name":"a","agent":{"planner":{"tool":"model"}}}`), Agent: true, Definition: []byte(`{"name":"a","agent":{"planner":{"tool":"model"}}}`),
		}},
	}
	wiretest.Golden(t, *update, "start_inline", startMsg(t, inline))
	frozen = wiretest.Load(t, "start_inline")
	read, _, err = wire.ParseStart(frozen.Header, frozen.Data)
	require.NoError(t, err)
	require.Equal(t, inline, read)
	golden(t, "start", wire.Versioned(), startMsg(t, retry).Data, wiretest.Ignored, recode("2", retry))
	require.True(t, rejected.Rejected())
	require.False(t, accepted.Rejected())
}

// A large start is a handle; what it says lies in a blob, and its version is that of what lies there.
func TestAStartInABlob(t *testing.T) {
	t.Parallel()
	s := &wire.Start{Bucket: "blobs-acme", Tools: map[string]*wire.FrozenTool{"a": {Digest: "ab12", Contract: contractOf(t, `{"name":"a"}`)}}}
	handle := &outcome.Handle{Name: "acme/r/7/start/X", Size: 300_000, SHA256: "cd", Bucket: "blobs-acme"}
	h := s.Handled(handle)
	wiretest.Golden(t, *update, "start_handle", nats.Msg{Header: h})
	none, blob, err := wire.ParseStart(h, nil)
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, handle, blob)
	back, blob, err := wire.ParseStart(nil, startMsg(t, s).Data)
	require.NoError(t, err)
	require.Nil(t, blob)
	require.Equal(t, s, back)
	for _, m := range []nats.Msg{{Data: []byte("not json")}, {Header: nats.Header{subjects.HeaderHandle: {"{"}}}, {Data: nil}} {
		_, _, err = wire.ParseStart(m.Header, m.Data)
		require.Equal(t, fault.Internal, fault.CodeOf(err), "%s", m.Data)
	}
}

func TestAStartIsWrittenFromFormsOfItsTools(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{"", "blobs-acme"} {
		s := wire.Start{Tools: map[string]*wire.FrozenTool{}, Bucket: bucket}
		for _, name := range []string{"b", "a<b>", "a"} {
			s.Tools[name] = wire.Frozen(wire.FrozenTool{Digest: "d" + name, Shard: 1, AckWait: 1000, Contract: tool.Contract{MaxAttempts: 3, Limit: 2}})
		}
		want, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, string(want), string(startMsg(t, &s).Data))
	}
}
