package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

func parse(t *testing.T, raw string) *tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition([]byte(raw))
	require.NoError(t, err)
	return d
}

// refused parses a definition that must be refused, and gives the message.
func refused(t *testing.T, raw string) string {
	t.Helper()
	d, err := tool.ParseDefinition([]byte(raw))
	require.Error(t, err, "accepted: %s", raw)
	require.Nil(t, d)
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	return fault.As(err).Message
}

func TestFormsComeToTheSameDefinition(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}`
	forms := map[string]string{
		"mcp":           `{"name":"get_weather","description":"Weather","inputSchema":` + schema + `}`,
		"anthropic":     `{"name":"get_weather","description":"Weather","input_schema":` + schema + `}`,
		"openai":        `{"type":"function","function":{"name":"get_weather","description":"Weather","parameters":` + schema + `}}`,
		"openai flat":   `{"type":"function","name":"get_weather","description":"Weather","parameters":` + schema + `}`,
		"white space":   ` { "description" : "Weather", "name" : "get_weather", "inputSchema" : ` + strings.ReplaceAll(schema, ",", " ,\n ") + `}`,
		"nulls":         `{"name":"get_weather","description":"Weather","annotations":null,"inputSchema":` + schema + `}`,
		"two the same":  `{"name":"get_weather","description":"Weather","inputSchema":` + schema + `,"parameters":` + schema + `}`,
		"name, outside": `{"type":"function","name":"get_weather","function":{"description":"Weather","parameters":` + schema + `}}`,
	}
	want := parse(t, forms["mcp"])
	require.JSONEq(t, schema, string(want.InputSchema))
	for name, raw := range forms {
		t.Run(name, func(t *testing.T) {
			d := parse(t, raw)
			require.Equal(t, want.Digest(), d.Digest())
			out, err := json.Marshal(d)
			require.NoError(t, err)
			require.JSONEq(t, forms["mcp"], string(out))
		})
	}
}

func TestDefinitionKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	raw := `{"name":"a","_meta":{"x":1e400},"icons":[],"annotations":{"title":"A","readOnlyHint":true,"openWorldHint":false},
		"x-orchestration":{"mode":"parallel-safe","cost":{"usd":2}},"tenants":["acme"],"outputSchema":{"type":"string"}}`
	d := parse(t, raw)
	out, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, strings.ReplaceAll(raw, "1e400", "1"), strings.ReplaceAll(string(out), "1e400", "1"))
	require.Contains(t, string(out), "1e400")

	var again tool.Definition
	require.NoError(t, json.Unmarshal(out, &again))
	require.Equal(t, d.Digest(), again.Digest())
	require.True(t, again.AllowedFor("acme"))
	require.False(t, again.AllowedFor("other"))
	require.True(t, parse(t, `{"name":"b"}`).AllowedFor("other"))
}

func TestContractMayStandInTheSchema(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"name":"a","inputSchema":{"type":"object","x-orchestration":{"max_concurrency":7}}}`,
		`{"type":"function","function":{"name":"a","parameters":{"type":"object"},"x-orchestration":{"max_concurrency":7}}}`,
		`{"type":"function","x-orchestration":{"max_concurrency":7},"function":{"name":"a"}}`,
		`{"name":"a","x-orchestration":{"max_concurrency":7},"inputSchema":{"type":"object","x-orchestration":{"max_concurrency": 7}}}`,
	} {
		c, err := parse(t, raw).Contract()
		require.NoError(t, err)
		require.Equal(t, 7, c.Limit, raw)
	}
}

func TestRefusedDefinitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, says string }{
		"empty":                {``, "ends too early"},
		"not an object":        {`[]`, "must be an object"},
		"null":                 {`null`, "must be an object"},
		"no name":              {`{}`, "no tool name"},
		"bad name":             {`{"name":"get weather"}`, `"get weather" is no tool name`},
		"wildcard name":        {`{"name":"*"}`, "no tool name"},
		"long name":            {`{"name":"` + strings.Repeat("a", 129) + `"}`, "no tool name"},
		"name is a number":     {`{"name":7}`, "name: must be a string"},
		"key twice":            {`{"name":"a","name":"b"}`, `"name" is used twice`},
		"trailing bytes":       {`{"name":"a"} x`, "unexpected"},
		"misspelt contract":    {`{"name":"a","x_orchestration":{}}`, `did you mean "x-orchestration"`},
		"misspelt schema":      {`{"name":"a","inputSchemas":{}}`, `did you mean "inputSchema"`},
		"misspelt hint":        {`{"name":"a","annotations":{"read_only_hint":true}}`, `did you mean "readOnlyHint"`},
		"hint is a string":     {`{"name":"a","annotations":{"readOnlyHint":"yes"}}`, "annotations.readOnlyHint: must be true or false"},
		"two schemas":          {`{"name":"a","inputSchema":{"type":"object"},"parameters":{"type":"object","title":"x"}}`, "they differ"},
		"two contracts":        {`{"name":"a","x-orchestration":{"max_concurrency":1},"inputSchema":{"x-orchestration":{"max_concurrency":2}}}`, "they differ"},
		"two names":            {`{"name":"a","function":{"name":"b"}}`, "they differ"},
		"function is a string": {`{"function":"a"}`, "function: must be an object"},
		"tenant":               {`{"name":"a","tenants":["a.b"]}`, `"a.b" is no tenant`},
		"schema is a string":   {`{"name":"a","inputSchema":"x"}`, "inputSchema: the schema is not valid"},
		"schema of a string":   {`{"name":"a","inputSchema":{"type":"string"}}`, `"type" has to be "object"`},
		"schema refuses all":   {`{"name":"a","inputSchema":false}`, `"type" has to be "object"`},
		"remote ref":           {`{"name":"a","inputSchema":{"$ref":"https://example.com/x.json"}}`, "stand alone"},
		"file ref":             {`{"name":"a","inputSchema":{"properties":{"x":{"$ref":"file:///etc/passwd"}}}}`, "stand alone"},
		"deep":                 {`{"name":"a","_meta":` + strings.Repeat("[", 500_000), "deep"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, refused(t, c.raw), c.says)
		})
	}
	require.Contains(t, refused(t, `{"name":"a","description":"`+strings.Repeat("x", tool.MaxDefinition)+`"}`), "at most")
}

func TestParseDefinitions(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`[{"name":"a"},{"name":"b"}]`, `{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"x"}`} {
		list, err := tool.ParseDefinitions([]byte(raw))
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, "b", list[1].Name)
	}
	for raw, says := range map[string]string{
		`{"name":"a"}`:                "neither a JSON array",
		`7`:                           "neither a JSON array",
		`[{"name":"a"},{"name":""}]`:  "tool number 2: ",
		`[{"name":"a"},{"name":"a"}]`: `1 and 2 are both named "a"`,
		`[{"name":"a"},{"name":"b"]`:  "no JSON, in line 1: ",
		"\xef\xbb\xbf" + `[]`:         "a byte order mark", "\xff\xfe[\x00]\x00": "a byte order mark",
		"{\"tools\":[\n{\"name\":\"a\",\n\"x\":]}": "no JSON, in line 3: ",
	} {
		_, err := tool.ParseDefinitions([]byte(raw))
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), raw)
		require.ErrorContains(t, err, says)
	}
	list, err := tool.ParseDefinitions([]byte(`[]`))
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestSplitDefinitions(t *testing.T) {
	t.Parallel()
	for raw, n := range map[string]int{
		`[{"name":"a"},7]`: 2, `{"tools":[{"name":""}]}`: 1, `{"name":"a"}`: 1, `{"type":"function","function":{"name":"a"}}`: 1, `[]`: 0, `{"name":"a","tools":[]}`: 0,
	} {
		list, err := tool.SplitDefinitions([]byte(raw))
		require.NoError(t, err, raw)
		require.Len(t, list, n, raw)
	}
	for raw, place := range map[string]string{`{"name":"a"}`: "", `[{"name":"a"}]`: "/0", " {\"tools\":[{\"name\":\"a\"}]}": "/tools/0"} {
		list, err := tool.SplitDefinitions([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, place, tool.PlaceOf([]byte(raw), list, 0), raw)
	}
	for _, raw := range []string{``, `7`, `{}`, `{"tools":{}}`} {
		_, err := tool.SplitDefinitions([]byte(raw))
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), raw)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	a := parse(t, `{"name":"a","inputSchema":{"type":"object","properties":{"x":{"maximum":1.0}}}}`)
	require.Len(t, a.Digest(), 64)
	require.Equal(t, a.Digest(), parse(t, `{"inputSchema":{"properties":{"x":{"maximum":1.0}},"type":"object"},"name":"a"}`).Digest())
	require.NotEqual(t, a.Digest(), parse(t, `{"name":"a","inputSchema":{"type":"object","properties":{"x":{"maximum":2.0}}}}`).Digest())
	require.NotEqual(t, a.Digest(), parse(t, `{"name":"a","x-orchestration":{},"inputSchema":{"type":"object","properties":{"x":{"maximum":1.0}}}}`).Digest())
}

func ExampleParseDefinition() {
	d, err := tool.ParseDefinition([]byte(`{
		"name": "get_weather",
		"inputSchema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
		"annotations": {"readOnlyHint": true},
		"x-orchestration": {"max_concurrency": 10, "timeout_ms": 5000}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := d.Contract()
	fmt.Println(d.Name, c.Mode, c.Limit, c.MaxAttempts, c.Timeout, err)
	// Output: get_weather parallel-safe 10 3 5s <nil>
}
