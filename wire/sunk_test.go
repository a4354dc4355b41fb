package wire_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// TestSunkForm: an object that goes to a sink, and one that is too large to.
func TestSunkForm(t *testing.T) {
	t.Parallel()
	s := wire.Sunk{Run: "order-42", Tenant: "acme", Generation: 7, Agent: "trip", Step: "trip/=0/find=1", Tool: "search", Type: "a.Note", Value: json.RawMessage(`{"n":1.50}`)}
	for name, s := range map[string]wire.Sunk{
		"sunk":       s,
		"sunk_large": {Run: s.Run, Tenant: s.Tenant, Generation: 7, Agent: s.Agent, Step: s.Step, Tool: s.Tool, Type: s.Type, Blob: &outcome.Handle{Name: "acme/order-42/7/=object/x", Size: 300000, SHA256: "ab"}},
	} {
		h, body := s.Message("acme/order-42/7/trip/=0/find=1/=sink.0")
		golden(t, name, h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
			read, err := wire.ParseSunk(m.Data)
			require.NoError(t, err)
			var again nats.Msg
			again.Header, again.Data = read.Message(m.Header.Get("Nats-Msg-Id"))
			return again
		})
	}
	for _, bad := range []string{"", "[]", `{"step":"a"}`, `{"value":1}`} {
		_, err := wire.ParseSunk([]byte(bad))
		require.Error(t, err, bad)
	}
}

// TestNeedOfSinks: an agent one of whose entries names a sink needs it, however deep the entry stands.
func TestNeedOfSinks(t *testing.T) {
	t.Parallel()
	for entries, needed := range map[string]bool{
		`["a",{"tool":"b","artifact":{"type":"T"}}]`:                                   false,
		`[{"tool":"b","artifact":{"type":"T","sink":null}}]`:                           false,
		`[{"tool":"b","artifact":{"type":"T","sink":{"subject":"x"}}}]`:                true,
		`[{"unfold":"f","tools":[{"tool":"b","artifact":{"sink":{"bucket":"x"}}}]}]`:   true,
		`[{"unfold":"f","by":{"k":{"v":[{"tool":"b","artifact":{"sink":[{}]}}]}}}]`:    true,
		`[{"chain":"T","tools":[{"tool":"b","artifact":{"sink":[{"subject":"x"}]}}]}]`: true,
	} {
		needs := wire.NeedsOfAgent(json.RawMessage(`{"tools":` + entries + `}`))
		if needed {
			require.Contains(t, needs, wire.Sinks, entries)
		} else {
			require.NotContains(t, needs, wire.Sinks, entries)
		}
	}
	require.True(t, wire.OfAgents(wire.Sinks))
}

// TestNeedOfObjectConditions: an agent needs it in which a condition about an object asks for more than that, however deep the entry
// stands, or which has entries selected.
func TestNeedOfObjectConditions(t *testing.T) {
	t.Parallel()
	for entries, needed := range map[string]bool{
		`["a",{"tool":"b","artifact":{"type":"T"}}]`:                                                  false,
		`[{"tool":"b","artifact":{"type":"T","when":"$artifact.n > 1 or $artifact == null"}}]`:        false,
		`[{"tool":"b","needs":{"when":"$round > 1"}},{"chain":"T","when":"$artifact[0]"}]`:            false,
		`[{"tool":"b","artifact":{"type":"T","when":null}},{"chain":"T","tools":["c"],"when":null}]`:  false,
		`[{"tool":"b","artifact":{"type":"T","when":"$artifact.n > $round"}}]`:                        true,
		`[{"tool":"b","artifact":{"type":"T","when":"$artifacts.n"}}]`:                                true,
		`[{"unfold":"f","tools":[{"tool":"b","artifact":{"type":"T","when":"$state == 'A'"}}]}]`:      true,
		`[{"unfold":"f","by":{"k":{"v":[{"tool":"b","artifact":{"when":"$input.n"}}]}}}]`:             true,
		`[{"chain":"T","tools":["c"],"when":"$artifact.n == $input.n"}]`:                              true,
		`[{"chain":"T","tools":[{"tool":"b","artifact":{"type":"U","when":"$succeeded[\"a-b\"]"}}]}]`: true,
		`[{"unfold":"f","select":"pick"}]`:                                                            true,
	} {
		needs := wire.NeedsOfAgent(json.RawMessage(`{"tools":` + entries + `}`))
		require.Equal(t, needed, slices.Contains(needs, wire.ObjectConditions), entries)
	}
	require.True(t, wire.OfAgents(wire.ObjectConditions))
	require.True(t, wire.Ours().All([]string{wire.ObjectConditions}))
}

// TestNeedOfAnswerOrder: an agent needs it in which it matters which object of a type is the last one, or what a selection opens.
func TestNeedOfAnswerOrder(t *testing.T) {
	t.Parallel()
	for members, needed := range map[string]bool{
		`"tools":["a",{"tool":"b","artifact":{"type":"T"}},"blackboard"]`:                           false,
		`"tools":[{"tool":"b","bind":{"x":"$input.artifact"},"needs":{"artifact":"T"}}]`:            false,
		`"tools":["a"],"capture_nested":false`:                                                      false,
		`"tools":["a"],"capture_nested":true`:                                                       true,
		`"tools":[{"tool":"b","bind":{"x":"$artifact.T.id"}}]`:                                      true,
		`"tools":[{"unfold":"f","tools":[{"chain":"T","tools":["c"]}]}]`:                            true,
		`"tools":[{"tool":"b","needs":{"all":["a"],"when":"$artifact.T.n > 1"}}]`:                   true,
		`"tools":["a"],"guards":[{"on":"call","when":"$artifact.T.n > 1","else":"fail"}]`:           true,
		`"tools":[{"unfold":"f","select":"pick"}]`:                                                  true,
		`"tools":[{"unfold":"f","by":{"k":{"v":[{"tool":"b","bind":{"x":"$artifact.T","y":1}}]}}}]`: true,
	} {
		needs := wire.NeedsOfAgent(json.RawMessage(`{` + members + `}`))
		require.Equal(t, needed, slices.Contains(needs, wire.AnswerOrder), members)
	}
	require.True(t, wire.OfAgents(wire.AnswerOrder))
	require.True(t, wire.Ours().All([]string{wire.AnswerOrder}))
}
