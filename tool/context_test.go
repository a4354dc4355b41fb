package tool_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

func TestContextFilterPasses(t *testing.T) {
	t.Parallel()
	keys := []string{"tenantId", "token"}
	for name, c := range map[string]struct {
		raw    string
		passes []string
	}{
		"nothing said": {`{}`, keys},
		"pass-through": {`{"filter":"pass-through"}`, keys},
		"none":         {`{"filter":"none"}`, nil},
		"allow":        {`{"filter":"allow-keys","keys":["tenantId","locale"]}`, []string{"tenantId"}},
		"deny":         {`{"filter":"deny-keys","keys":["token"]}`, []string{"tenantId"}},
	} {
		var f tool.ContextFilter
		require.NoError(t, json.Unmarshal([]byte(c.raw), &f), name)
		var passes []string
		for _, k := range keys {
			if f.Passes(k) {
				passes = append(passes, k)
			}
		}
		require.Equal(t, c.passes, passes, name)
		out, err := json.Marshal(f)
		require.NoError(t, err)
		require.JSONEq(t, c.raw, string(out), name)
	}
	require.False(t, tool.ContextFilter{Filter: "of tomorrow"}.Passes("token"), "what isn't understood lets nothing pass")
}

func TestContextFilterRefuses(t *testing.T) {
	t.Parallel()
	many := make([]string, tool.MaxContextKeys+1)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprint("k", i))
	}
	for raw, says := range map[string]string{
		`{"filter":"some"}`:                        "none of pass-through",
		`{"filter":"allow-keys"}`:                  "needs 1 to 256 keys",
		`{"filter":"deny-keys","keys":[]}`:         "needs 1 to 256 keys",
		`{"filter":"none","keys":["a"]}`:           "names no keys",
		`{"keys":["a"]}`:                           "names no keys",
		`{"filter":"allow-keys","keys":["a","a"]}`: "twice",
		`{"filter":"allow-keys","keys":[""]}`:      "no key",
		`{"filter":"allow-keys","keys":["a,b"]}`:   "no key",
		`{"filter":"allow-keys","key":["a"]}`:      `did you mean "keys"`,
		`{"filter":"allow-keys","keys":"a"}`:       "array of strings",
		`{"filter":"allow-keys","keys":[` + strings.Join(slices.Clip(many), ",") + `]}`: "needs 1 to 256 keys",
		`7`: "must be an object",
	} {
		var f tool.ContextFilter
		require.ErrorContains(t, json.Unmarshal([]byte(raw), &f), says, raw)
	}
}
