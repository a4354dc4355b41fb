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

// often parses a definition again and again; whatever is wrong with it has to be said in the same words each time.
func often(t *testing.T, raw string) error {
	t.Helper()
	_, err := tool.ParseDefinition([]byte(raw))
	require.Error(t, err, "accepted: %s", raw)
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	for range 20 {
		_, again := tool.ParseDefinition([]byte(raw))
		require.Equal(t, err.Error(), fmt.Sprint(again))
		require.Equal(t, tool.FlawsOf(err), tool.FlawsOf(again))
	}
	return err
}

// told writes flaws as "place: message (hint)".
func told(list tool.Flaws) []string {
	out := []string{}
	for _, f := range list {
		line := f.Path + ": " + f.Message
		if f.Hint != "" {
			line += " (" + f.Hint + ")"
		}
		out = append(out, line)
	}
	return out
}

const allTypes = "the types are string, number, integer, boolean, object, array and null"

func TestFlawsOfSchemas(t *testing.T) {
	t.Parallel()
	const any = `(for a value of any type leave "type" out)`
	for name, c := range map[string]struct {
		schema string
		want   []string
	}{
		"any":            {`{"properties":{"x":{"type":"any"}}}`, []string{`/properties/x/type: "any" is no type; ` + allTypes + " " + any}},
		"any, among":     {`{"properties":{"x":{"type":["string","any"]}}}`, []string{`/properties/x/type/1: "any" among the types is no type; ` + allTypes + " " + any}},
		"int":            {`{"properties":{"x":{"type":"int"}}}`, []string{`/properties/x/type: "int" is no type; ` + allTypes + ` (write "type": "integer")`}},
		"capital":        {`{"properties":{"x":{"type":"String"}}}`, []string{`/properties/x/type: "String" is no type; ` + allTypes + ` (write "type": "string")`}},
		"misspelt":       {`{"properties":{"x":{"type":"strin"}}}`, []string{`/properties/x/type: "strin" is no type; ` + allTypes + ` (write "type": "string")`}},
		"unheard of":     {`{"properties":{"x":{"type":"qqqqqq"}}}`, []string{`/properties/x/type: "qqqqqq" is no type; ` + allTypes}},
		"type is null":   {`{"properties":{"x":{"type":null}}}`, []string{`/properties/x/type: "type" is null, but has to be the name of a type or an array of them; ` + allTypes + " " + any}},
		"no types":       {`{"properties":{"x":{"type":[]}}}`, []string{`/properties/x/type: "type" is an empty array; ` + allTypes + " " + any}},
		"type of types":  {`{"properties":{"x":{"type":[5]}}}`, []string{`/properties/x/type/0: 5 is no type; ` + allTypes}},
		"required":       {`{"properties":{"x":{"type":"string","required":true}}}`, []string{`/properties/x/required: "required" is true, but has to be an array of the names of properties (leave it out here, and write "required": ["x"] beside the "properties" of the schema)`}},
		"required, deep": {`{"properties":{"o":{"properties":{"x":{"required":true}}}}}`, []string{`/properties/o/properties/x/required: "required" is true, but has to be an array of the names of properties (leave it out here, and write "required": ["x"] beside the "properties" of "/properties/o")`}},
		"not required":   {`{"properties":{"x":{"required":false}}}`, []string{`/properties/x/required: "required" is false, but has to be an array of the names of properties (leave it out: what the "required" beside "properties" doesn't name may be absent)`}},
		"all required":   {`{"properties":{"x":{}},"required":true}`, []string{`/required: "required" is true, but has to be an array of the names of properties (write "required": ["…"] with the names of the properties, beside "properties")`}},
		"one required":   {`{"required":"x"}`, []string{`/required: "required" is "x", but has to be an array of the names of properties (write "required": ["x"])`}},
		"null required":  {`{"required":null}`, []string{`/required: "required" is null, but has to be an array of the names of properties (leave "required" out, or write "required": [])`}},
		"5 required":     {`{"required":["a",5]}`, []string{`/required/1: "required" names properties, and 5 is no name (write the name of a property)`}},
		"twice required": {`{"required":["a","a"]}`, []string{`/required: items 0 and 1 are equal, but all must differ`}},
		"properties":     {`{"properties":null}`, []string{`/properties: "properties" is null, but has to be an object of schemas by name (leave "properties" out, or write "properties": {})`}},
		"list of them":   {`{"properties":["x"]}`, []string{`/properties: "properties" is an array, but has to be an object of schemas by name (write an object of schemas by name, such as "properties": {"city": {"type": "string"}})`}},
		"short property": {`{"properties":{"x":"string"}}`, []string{`/properties/x: "string" is no schema; a schema is an object, true or false (write {"type": "string"})`}},
		"null property":  {`{"properties":{"x":null}}`, []string{`/properties/x: null is no schema; a schema is an object, true or false`}},
		"items":          {`{"properties":{"x":{"type":"array","items":"int"}}}`, []string{`/properties/x/items: "int" is no schema; a schema is an object, true or false (write {"type": "integer"})`}},
		"null title":     {`{"title":null}`, []string{`/title: must be a string, not null (null is no value for it; leave "title" out)`}},
		"length":         {`{"properties":{"x":{"minLength":-1}}}`, []string{`/properties/x/minLength: must be at least 0`}},
		"enum":           {`{"properties":{"x":{"enum":"a"}}}`, []string{`/properties/x/enum: must be an array, not a string`}},
		"look-ahead":     {`{"properties":{"x":{"pattern":"^(?=.*[0-9]).+$"}}}`, []string{`/properties/x/pattern: the pattern has a look-ahead, (?=…), and patterns, which are RE2, can't have that (write each condition as a pattern of its own: "allOf": [{"pattern": "…"}, {"pattern": "…"}])`}},
		"negative":       {`{"properties":{"x":{"pattern":"(?!x)"}}}`, []string{`/properties/x/pattern: the pattern has a negative look-ahead, (?!…), and patterns, which are RE2, can't have that (write what must not match beside it: "not": {"pattern": "…"})`}},
		"look-behind":    {`{"properties":{"x":{"pattern":"(?<=x)y"}}}`, []string{`/properties/x/pattern: the pattern has a look-behind, (?<=…), and patterns, which are RE2, can't have that (write what stands before as part of the pattern)`}},
		"back-reference": {`{"properties":{"x":{"pattern":"(a)\\1"}}}`, []string{`/properties/x/pattern: the pattern has a back-reference, \1, and patterns, which are RE2, can't have that (write out what may be repeated, or leave the check to the tool)`}},
		"in a class":     {`{"properties":{"x":{"pattern":"[(?=]("}}}`, []string{"/properties/x/pattern: the pattern can't be read: missing closing ): `[(?=](`"}},
		"named patterns": {`{"patternProperties":{"(?!b)":{},"(?=a)":{"type":"any"}}}`, []string{
			`/patternProperties/(?!b): the pattern has a negative look-ahead, (?!…), and patterns, which are RE2, can't have that (write what must not match beside it: "not": {"pattern": "…"})`,
			`/patternProperties/(?=a): the pattern has a look-ahead, (?=…), and patterns, which are RE2, can't have that (write each condition as a pattern of its own: "allOf": [{"pattern": "…"}, {"pattern": "…"}])`,
			`/patternProperties/(?=a)/type: "any" is no type; ` + allTypes + " " + any}},
		"large patterns": {`{"properties":{"x":{"pattern":"(abcdefghij){999}"},"y":{"pattern":"(bbcdefghij){999}"},"z":{"pattern":"(cbcdefghij){999}"}}}`, []string{
			`/properties/y/pattern: the patterns are too large, at most 20000 instructions are allowed (repeat less often, or check the length with maxLength)`}},
		"references": {`{"properties":{"a":{"$ref":"#/definitions/U"},"b":{"$ref":"#/$defs/Unit"},"c":{"$ref":"#u"},"d":{"$ref":"https://x.example/y"},"e":{"$ref":"#/$defs/q"}},"$defs":{"U":{},"Units":{}}}`, []string{
			`/properties/a/$ref: "$ref": "#/definitions/U" leads to nothing in the schema (did you mean "#/$defs/U"?)`,
			`/properties/b/$ref: "$ref": "#/$defs/Unit" leads to nothing in the schema (did you mean "#/$defs/Units"?)`,
			`/properties/c/$ref: "$ref": "#u" names no "$anchor" of the schema (did you mean "#/$defs/U"?)`,
			`/properties/d/$ref: "$ref": "https://x.example/y" leads out of the schema; a schema has to stand alone, and nothing is loaded from outside (copy what it refers to into "$defs" of this schema, and write "$ref": "#/$defs/NAME")`,
			`/properties/e/$ref: "$ref": "#/$defs/q" leads to nothing in the schema (put the schema that is meant under "$defs", and write "$ref": "#/$defs/q")`}},
		"parts with addresses": {`{"$id":"https://x.example/a","properties":{"b":{"$id":"b","$defs":{"in":{}},"properties":{"ok":{"$ref":"#/$defs/in"},"no":{"$ref":"#/$defs/out"}}},"c":{"$ref":"b"},"d":{"$ref":"#/$defs/in"},"e":{"$ref":"#/$defs/out"}},"$defs":{"out":{}}}`, []string{
			`/properties/b/properties/no/$ref: "$ref": "#/$defs/out" leads to nothing in the schema (put the schema that is meant under "$defs", and write "$ref": "#/$defs/out")`,
			`/properties/d/$ref: "$ref": "#/$defs/in" leads to nothing in the schema (put the schema that is meant under "$defs", and write "$ref": "#/$defs/in")`}},
		"anchors twice": {`{"$defs":{"a":{"$anchor":"q"},"b":{"$anchor":"q"}}}`, []string{`/$defs/b: the "$anchor" "q" is used before, at "/$defs/a" (give one of them another name)`}},
		"ids twice":     {`{"properties":{"x":{"$id":"b"},"y":{"$id":"b"}}}`, []string{`/properties/y: its "$id" is used before, at "/properties/x" (give one of them another address)`}},
		"properties of those names": {`{"properties":{"type":{"type":"any"},"required":{"type":"boolean"},"$ref":{"type":"string"},"pattern":{"enum":["(?="]},"z":{"const":{"type":"any","required":true}}}}`, []string{
			`/properties/type/type: "any" is no type; ` + allTypes + " " + any}},
		"another draft": {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{},{"type":"any"}]}}}`, []string{
			`/properties/a/items/1/type: "any" is no type; ` + allTypes + " " + any}},
		"several": {`{"properties":{"a":{"type":"any"},"b":{"required":true},"c":{"minLength":-1},"d":5}}`, []string{
			`/properties/a/type: "any" is no type; ` + allTypes + " " + any,
			`/properties/b/required: "required" is true, but has to be an array of the names of properties (leave it out here, and write "required": ["b"] beside the "properties" of the schema)`,
			`/properties/c/minLength: must be at least 0`,
			`/properties/d: 5 is no schema; a schema is an object, true or false`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := `{"name":"a","inputSchema":` + c.schema + `}`
			err := often(t, raw)
			want := []string{}
			for _, w := range c.want {
				want = append(want, "/inputSchema"+w)
			}
			require.Equal(t, want, told(tool.FlawsOf(err)))
			require.Contains(t, err.Error(), `tool "a": inputSchema: the schema is not valid: at "`)

			d := parse(t, strings.Replace(raw, "inputSchema", "outputSchema", 1))
			for range 20 {
				require.Equal(t, strings.Split(strings.ReplaceAll(strings.Join(want, "\x00"), "/inputSchema", "/outputSchema"), "\x00"), told(d.Warnings()))
			}
		})
	}
}

