package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// TestWhereAPointerLeads: a problem's pointer names bytes of the text as it was written.
func TestWhereAPointerLeads(t *testing.T) {
	t.Parallel()
	const text = " {\n  \"steps\": [\n    {\"id\": \"ä\", \"tool\": \"echo\", \"arguments\": {\"a/b\": [1, {\"~\" : true}], \"a\":1, \"a\": 2}},\n" +
		"    {\"id\":\"b\"}\n  ]\n}\n"
	for pointer, want := range map[string]struct {
		value        string
		line, column int
	}{
		"":                             {text[1 : len(text)-1], 1, 2},
		"/steps/0/id":                  {`"ä"`, 3, 12},
		"/steps/0/tool":                {`"echo"`, 3, 25},
		"/steps/0/arguments/a~1b/0":    {`1`, 3, 55},
		"/steps/0/arguments/a~1b/1/~0": {`true`, 3, 65},
		"/steps/0/arguments/a":         {`2`, 3, 85},
		"/steps/1":                     {`{"id":"b"}`, 4, 5},
		"/steps/1/tool":                {`{"id":"b"}`, 4, 5},
		"/steps/1/arguments/x/y":       {`{"id":"b"}`, 4, 5},
		"/steps/1/id/deeper":           {`"b"`, 4, 11},
	} {
		at := plan.Locate([]byte(text), "/steps", pointer)[1]
		require.Equal(t, want.value, text[at.Offset:at.End], pointer)
		require.Equal(t, [2]int{want.line, want.column}, [2]int{at.Line, at.Column}, pointer)
	}
	for bad, at := range map[string]plan.Place{
		"":                {Offset: 0, End: 0, Line: 1, Column: 1},
		"{\n  \"a\": }":   {Offset: 9, End: 9, Line: 2, Column: 8},
		"{\"a\":1}\n\n x": {Offset: 10, End: 10, Line: 3, Column: 2},
	} {
		require.Equal(t, []plan.Place{at}, plan.Locate([]byte(bad), "/a"), bad)
	}
}

// TestProblemsOfCallsAreLocated: problems of the state dialect point into what was submitted.
func TestProblemsOfCallsAreLocated(t *testing.T) {
	t.Parallel()
	const text = "{\"calls\": [\n  {\"_tool\": \"echo\", \"x\": \"†state.nobody\"}]}"
	_, r := plan.Parse([]byte(text), nil)
	require.Len(t, r.Problems, 1)
	at := plan.Locate([]byte(text), r.Problems[0].Path)[0]
	require.Equal(t, `"†state.nobody"`, text[at.Offset:at.End])
	require.Equal(t, [2]int{2, 26}, [2]int{at.Line, at.Column})
}
