package exampletest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/exampletest"
)

func TestPretty(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 130)
	for in, want := range map[string]string{
		`1.0`:                       "1.0\n",
		`"a:b,c\"{"`:                "\"a:b,c\\\"{\"\n",
		`{}`:                        "{}\n",
		` { "a" : [1,2], "b":null}`: "{\"a\": [1, 2], \"b\": null}\n",
		`{"` + long + `":[],"k:,":{"a":"` + long + `"}}`: "{\n  \"" + long + "\": [],\n  \"k:,\": {\n    \"a\": \"" + long + "\"\n  }\n}\n",
		`["` + long + `",12345678901234567890]`:          "[\n  \"" + long + "\",\n  12345678901234567890\n]\n",
		`no JSON`:                                        "no JSON",
	} {
		got := string(exampletest.Pretty([]byte(in)))
		require.Equal(t, want, got)
		if json.Valid([]byte(in)) {
			require.JSONEq(t, in, got)
		}
	}
}
