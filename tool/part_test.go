package tool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

func TestAPartOfAWhole(t *testing.T) {
	schema, err := tool.CompileSchema([]byte(`{
	  "type": "object", "required": ["other", "user"], "minProperties": 4,
	  "properties": {
	    "user": {"type": "object", "required": ["name", "age"], "minProperties": 2, "additionalProperties": false,
	             "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer"}, "a/b": {"type": "boolean"}}},
	    "list": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3},
	    "open": true, "kind": {"type": "string"}, "value": true, "either": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
	  "if": {"properties": {"kind": {"const": "number"}}}, "then": {"properties": {"value": {"type": "number"}}},
	  "allOf": [{"properties": {"user": {"properties": {"age": {"minimum": 1}}}}}]}`))
	require.NoError(t, err)
	const many = 1 << 20
	for _, c := range []struct {
		path        []string
		value       string
		whole, part []string // pointers of what is wrong
	}{
		{[]string{"user"}, `{"name": "ann", "age": 5}`, nil, nil},
		{[]string{"user"}, `{"name": "ann"}`, []string{"", ""}, nil}, // it lacks a property, and has too few
		{[]string{"user"}, `{"name": 5, "age": "x"}`, []string{"/age", "/name"}, []string{"/age", "/name"}},
		{[]string{"user"}, `{"name": null, "age": 1}`, nil, nil},
		{[]string{"user"}, `{"name": "ann", "age": 0}`, []string{"/age"}, []string{"/age"}}, // as allOf has it
		{[]string{"user"}, `{"name": "ann", "age": 1, "x": 1}`, []string{"/x"}, []string{"/x"}},
		{[]string{"user"}, `null`, nil, nil},
		{[]string{"user"}, `"ann"`, []string{""}, []string{""}},
		{[]string{"user", "age"}, `1.5`, []string{""}, []string{""}},
		{[]string{"user", "age"}, `7`, nil, nil},
		{[]string{"user", "a/b"}, `7`, []string{""}, []string{""}},
		{[]string{"list"}, `[1]`, []string{""}, nil},
		{[]string{"list"}, `[1, 2, "x"]`, []string{"/2"}, []string{"/2"}},
		{[]string{"list"}, `[1, 2, 3, 4]`, []string{""}, []string{""}},
		{[]string{"open"}, `[1]`, nil, nil},
		{[]string{"unheard", "of"}, `[1]`, nil, nil},
		{[]string{"value"}, `"x"`, nil, nil}, // what kind is, nobody knows
		{[]string{"either"}, `true`, []string{""}, []string{""}},
		{nil, `{"either": true, "user": {"age": 0}}`, []string{"", "", "/either", "/user", "/user", "/user/age"}, []string{"/either", "/user/age"}},
		{nil, `5`, []string{""}, []string{""}},
	} {
		for _, part := range []bool{false, true} {
			steps := many
			var at []string
			for _, v := range tool.CheckPart(schema, c.path, []byte(c.value), part, &steps) {
				at = append(at, v.Pointer)
			}
			want := c.whole
			if part {
				want = c.part
			}
			require.Equal(t, want, at, "%v %s %v", c.path, c.value, part)
			require.LessOrEqual(t, steps, many)
		}
	}
}

func TestAPartThatTakesTooLongIsTold(t *testing.T) {
	schema, err := tool.CompileSchema([]byte(`{"properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "number"}}}}`))
	require.NoError(t, err)
	steps := 3
	bad := tool.CheckPart(schema, []string{"a"}, []byte(`[1, 2, 3, 4, 5, 6, 7, 8, 9, "x"]`), false, &steps)
	require.NotEmpty(t, bad)
	require.Zero(t, steps, "there was not enough")
}

func TestAPartIsFoundBesideManyThatAreMissing(t *testing.T) {
	text := `{"required": ["k0"`
	for i := 1; i < 200; i++ {
		text += `, "k` + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `"`
	}
	schema, err := tool.CompileSchema([]byte(text + `], "properties": {"a": {"type": "number"}}}`))
	require.NoError(t, err)
	steps := 1 << 20
	require.Len(t, tool.CheckPart(schema, []string{"a"}, []byte(`"x"`), false, &steps), 1)
}
