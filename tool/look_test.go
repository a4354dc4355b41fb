package tool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// path makes a path of keys and indexes.
func path(parts ...any) (all []Elem) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, Elem{Key: p, Index: -1, IsKey: true})
		case int:
			all = append(all, Elem{Index: p})
		}
	}
	return all
}

func TestLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema string
		path   []Elem
		want   Look
	}{
		{``, path("a"), Look{}},
		{`true`, path("a"), Look{}},
		{`{"type":"object"}`, nil, Look{Types: []string{"object"}}},
		{`{"type":"object"}`, path("a"), Look{}},
		{`{"type":["object","null"],"properties":{"a":{"type":["string","null"]}}}`, path("a"), Look{Types: []string{"null", "string"}}},
		{`{"properties":{"a":{"type":"integer"}}}`, path("a"), Look{Types: []string{"integer"}}},
		{`{"type":"object","properties":{"b":{},"a":{}}}`, path("c"), Look{Missing: true, Names: []string{"a", "b"}}},
		{`{"type":"object","properties":{"a":{}}}`, path(0), Look{Missing: true}},
		{`{"type":"object","additionalProperties":false}`, path("c"), Look{Missing: true}},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, path("c"), Look{}},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}`, path("c"), Look{}},
		{`{"type":"object","properties":{"a":{}},"patternProperties":{"^x":{}}}`, path("c"), Look{}},
		{`{"type":"object","properties":{"a":{}},"anyOf":[{},{"properties":{"c":{}}}]}`, path("c"), Look{}},
		{`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{},{}]}`, path("a"), Look{Types: []string{"string"}}},
		{`{"type":"object","properties":{"a":{}},"if":{},"then":{"properties":{"c":{}}}}`, path("c"), Look{}},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{}}}}}`, path("c"), Look{}},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, path("a", "b"), Look{Missing: true, At: 1}},
		{`{"type":"array","items":{"type":"object","properties":{"a":{"type":"number"}}}}`, path(7, "a"), Look{Types: []string{"number"}}},
		{`{"type":"array","items":{"type":"object","properties":{"a":{}}}}`, path(7, "b"), Look{Missing: true, At: 1, Names: []string{"a"}}},
		{`{"type":"array","items":{"type":"string"}}`, path("a"), Look{Missing: true}},
		{`{"type":"array","items":{"type":"string"}}`, path(-2), Look{}},
		{`{"type":"array"}`, path(0), Look{}},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"number"}}`, path(0), Look{Types: []string{"string"}}},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"number"}}`, path(1), Look{Types: []string{"number"}}},
		{`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`, path(1), Look{}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":{"type":"string"}}`, path(3), Look{Types: []string{"string"}}},
		{`{"type":["object","array"],"properties":{"a":{}}}`, path("b"), Look{}},
		{`{"type":"object","properties":{"0":{"type":"null"}}}`, []Elem{{Key: "0", Index: 0, IsKey: true}}, Look{Types: []string{"null"}}},
	} {
		s, err := CompileSchema([]byte(c.schema))
		require.NoError(t, err)
		require.Equal(t, c.want, s.Look(c.path), "%s %v", c.schema, c.path)
	}
	require.Zero(t, (*Schema)(nil).Look(path("a")))
}

func TestPathTo(t *testing.T) {
	t.Parallel()
	s, err := CompileSchema([]byte(`{"type":"object","properties":{"x":{"type":"object","properties":{"id":{},"deep":{}}},
		"list":{"type":"array","items":{"type":"object","properties":{"id":{},"name":{}}}},"top":{}}}`))
	require.NoError(t, err)
	for name, want := range map[string][]Elem{"top": path("top"), "id": path("x", "id"), "name": path("list", 0, "name")} {
		got, ok := s.PathTo(name)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := s.PathTo("nope")
	require.False(t, ok)
	_, ok = (*Schema)(nil).PathTo("x")
	require.False(t, ok)
}

func TestDisjoint(t *testing.T) {
	t.Parallel()
	require.True(t, Disjoint([]string{"string"}, []string{"number", "null"}))
	require.False(t, Disjoint([]string{"string", "null"}, []string{"null"}))
	require.False(t, Disjoint([]string{"integer"}, []string{"number"}))
	require.False(t, Disjoint([]string{"number"}, []string{"integer"}))
	require.False(t, Disjoint(nil, []string{"number"}))
}
