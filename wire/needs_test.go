package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

var languages = wire.Knowledge{
	"language-2": {Records: 2, In: func(plan []byte) bool { return bytes.Contains(plan, []byte("repeat")) }},
	"language-3": {In: func([]byte) bool { return false }},
}

// A start with needs is of a version that nobody reads who doesn't look for them; who looks, and lacks one, leaves it
// too.
func TestStartWithNeeds(t *testing.T) {
	t.Parallel()
	s := &wire.Start{
		Tools: map[string]*wire.FrozenTool{"a": wire.Frozen(wire.FrozenTool{Digest: "ab12", Contract: contractOf(t, `{"name":"a"}`)})},
		Needs: languages.Of([]byte(`{"repeat":1}`)),
	}
	m := startMsg(t, s)
	wiretest.Golden(t, *update, "start_needs", m)
	require.False(t, wire.KindEvent.Known(m.Header))
	require.True(t, wire.KindStart.Known(m.Header))
	require.False(t, wire.KindStart.Known(nats.Header{subjects.HeaderVersion: {"5"}}))
	back, _, err := wire.ParseStart(m.Header, m.Data)
	require.NoError(t, err)
	require.Equal(t, []string{"language-2"}, back.Needs)
	require.True(t, languages.All(back.Needs))
	require.True(t, wire.Ours().All(back.Needs))
	require.False(t, wire.Ours().All([]string{"language-2", "language-3"}))
	require.True(t, wire.Ours().All(nil))
	s.Needs = []string{wire.Permissions}
	s.Permits = &wire.Permits{Permissions: []string{}, Groups: []json.RawMessage{json.RawMessage(`{"role":"web","provider":"default","permissions":["internet"],"tools":["fetch"]}`)}}
	wiretest.Golden(t, *update, "start_permits", startMsg(t, s))
	held := wiretest.Load(t, "start_permits")
	back, _, err = wire.ParseStart(held.Header, held.Data)
	require.NoError(t, err)
	require.Equal(t, s.Permits, back.Permits, "an empty list is one")
	s.Permits = nil
	s.Needs, s.Groups, s.Search = []string{wire.Agents}, map[string][]string{"web": {"fetch"}}, map[string][]string{"": {"fetch", "pay"}}
	wiretest.Golden(t, *update, "start_groups", startMsg(t, s))
	held = wiretest.Load(t, "start_groups")
	back, _, err = wire.ParseStart(held.Header, held.Data)
	require.NoError(t, err)
	require.Equal(t, s.Groups, back.Groups)
	require.Equal(t, s.Search, back.Search)
	s.Groups, s.Search = nil, nil
	s.Bucket, s.Needs = "blobs-acme", nil
	require.Equal(t, []string{subjects.BucketVersion}, startMsg(t, s).Header[subjects.HeaderVersion], "without needs it is as it was")
}

// What a run needs allows its attempts records of a higher version; nothing else of the start does.
func TestNeedsAllowVersionsOfRecords(t *testing.T) {
	t.Parallel()
	two := nats.Header{subjects.HeaderVersion: {"2"}}
	require.Equal(t, uint64(1), languages.Records(nil))
	require.Equal(t, uint64(1), languages.Records([]string{"language-3"}))
	require.Equal(t, uint64(2), languages.Records([]string{"language-2", "language-3"}))
	require.NotNil(t, wire.AboveRun(two, languages.Records(nil)))
	require.Nil(t, wire.AboveRun(two, languages.Records([]string{"language-2"})))
}

func TestNeedsOfTheRegistry(t *testing.T) {
	t.Parallel()
	entry := func(version, body string) (nats.Header, []byte) {
		return nats.Header{subjects.HeaderVersion: {version}}, []byte(body)
	}
	for _, c := range []struct {
		version, body string
		known, ours   bool
	}{
		{"1", `{}`, true, true}, {"1", `{"needs":["x"]}`, true, true}, {"2", `{}`, false, false}, {"3", `{}`, false, false},
		{"4", `{"needs":["language-2"]}`, true, true}, {"4", `{"needs":["language-2","x"]}`, false, false}, {"4", `{}`, false, false}, {"4", `x`, false, false},
		{"5", `{"needs":["language-2"]}`, false, false},
	} {
		h, body := entry(c.version, c.body)
		require.Equal(t, c.known, languages.KnownEntry(h, body), "%v", c)
		require.Equal(t, c.ours, wire.Ours().KnownEntry(h, body), "%v", c)
	}
}

func TestLacking(t *testing.T) {
	t.Parallel()
	require.Empty(t, wire.Lacking(nil, nil))
	require.Empty(t, wire.Lacking([]string{"a"}, []string{"a", "b"}))
	require.Equal(t, "a,c", wire.Lacking([]string{"a", "b", "c"}, []string{"b"}))
	for _, bad := range []string{"", "A", "a.b", "a*", "=a"} {
		require.False(t, wire.ValidNeed(bad), bad)
	}
	require.True(t, wire.ValidNeed("language-2"))
	h, _ := wire.NeedMessage()
	require.False(t, wire.KindEvent.Known(h))
}