func TestFlawsAreBounded(t *testing.T) {
	t.Parallel()
	bad := map[string]any{}
	for i := range 100 {
		bad[fmt.Sprintf("p%03d", i)] = map[string]string{"type": "any"}
	}
	raw, err := json.Marshal(map[string]any{"name": "a", "inputSchema": map[string]any{"properties": bad}})
	require.NoError(t, err)
	list := tool.FlawsOf(often(t, string(raw)))
	require.Len(t, list, tool.MaxFlaws+1)
	require.Equal(t, "and 80 more", list[tool.MaxFlaws].Message)
}

func TestAllFlawsOfADefinition(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		`{"name":"a b","tenants":["x.y"],"inputSchema":{"type":"any"},"x-orchestration":{"mode":"dependent","retry":{"max_attempts":3},"delivery":"at_most_once"}}`: {
			"/name", "/tenants/0", "/inputSchema/type", "/x-orchestration/mode", "/x-orchestration/retry/max_attempts"},
		`{"name":"a","inputSchemas":{},"title":7,"annotations":{"readOnlyHint":"yes","idempotentHint":1},"inputSchema":{"properties":null},"x-orchestration":{"mode":"x","timeout_ms":-1}}`: {
			"/annotations/idempotentHint", "/annotations/readOnlyHint", "/inputSchemas", "/title", "/x-orchestration/mode", "/x-orchestration/timeout_ms", "/inputSchema/properties"},
		`{"name":"a","inputSchema":{"type":"array"},"x-orchestration":{"mode":"dependent"}}`: {"/inputSchema", "/x-orchestration/mode"},
	} {
		err := often(t, raw)
		places := []string{}
		for _, f := range tool.FlawsOf(err) {
			places = append(places, f.Path)
			require.Contains(t, fault.As(err).Message, f.Message)
		}
		require.Equal(t, want, places, raw)
	}
}

