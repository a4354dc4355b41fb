package jsonmend

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues(t *testing.T) {
	t.Parallel()
	isObject := func(v json.RawMessage) bool { return strings.HasPrefix(string(v), "{") }
	for _, c := range []struct {
		text, want string
		repaired   bool
	}{
		{` {"a": 1} `, `{"a":1}`, false},
		{"```json\n{\"a\": 1}\n```", `{"a":1}`, false},
		{"Here {you} are: {\"a\": 1}, bye", `{"a":1}`, false},
		{`{a: 'b', // c` + "\n" + `"d": [1, 2`, `{"a":"b","d":[1,2]}`, true},
		{`[1, 2]`, ``, false},
		{`none at all`, ``, false},
		{``, ``, false},
		{"{" + strings.Repeat("[", MaxDepth), ``, false},
		{`{a: "` + strings.Repeat("x", MaxRepair) + `"`, ``, false},
	} {
		v, repaired, ok := Value(c.text, isObject)
		require.Equal(t, c.want != "", ok, "%.40s", c.text)
		require.Equal(t, c.want, string(v), "%.40s", c.text)
		require.Equal(t, c.repaired, repaired, "%.40s", c.text)
	}
}
