package tool

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A promise is kept by whatever holds all that the output schema declares; what is more is allowed, at any depth.
func TestPromise(t *testing.T) {
	t.Parallel()
	const closed = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":
		{"type":"object","properties":{"not":{"type":"string"}},"required":["not"],"additionalProperties":{"not":{}}}}},
		"required":["a"],"additionalProperties":false}`
	const either = `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"unevaluatedProperties":false},
		{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}]}`
	const condition = `{"if":{"properties":{"a":true},"additionalProperties":false},"then":{"required":["a"]}}`
	const places = `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},{"$ref":"#/oneOf/0"}]}`
	for _, c := range []struct {
		schema, value string
		kept          bool
	}{
		{closed, `{"a":1,"b":[{"not":"x"}]}`, true},
		{closed, `{"a":1,"more":2,"b":[{"not":"x","more":3}]}`, true},
		{closed, `{"more":2}`, false},
		{closed, `{"a":1,"b":[{"not":7,"more":3}]}`, false},
		{closed, `{"a":1,"b":[{"more":3}]}`, false},
		{either, `{"a":1,"b":2}`, true},
		{either, `{"a":"1","b":2}`, true},
		{either, `{"c":1}`, false},
		{condition, `{"z":1}`, true}, // the condition stays as it was: it holds for nothing with a z
		{condition, `{}`, false},
		{places, `{"c":1}`, false}, // what names its parts by place stays as it is
		{`{"type":"string"}`, `"x"`, true},
		{`{"type":"string"}`, `1`, false},
		{`true`, `1`, true},
	} {
		d := Definition{Name: "t", OutputSchema: json.RawMessage(c.schema)}
		s, err := d.Promise()
		require.NoError(t, err)
		require.Equal(t, c.kept, len(s.Check([]byte(c.value), nil)) == 0, "%s: %s: %v", c.schema, c.value, s.Check([]byte(c.value), nil))
	}
	s, err := (&Definition{Name: "t"}).Promise()
	require.NoError(t, err)
	require.Nil(t, s)
	_, err = (&Definition{Name: "t", OutputSchema: json.RawMessage(`{"type":"nothing"}`)}).Promise()
	require.Error(t, err)
}
