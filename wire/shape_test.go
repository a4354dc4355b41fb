package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

func shape(t *testing.T, text string) *wire.Shape {
	t.Helper()
	s, ok := wire.ReadShape(json.RawMessage(text))
	require.True(t, ok)
	return s
}

func TestShapes(t *testing.T) {
	t.Parallel()
	s := shape(t, `{"open":true,"output_steps":["a"],"steps":[{"id":"a","value":1},{"id":"b","value":2},{"id":"p","plan":{"open_for":"1s","steps":[{"id":"x","value":1}]}}]}`)
	s.Amend(&wire.Change{
		Add: []json.RawMessage{[]byte(`{"id":"b","value":3}`), []byte(`{"id":"c","value":4}`)}, Discard: wire.Discard{Steps: []string{"a", "b"}},
		Output: []byte(`"$ref:c"`),
	}, func(id string) bool { return id == "a" })
	require.JSONEq(t, `{"open":true,"output":"$ref:c","steps":[{"id":"b","value":3},{"id":"p","plan":{"open_for":"1s","steps":[{"id":"x","value":1}]}},{"id":"c","value":4}]}`, string(s.JSON()))
	require.Equal(t, []string{"p"}, s.Composites())
	inner, ok := s.Within("p")
	require.True(t, ok)
	inner.Close()
	inner.Amend(&wire.Change{Discard: wire.Discard{Rest: true}, OutputSteps: []string{"y"}, Add: []json.RawMessage{[]byte(`{"id":"y","value":2}`)}}, func(string) bool { return true })
	s.Replace("p", inner)
	s.Drop([]string{"b"})
	s.Close()
	require.JSONEq(t, `{"output":"$ref:c","steps":[{"id":"p","plan":{"output_steps":["y"],"steps":[{"id":"y","value":2}]}},{"id":"c","value":4}]}`, string(s.JSON()))
	_, ok = s.Within("c")
	require.False(t, ok)
	for _, text := range []string{`1`, `{}`, `{"steps":{}}`, `{"calls":[]}`, `not json`} {
		_, ok := wire.ReadShape(json.RawMessage(text))
		require.False(t, ok, text)
	}
}

// What changes a plan to another is what differs, and nothing where nothing does.
func TestChangeToAShape(t *testing.T) {
	t.Parallel()
	now := `{"on_failure":"stop","output_steps":["a"],"steps":[{"id":"a","value":1},{"id":"b","value":2},{"id":"c","value":3}]}`
	c, err := shape(t, now).To(shape(t, `{"on_failure": "stop", "output_steps":["a"],"steps":[{"id":"b", "value":2},{"id":"a","value":1},{"id":"c","value":3}]}`))
	require.NoError(t, err)
	require.True(t, c.IsZero())
	c, err = shape(t, now).To(shape(t, `{"steps":[{"id":"a","value":1},{"id":"b","value":5},{"id":"d","value":6}],"output":"$ref:d"}`))
	require.NoError(t, err)
	require.Equal(t, wire.Change{
		Add:     []json.RawMessage{[]byte(`{"id":"b","value":5}`), []byte(`{"id":"d","value":6}`)},
		Discard: wire.Discard{Steps: []string{"b", "c"}}, Output: []byte(`"$ref:d"`),
	}, c)
	_, err = shape(t, now).To(shape(t, `{"steps":[],"on_failure":"continue"}`))
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
}