func TestAllFlawsOfAllDefinitions(t *testing.T) {
	t.Parallel()
	raw := `[{"name":"a","inputSchema":{"type":"any"}},{"name":"b"},{"name":"c c"},{"name":"b"},7,{"name":"e","inputSchema":{"properties":null}}]`
	_, err := tool.ParseDefinitions([]byte(raw))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	places := []string{}
	for _, f := range tool.FlawsOf(err) {
		places = append(places, f.Path)
	}
	require.Equal(t, []string{"/0/inputSchema/type", "/2/name", "/3/name", "/4", "/5/inputSchema/properties"}, places)
	require.Len(t, strings.Split(fault.As(err).Message, "\n"), 5)
	for range 20 {
		_, again := tool.ParseDefinitions([]byte(raw))
		require.Equal(t, err.Error(), again.Error())
	}
}

func TestAToolThatNoPlanCanCallIsAWarning(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"/name: no plan can call it: execute_tool_plan is the tool by which models hand in plans (give the tool another name)"},
		told(parse(t, `{"name":"execute_tool_plan"}`).Warnings()))
}

func TestABrokenOutputSchemaIsAWarning(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"name":"a","outputSchema":{"type":"strin"}}`)
	require.Equal(t, []string{`/outputSchema/type: "strin" is no type; ` + allTypes + ` (write "type": "string")`}, told(d.Warnings()))
	require.Empty(t, parse(t, `{"name":"a","outputSchema":{"type":"string"}}`).Warnings())
	require.Empty(t, parse(t, `{"name":"a"}`).Warnings())
	require.NotEmpty(t, parse(t, `{"name":"a","outputSchema":"x"}`).Warnings())
	for _, broken := range []string{`{"type":"strin"}`, `"x"`, `7`, `{"properties":null,"oneOf":5}`} {
		promise, _ := parse(t, `{"name":"a","outputSchema":`+broken+`}`).Promise()
		require.Nil(t, promise, broken)
	}
}
