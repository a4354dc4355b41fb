package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// The hints that tell a model what to write instead.
func TestHints(t *testing.T) {
	t.Parallel()
	const a = `{"id":"fetch_page","tool":"echo"},{"id":"s1","tool":"echo"}`
	ref := func(s string) string {
		return steps(a + `,{"id":"b","tool":"echo","arguments":{"x":` + quoted(s) + `}}`)
	}
	call := func(s string) string { return steps(`{"id":"b","tool":"` + s + `"}`) }
	for name, c := range map[string]struct{ plan, says string }{
		"empty":                {"  ", "the plan is empty"},
		"byte order mark":      {"\xef\xbb\xbf{}", "byte order mark"},
		"fence":                {"```json\n{}\n```", "without the ```"},
		"cut off":              {`{"steps":[{"id":"a`, "cut off"},
		"single quotes":        {`{'steps':[]}`, "double quotes only"},
		"comment":              {"{\n// steps\n\"steps\":[]}", "no comments"},
		"trailing comma":       {`{"steps":[],}`, "a comma too many"},
		"nan":                  {`{"x":NaN}`, "neither NaN nor Infinity"},
		"python":               {`{"x":True}`, "true, false and null"},
		"line feed":            {"{\"x\":\"a\nb\"}", `write \n`},
		"anything else":        {`{"x":=}`, "nothing else"},
		"array":                {`[{"id":"a"}]`, `put the array into an object`},
		"number":               {`5`, `a plan is an object`},
		"id, case":             {ref("$ref:Fetch_Page.x"), `did you mean "$ref:fetch_page.x"?`},
		"id, underscore":       {ref("$ref:fetchpage"), `did you mean "$ref:fetch_page"?`},
		"id, two letters":      {ref("$ref:fetch_paeg"), `did you mean "$ref:fetch_page"?`},
		"id, swapped":          {ref("$ref:fecth_page"), `did you mean "$ref:fetch_page"?`},
		"id, part":             {ref("$ref:page_fetch_page_1"), `did you mean "$ref:fetch_page"?`},
		"id, short":            {ref("$ref:s2"), `did you mean "$ref:s1"?`},
		"id, nothing like it":  {ref("$ref:zzzzzzzz"), `the steps are: fetch_page, s1, b`},
		"tool, case":           {call("GetWeather"), `did you mean "get_weather"?`},
		"tool, letter":         {call("get_weathr"), `did you mean "get_weather"?`},
		"tool, part":           {call("weather"), `did you mean "get_weather"?`},
		"tool, nothing like":   {call("translate"), `there are: add, echo, get_weather`},
		"tool, blanks":         {call("get weather"), `did you mean "get_weather"?`},
		"tool, no name at all": {call("???"), `a tool's name is 1 to 128`},
		"text follows":         {ref("$ref:s1.x, and"), ""},
		"comma in whole":       {ref("$ref:s1.x,"), "${ref:s1.x}"},
		"suffix in text":       {ref("see $ref:s1.x/y now"), "${ref:s1.x}"},
		"no id in text":        {ref("see $ref: now"), "$$ref:"},
		"query":                {ref("$ref:s1.x.#(a==1)"), "no queries"},
		"wildcard":             {ref("$ref:s1.x.*"), "write [*]"},
		"pipe":                 {ref("$ref:s1.x|@reverse"), "no queries"},
		"function":             {ref("$ref:s1.length()"), "functions don't exist"},
		"negative":             {ref("$ref:s1[-1]"), "negative indexes"},
		"alternatives in text": {ref("x ${ref:s1 || fetch_page}"), "alternatives have to be the whole string"},
		"broken alternative":   {ref("$ref:s1 || $ref:fetch_page[x]"), "negative indexes"},
		"arguments by ref":     {steps(a + `,{"id":"b","tool":"echo","arguments":"${ref:s1.x}"}`), `{"$ref": "s1.x"}`},
		"arguments twice":      {steps(`{"id":"b","tool":"echo","arguments":"\"{}\""}`), "encoded twice"},
		"arguments in a fence": {steps("{\"id\":\"b\",\"tool\":\"echo\",\"arguments\":\"```{}```\"}"), "without the ```"},
		"arguments in python":  {steps(`{"id":"b","tool":"echo","arguments":"{'x':1}"}`), `write "arguments"`},
		"id":                   {steps(`{"id":"b c","tool":"echo"}`), `as in "b_c"`},
		"id too long":          {steps(`{"id":"` + strings.Repeat("é", 65) + `","tool":"echo"}`), "1 to 64"},
		"depends_on by ref":    {steps(a + `,{"id":"b","tool":"echo","depends_on":["$ref:s1"]}`), `write the id alone: "s1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := plan.Parse([]byte(c.plan), corpusTools(t))
			if c.says == "" {
				require.NotNil(t, p)
				return
			}
			require.Len(t, r.Problems, 1, "%v", r.Problems)
			require.Contains(t, r.Problems[0].Hint, c.says)
			require.Less(t, len(r.Problems[0].Message)+len(r.Problems[0].Hint), 600)
		})
	}
}

func TestHintsWithoutTools(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"x"}`)), catalog{})
	require.Equal(t, "no tools are registered", r.Problems[0].Hint)
	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"x y"}`)), nil)
	require.Contains(t, r.Problems[0].Hint, "1 to 128")
	p, _ := plan.Parse([]byte(steps(`{"id":"a","tool":"anything"}`)), nil)
	require.NotNil(t, p, "without a catalog any tool will do")
}

func TestPositionOfASyntaxError(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte("{\n \"steps\": [\n  {\"id\": oops}\n]}"), nil)
	require.Contains(t, r.Problems[0].Message, "line 3, column 10")
}
