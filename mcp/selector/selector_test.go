package selector_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/tool"
)

func TestPicks(t *testing.T) {
	t.Parallel()
	yes := true
	tools := []selector.Tool{
		{Name: "read", Annotations: &tool.Annotations{ReadOnlyHint: &yes}},
		{Name: "web_get", Groups: []string{"web"}, Annotations: &tool.Annotations{ReadOnlyHint: &yes, OpenWorldHint: &yes}},
		{Name: "web_put", Groups: []string{"web"}, Annotations: &tool.Annotations{IdempotentHint: &yes, DestructiveHint: new(bool)}},
		{Name: "write"},
	}
	for list, want := range map[string]string{
		"read":                              "read",
		"read, write":                       "read write",
		"web_*":                             "web_get web_put",
		"*":                                 "read web_get web_put write",
		"!web_*":                            "read write",
		"web_*,!web_put":                    "web_get",
		"/^w/":                              "web_get web_put write",
		"/^.{4,5}$/":                        "read write",
		"!/a,b/,!/t{1,2}$/ ,!read":          "write",
		"group:web":                         "web_get web_put",
		"group:nowhere":                     "",
		"hint:readOnly":                     "read web_get",
		"hint:readOnlyHint,!hint:openWorld": "read",
		"hint:idempotent":                   "web_put",
		"hint:destructive":                  "",
	} {
		s, err := selector.Parse(list)
		require.NoError(t, err, list)
		var got []string
		for _, one := range tools {
			if s.Picks(one) {
				got = append(got, one.Name)
			}
		}
		require.Equal(t, want, strings.Join(got, " "), list)
	}
	some, err := selector.Parse("a*,group:web,!group:host")
	require.NoError(t, err)
	require.Equal(t, []string{"web", "host"}, some.Groups())
	require.True(t, selector.Selector{}.Picks(tools[0]), "the zero selector picks all")
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"", "a,,b", "a*b", "/(/", "hint:cheap", "!!a", "a b", "group:", "!group:"} {
		_, err := selector.Parse(list)
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), list)
		require.NotEmpty(t, fault.As(err).Hint)
	}
}
