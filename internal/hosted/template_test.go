package hosted

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	value := func(name string) (string, error) { return "<" + name + ">", nil }
	for _, c := range []struct{ in, open, end, want string }{
		{"plain", "{{", "}}", "plain"},
		{"", "{{", "}}", ""},
		{"{{a}}", "{{", "}}", "<a>"},
		{"x={{a.b-c_1}},y={{d}}!", "{{", "}}", "x=<a.b-c_1>,y=<d>!"},
		{"{{{{.Names}}", "{{", "}}", "{{.Names}}"},
		{"{single} }}", "{{", "}}", "{single} }}"},
		{"/v1/{city}/x", "{", "}", "/v1/<city>/x"},
		{"{{x}", "{", "}", "{x}"},
		{"Bearer ${env:T}", "${env:", "}", "Bearer <T>"},
	} {
		tm, err := parseTemplate(c.in, c.open, c.end)
		require.NoError(t, err, c.in)
		got, err := tm.expand(value)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.in)
	}
	for _, in := range []string{"{{", "{{a", "{{}}", "{{a b}}", "{{.Names}}", "{{{a}}}", "{{a}", "{{ä}}"} {
		_, err := parseTemplate(in, "{{", "}}")
		require.ErrorContains(t, err, "{{", in)
	}
}

func TestArgumentsAsText(t *testing.T) {
	t.Parallel()
	a, err := readArguments(json.RawMessage(`{"s":"a\u0062\n","n":1.50e3,"t":true,"z":null,"o":{},"l":[1]}`), map[string]json.RawMessage{"z": json.RawMessage(`7`), "d": json.RawMessage(`"def"`)})
	require.NoError(t, err)
	for name, want := range map[string]string{"s": "ab\n", "n": "1.50e3", "t": "true", "z": "7", "d": "def"} {
		got, err := a.must(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for name, part := range map[string]string{"o": "must be a string", "l": "must be a string", "absent": "missing"} {
		_, err := a.must(name)
		require.ErrorContains(t, err, part)
		require.ErrorContains(t, err, "invalid_arguments")
	}
	_, err = readArguments(json.RawMessage(`[]`), nil)
	require.ErrorContains(t, err, "invalid_arguments")
}
