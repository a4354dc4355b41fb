package unknown_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/unknown"
)

type inner struct {
	Deep int `json:"deep,omitempty"`
}

type outer struct {
	*inner
	A      int `json:"a"`
	Hidden int `json:"-"`
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	names := unknown.NamesOf(outer{})
	require.Equal(t, unknown.Names{"deep": true, "a": true}, names)
	for raw, want := range map[string]string{
		`{"a":1,"deep":2}`: ``,
		`{"A":1}`:          ``, // encoding/json takes it for a
		`{}`:               ``,
		`[1,{"b":2}]`:      ``,
		`null`:             ``,
		`{"a":1,"b": {"x": 1.0, "y":[ ]} ,"deep":2,"c\"\u0064":"z"}`: `,"b":{"x": 1.0, "y":[ ]},"c\"d":"z"`,
	} {
		f := unknown.Of([]byte(raw), names)
		require.Equal(t, want, string(f), raw)
		require.JSONEq(t, `{"a":1`+want+`}`, string(f.Into([]byte(`{"a":1}`))))
	}
}
