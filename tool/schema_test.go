package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

func compile(t testing.TB, raw string) *tool.Schema {
	t.Helper()
	s, err := tool.CompileSchema([]byte(raw))
	require.NoError(t, err)
	return s
}

// lines writes violations as "pointer: message" for comparison.
func lines(list []tool.Violation) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, v.Pointer+": "+v.Message)
	}
	return out
}

func TestCheckMessages(t *testing.T) {
	t.Parallel()
	props := func(s string) string { return `{"type":"object","properties":` + s + `}` }
	for name, c := range map[string]struct {
		schema, value string
		want          []string
	}{
		"valid":             {props(`{"x":{"type":"string"}}`), `{"x":"a"}`, nil},
		"wrong type":        {props(`{"x":{"type":"string"}}`), `{"x":5}`, []string{"/x: must be a string, not a number: 5"}},
		"two types":         {props(`{"x":{"type":["integer","null"]}}`), `{"x":"5"}`, []string{`/x: must be null or an integer, not a string: "5"`}},
		"not an object":     {`{"type":"object"}`, `[1]`, []string{": must be an object"}},
		"missing":           {`{"required":["x","y"],"properties":{"x":{"type":"string","description":"The city"}}}`, `{}`, []string{`: the required property "x" is missing (string: The city)`, `: the required property "y" is missing`}},
		"missing by $ref":   {`{"required":["x"],"properties":{"x":{"$ref":"#/$defs/u"}},"$defs":{"u":{"type":"string","enum":["C","F"]}}}`, `{}`, []string{`: the required property "x" is missing (string: one of "C", "F")`}},
		"superfluous":       {`{"properties":{"city":{},"unit":{}},"additionalProperties":false}`, `{"citty":1,"zzzz":2}`, []string{`/citty: there is no property "citty"; there is "city" and "unit"`, `/zzzz: there is no property "zzzz"; there is "city" and "unit"`}},
		"enum":              {props(`{"x":{"enum":["a",1,null]}}`), `{"x":"b"}`, []string{`/x: must be one of "a", 1, null, but is "b"`}},
		"const":             {props(`{"x":{"const":{"a":1}}}`), `{"x":{}}`, []string{`/x: must be {"a":1}, but is {}`}},
		"minimum":           {props(`{"x":{"minimum":0.5}}`), `{"x":0.25}`, []string{"/x: must be at least 0.5, but is 0.25"}},
		"maximum":           {props(`{"x":{"maximum":10}}`), `{"x":11}`, []string{"/x: must be at most 10, but is 11"}},
		"exclusive":         {props(`{"x":{"exclusiveMinimum":0,"exclusiveMaximum":0}}`), `{"x":0}`, []string{"/x: must be less than 0, but is 0", "/x: must be more than 0, but is 0"}},
		"multiple":          {props(`{"x":{"multipleOf":3}}`), `{"x":4}`, []string{"/x: must be a multiple of 3, but is 4"}},
		"length":            {props(`{"x":{"minLength":3},"y":{"maxLength":1}}`), `{"x":"é","y":"éé"}`, []string{"/x: has 1 characters, at least 3 are needed", "/y: has 2 characters, at most 1 are allowed"}},
		"pattern":           {props(`{"x":{"pattern":"^[a-z]+$"}}`), `{"x":"A"}`, []string{`/x: does not match the pattern ^[a-z]+$, but is "A"`}},
		"items":             {props(`{"x":{"items":{"type":"integer"},"minItems":1}}`), `{"x":[1,"2",3.0,3.5]}`, []string{`/x/1: must be an integer, not a string: "2"`, "/x/3: must be an integer, not a number: 3.5"}},
		"counts":            {props(`{"x":{"minItems":2},"y":{"maxItems":0},"z":{"minProperties":1}}`), `{"x":[],"y":[1],"z":{}}`, []string{"/x: has 0 items, at least 2 are needed", "/y: has 1 items, at most 0 are allowed", "/z: has 0 properties, at least 1 are needed"}},
		"max properties":    {`{"maxProperties":0}`, `{"x":1}`, []string{": has 1 properties, at most 0 are allowed"}},
		"unique":            {props(`{"x":{"uniqueItems":true}}`), `{"x":[1,2,1.0]}`, []string{"/x: items 0 and 2 are equal, but all must differ"}},
		"contains":          {props(`{"x":{"contains":{"type":"string"}}}`), `{"x":[1]}`, []string{`/x: no item fits the schema under "contains"`}},
		"min contains":      {props(`{"x":{"contains":{"type":"string"},"minContains":2,"maxContains":3}}`), `{"x":["a"]}`, []string{`/x: 1 items fit the schema under "contains", at least 2 must`}},
		"max contains":      {props(`{"x":{"contains":{"type":"string"},"maxContains":1}}`), `{"x":["a","b"]}`, []string{`/x: 2 items fit the schema under "contains", at most 1 may`}},
		"any of":            {props(`{"x":{"anyOf":[{"type":"string"},{"type":"null"}]}}`), `{"x":1}`, []string{"/x: fits none of the alternatives of anyOf: must be a string, not a number; or must be null, not a number"}},
		"any of one":        {props(`{"x":{"anyOf":[{"type":"string"}]}}`), `{"x":1}`, []string{"/x: must be a string, not a number: 1"}},
		"any of objects":    {`{"anyOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]},{"additionalProperties":false}]}`, `{"b":1}`, []string{`: fits none of the alternatives of anyOf: the required property "a" is missing; or /b must be a string, not a number; or there is no property "b"`}},
		"one of none":       {props(`{"x":{"oneOf":[{"type":"string"},{"type":"null"}]}}`), `{"x":1}`, []string{"/x: fits none of the alternatives of oneOf: must be a string, not a number; or must be null, not a number"}},
		"one of two":        {props(`{"x":{"oneOf":[{"type":"number"},{"minimum":0}]}}`), `{"x":1}`, []string{"/x: fits alternatives 0 and 1 of oneOf, but may fit only one"}},
		"all of":            {`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, []string{`: the required property "a" is missing`, `: the required property "b" is missing`}},
		"not":               {props(`{"x":{"not":{"type":"string"}}}`), `{"x":"a"}`, []string{`/x: must not be like this: it fits the schema under "not"`}},
		"false":             {props(`{"x":false}`), `{"x":1}`, []string{"/x: is not allowed here"}},
		"then":              {`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{`: the required property "b" is missing`}},
		"dependent":         {`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{`: with "a" it needs "b" too`}},
		"dependencies":      {`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"a":1}`, []string{`: with "a" it needs "b" too`}},
		"property names":    {`{"propertyNames":{"pattern":"^a"}}`, `{"b":1}`, []string{`: "b" is not allowed as a property's name`}},
		"additional items":  {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"items":[{}],"additionalItems":false}}}`, `{"x":[1,2,3]}`, []string{"/x: has 2 items too many"}},
		"unevaluated":       {`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1,"b":1}`, []string{"/b: is not allowed here"}},
		"format, draft 7":   {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"format":"date"}}}`, `{"x":"yesterday"}`, []string{`/x: is not a valid date, but is "yesterday"`}},
		"format, 2020":      {props(`{"x":{"format":"date"}}`), `{"x":"yesterday"}`, nil},
		"meta-schema":       {props(`{"x":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}`), `{"x":{"type":"string"}}`, nil},
		"pointer is quoted": {props(`{"a/b~c":{"type":"string"}}`), `{"a/b~c":1}`, []string{"/a~1b~0c: must be a string, not a number: 1"}},
		"escapes in value":  {props(`{"x":{"const":"é\n"}}`), `{"x":"\u00e9\n"}`, nil},
		"ecma escape":       {props(`{"x":{"pattern":"^\\u00e9\\/$"}}`), `{"x":"é/"}`, nil},
		"self reference":    {`{"$ref":"#"}`, `{}`, []string{": can't be checked: the schema refers to itself without end"}},
		"recursive":         {`{"type":"object","properties":{"n":{"$ref":"#"},"v":{"type":"integer"}}}`, `{"n":{"n":{"v":"x"}}}`, []string{`/n/n/v: must be an integer, not a string: "x"`}},
		"malformed":         {props(`{"x":{}}`), `{"x":`, []string{": the JSON ends too early, at byte 5"}},
		"true":              {`true`, `{"x":1}`, nil},
		"empty":             {`{}`, `{"x":1}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := c.want
			if want == nil {
				want = []string{}
			}
			require.Equal(t, want, lines(compile(t, c.schema).Check([]byte(c.value), nil)))
		})
	}
}

func TestNoSchemaAcceptsAnyObject(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `{"type":"object"}`, `{"type":"object","title":"x","properties":{},"required":[],"additionalProperties":true}`} {
		s := compile(t, raw)
		require.Empty(t, s.Check([]byte(` {"x":1e400}`), nil))
		require.Equal(t, []string{": must be an object"}, lines(s.Check([]byte(`"x"`), nil)))
		require.Equal(t, []string{": must be an object"}, lines(s.Check(nil, nil)))
		require.Empty(t, s.Check([]byte(`null`), []tool.Hole{{}}), "all of it is a reference")
	}
	require.Empty(t, (*tool.Schema)(nil).Check([]byte(`[]`), nil))
}

func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties":{"i":{"type":"integer","maximum":12345678901234567890},"u":{"uniqueItems":true},"p":{"minimum":0,"exclusiveMaximum":1}}}`)
	for value, want := range map[string]int{
		`{"i":12345678901234567890}`: 0, `{"i":12345678901234567891}`: 1, `{"i":1.0}`: 0, `{"i":1e2}`: 0, `{"i":1.5}`: 1,
		`{"u":[12345678901234567890,12345678901234567891]}`: 0, `{"u":[1,1.0]}`: 1, `{"u":[1e400,1e401]}`: 0,
		`{"p":1e-400}`: 0, `{"p":1e-99999999999999999999}`: 0, `{"p":-1e-600}`: 1, `{"i":1e99999999999999999999}`: 1,
		`{"i":-1e999999999}`: 0, `{"p":0.` + strings.Repeat("0", 2000) + `1}`: 0, `{"p":` + strings.Repeat("9", 5000) + `}`: 1,
		`{"p":0.` + strings.Repeat("0", 600) + `5e600}`: 0, `{"i":1.` + strings.Repeat("0", 600) + `}`: 0, `{"p":0e99999}`: 0,
	} {
		require.Len(t, s.Check([]byte(value), nil), want, value[:min(len(value), 80)])
	}
}

func TestHoles(t *testing.T) {
	t.Parallel()
	hole := func(p string) []tool.Hole { return []tool.Hole{{Pointer: p}} }
	text := func(p string) []tool.Hole { return []tool.Hole{{Pointer: p, Text: true}} }
	const object = `{"type":"object","properties":{"s":{"type":"string","minLength":3},"n":{"type":"number"},
		"o":{"type":"object","required":["k"],"properties":{"k":{"type":"integer"},"l":{}},"additionalProperties":false},
		"a":{"items":{"type":"integer"},"uniqueItems":true,"maxItems":2},"no":false},"required":["s"]}`
	for name, c := range map[string]struct {
		schema, value string
		holes         []tool.Hole
		want          []string
	}{
		"at the hole":              {object, `{"s":null}`, hole("/s"), nil},
		"elsewhere":                {object, `{"s":null,"n":"x"}`, hole("/s"), []string{`/n: must be a number, not a string: "x"`}},
		"missing beside":           {object, `{"n":null}`, hole("/n"), []string{`: the required property "s" is missing (string)`}},
		"missing around":           {object, `{"s":"abc","o":{"l":null}}`, hole("/o/l"), []string{`/o: the required property "k" is missing (integer)`}},
		"superfluous":              {object, `{"s":"abc","o":{"k":1,"z":null}}`, hole("/o/z"), []string{`/o/z: there is no property "z"; there is "k" and "l"`}},
		"inside the hole":          {object, `{"s":"abc","o":{"$ref":"a"}}`, hole("/o"), nil},
		"text where number":        {object, `{"s":"abc","n":""}`, text("/n"), []string{"/n: must be a number, not a string"}},
		"text too short":           {object, `{"s":""}`, text("/s"), nil},
		"text where object":        {object, `{"s":"abc","o":""}`, text("/o"), []string{"/o: must be an object, not a string"}},
		"the whole":                {object, `null`, hole(""), nil},
		"item":                     {object, `{"s":"abc","a":[null,"x"]}`, hole("/a/0"), []string{`/a/1: must be an integer, not a string: "x"`}},
		"unique with hole":         {object, `{"s":"abc","a":[null,null]}`, hole("/a/0"), []string{"/a/1: must be an integer, not null"}},
		"too many items":           {object, `{"s":"abc","a":[null,1,2]}`, hole("/a/0"), []string{"/a: has 3 items, at most 2 are allowed"}},
		"no value will do":         {object, `{"s":"abc","no":null}`, hole("/no"), []string{"/no: is not allowed here"}},
		"like-named neighbour":     {object, `{"s":1,"s2":null}`, hole("/s2"), []string{"/s: must be a string, not a number: 1"}},
		"any of above":             {`{"anyOf":[{"properties":{"x":{"type":"integer"}}},{"required":["y"]}]}`, `{"x":null}`, hole("/x"), nil},
		"any of elsewhere":         {`{"properties":{"x":{},"y":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"x":null,"y":""}`, hole("/x"), []string{"/y: fits none of the alternatives of anyOf: must be an integer, not a string; or must be null, not a string"}},
		"any of one above":         {`{"anyOf":[{"properties":{"x":{"type":"integer"}}}]}`, `{"x":null}`, hole("/x"), nil},
		"one of above":             {`{"oneOf":[{"properties":{"x":{"type":"integer"}}},{"properties":{"x":{"type":"string"}}}]}`, `{"x":null}`, hole("/x"), nil},
		"all of above":             {`{"allOf":[{"properties":{"x":{"type":"integer"}}},{"required":["y"]}]}`, `{"x":null}`, hole("/x"), []string{`: the required property "y" is missing`}},
		"not above":                {`{"not":{"properties":{"x":{"type":"null"}}}}`, `{"x":null}`, hole("/x"), nil},
		"not elsewhere":            {`{"properties":{"y":{"not":{"type":"null"}}}}`, `{"x":null,"y":null}`, hole("/x"), []string{`/y: must not be like this: it fits the schema under "not"`}},
		"const above":              {`{"properties":{"o":{"const":{"x":1}}}}`, `{"o":{"x":null}}`, hole("/o/x"), nil},
		"enum above":               {`{"properties":{"o":{"enum":[{"x":1}]}}}`, `{"o":{"x":null}}`, hole("/o/x"), nil},
		"contains above":           {`{"properties":{"a":{"contains":{"const":5}}}}`, `{"a":[1,null]}`, hole("/a/1"), nil},
		"max contains above":       {`{"properties":{"a":{"contains":{"type":"null"},"maxContains":1}}}`, `{"a":[null,null]}`, hole("/a/1"), nil},
		"if decided by the hole":   {`{"if":{"properties":{"k":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"k":null}`, hole("/k"), nil},
		"then, far below":          {`{"if":{"properties":{"k":{"const":1}}},"else":{"properties":{"o":{"items":{"type":"string"}}}}}`, `{"k":null,"o":[1]}`, hole("/k"), nil},
		"then, by $ref":            {`{"if":{"properties":{"k":{"const":1}}},"else":{"$ref":"#/$defs/e"},"$defs":{"e":{"required":["b"]}}}`, `{"k":null}`, hole("/k"), nil},
		"if decided elsewhere":     {`{"properties":{"o":{"if":{"properties":{"k":{"const":1}}},"then":{"required":["b"]}}}}`, `{"x":null,"o":{"k":1}}`, hole("/x"), []string{`/o: the required property "b" is missing`}},
		"if within an if":          {`{"if":{"properties":{"x":{"const":1}}},"else":{"properties":{"o":{"$ref":"#/$defs/d"}}},"$defs":{"d":{"if":{"required":["k"]},"then":{"required":["b"]}}}}`, `{"x":null,"o":{"k":1}}`, hole("/x"), nil},
		"property named then":      {`{"properties":{"then":{"type":"object","required":["b"]}}}`, `{"then":{"a":null}}`, hole("/then/a"), []string{`/then: the required property "b" is missing`}},
		"unevaluated":              {`{"anyOf":[{"properties":{"k":{"const":1},"b":{}},"required":["k"]},{"properties":{"k":{}}}],"unevaluatedProperties":false}`, `{"k":null,"b":1}`, hole("/k"), nil},
		"unevaluated, certain":     {`{"properties":{"o":{"properties":{"k":{}},"unevaluatedProperties":false}}}`, `{"x":null,"o":{"b":1}}`, hole("/x"), []string{"/o/b: is not allowed here"}},
		"property name":            {`{"propertyNames":{"pattern":"^a"}}`, `{"b":null}`, hole("/b"), []string{`: "b" is not allowed as a property's name`}},
		"dependent required":       {`{"dependentRequired":{"a":["b"]}}`, `{"a":null}`, hole("/a"), []string{`: with "a" it needs "b" too`}},
		"type around":              {`{"properties":{"o":{"type":"array"}}}`, `{"o":{"x":null}}`, hole("/o/x"), []string{"/o: must be an array, not an object"}},
		"hole under escaped names": {`{"properties":{"a/b":{"type":"integer"}}}`, `{"a/b":null}`, hole("/a~1b"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := c.want
			if want == nil {
				want = []string{}
			}
			require.Equal(t, want, lines(compile(t, c.schema).Check([]byte(c.value), c.holes)))
		})
	}
}

func TestManyViolationsAreCapped(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties":{"a":{"items":{"type":"string"}}}}`)
	value := `{"a":[` + strings.Repeat("1,", 9999) + `1]}`
	require.Len(t, s.Check([]byte(value), nil), tool.MaxViolations)
}

func TestSchemasThatAreRefused(t *testing.T) {
	t.Parallel()
	var patterns strings.Builder
	for i := range 30 {
		fmt.Fprintf(&patterns, `{"pattern":"[a-z]{9%02d}"},`, i)
	}
	for name, c := range map[string]struct{ schema, says string }{
		"string":          {`"x"`, "an object, true or false"},
		"null":            {`null`, "an object, true or false"},
		"malformed":       {`{"type":`, "ends too early"},
		"key twice":       {`{"type":"object","type":"object"}`, `"type" is used twice`},
		"unknown type":    {`{"properties":{"x":{"type":"strin"}}}`, `at "/properties/x/type"`},
		"type 5":          {`{"type":5}`, `at "/type"`},
		"draft 4 bound":   {`{"properties":{"x":{"exclusiveMinimum":true}}}`, `must be a number, not a boolean`},
		"http":            {`{"$ref":"http://127.0.0.1:1/x"}`, "stand alone"},
		"file":            {`{"$ref":"/etc/passwd"}`, "stand alone"},
		"custom meta":     {`{"$schema":"http://127.0.0.1:1/meta"}`, "stand alone"},
		"nowhere":         {`{"$ref":"#/$defs/x"}`, "leads to nothing"},
		"anchor":          {`{"$ref":"#x"}`, "names no"},
		"look-ahead":      {`{"properties":{"x":{"pattern":"(?=a)"}}}`, "has a look-ahead"},
		"huge pattern":    {`{"properties":{"x":{"pattern":"((a{100}){10}b){500}"}}}`, ""},
		"many patterns":   {`{"allOf":[` + patterns.String() + `true]}`, "too large"},
		"too many nodes":  {`{"allOf":[` + strings.Repeat(`{},`, tool.MaxSchemaNodes) + `true]}`, "at most 8192"},
		"too large":       {`{"description":"` + strings.Repeat("x", tool.MaxSchema) + `"}`, "at most"},
		"too deep":        {strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), "deep"},
		"bracket bomb":    {strings.Repeat(`[`, 200_000), "deep"},
		"id of no url":    {`{"$id":"::"}`, ""},
		"ids twice":       {`{"$id":"a","properties":{"x":{"$id":"b"},"y":{"$id":"b"}}}`, ""},
		"escape cut off":  {`{"title":"\u12"}`, "bad escape"},
		"control byte":    {"{\"title\":\"\n\"}", "unexpected"},
		"unclosed string": {`{"title":"x`, "too early"},
		"bad number":      {`{"minimum":01}`, "unexpected"},
		"bad word":        {`{"x":nul}`, "unexpected"},
		"trailing comma":  {`{"x":[1,]}`, "unexpected"},
		"no colon":        {`{"x" 1}`, "unexpected"},
		"no comma":        {`{"x":[1 2]}`, "unexpected"},
		"key no string":   {`{1:2}`, "unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tool.CompileSchema([]byte(c.schema))
			require.Error(t, err)
			require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
			require.Contains(t, err.Error(), c.says)
			require.NotContains(t, err.Error(), "stepjet.invalid")
			require.Less(t, len(err.Error()), 600)
		})
	}
}

// A chain of definitions that each refer twice to the next is 2^n evaluations: minutes and years for a few lines.
func TestCheckEndsWhateverTheSchemaAsks(t *testing.T) {
	t.Parallel()
	var inPlace, down strings.Builder
	for i := range 60 {
		fmt.Fprintf(&inPlace, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		fmt.Fprintf(&down, `"d%d":{"items":{"$ref":"#/$defs/d%d"},"contains":{"$ref":"#/$defs/d%d"}},`, i, i+1, i+1)
	}
	for name, c := range map[string]struct{ schema, value string }{
		"in place":     {`{"$ref":"#/$defs/d0","$defs":{` + inPlace.String() + `"d60":{"required":["x"]}}}`, `{}`},
		"within not":   {`{"not":{"$ref":"#/$defs/d0"},"$defs":{` + inPlace.String() + `"d60":{}}}`, `{}`},
		"down arrays":  {`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + down.String() + `"d60":{}}}`, `{"a":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}`},
		"dynamic refs": {`{"$dynamicAnchor":"r","properties":{"a":{"allOf":[{"$dynamicRef":"#r"},{"$dynamicRef":"#r"}]}}}`, strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, c.schema)
			start := time.Now()
			require.Equal(t, []string{": the schema takes too many steps to check against this value"}, lines(s.Check([]byte(c.value), nil)))
			require.Less(t, time.Since(start), 20*time.Second)
			require.Equal(t, []string{": must be an object"}, lines(compile(t, ``).Check([]byte(`1`), nil)))
		})
	}
}

// Without any reference, too, a short schema can ask for more than anybody should wait for. The verdict counts steps,
// and so is the same whatever else the machine has to do.
func TestCheckCountsSteps(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	list := func(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	for name, c := range map[string]struct{ schema, value string }{
		"contains":     {`{"allOf":[` + many(200, `{"contains":{"const":%d}}`) + `]}`, list(100_000, `"x"`)},
		"types":        {`{"anyOf":[` + many(200, `{"contains":{"type":"string","maxLength":%d}}`) + `]}`, list(100_000, `1`)},
		"enum":         {`{"items":{"enum":[` + many(20_000, `%d`) + `]}}`, list(50_000, `19999`)},
		"pattern":      {`{"items":{"pattern":"^(a?){500}(a?){500}a$"}}`, list(2, `"`+strings.Repeat("a", 400_000)+`"`)},
		"names":        {`{"patternProperties":{` + many(100, `"^(a|b){20}%d":{}`) + `}}`, `{` + many(20_000, `"k%d":1`) + `}`},
		"unique":       {`{"allOf":[` + many(300, `{"uniqueItems":true,"title":"%d"}`) + `]}`, list(100, list(1_000, `1`))},
		"alternatives": {`{"items":{"oneOf":[` + many(1_000, `{"type":"object","required":["k%d"]}`) + `]}}`, list(50_000, `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, c.schema)
			require.Less(t, len(c.value), 1<<20)
			start := time.Now()
			for range 2 {
				require.Equal(t, []string{": the schema takes too many steps to check against this value"}, lines(s.Check([]byte(c.value), nil)))
			}
			t.Log(time.Since(start) / 2)
			require.Less(t, time.Since(start), 60*time.Second) // a second and less, without the race detector and other load
		})
	}
	fits := compile(t, `{"items":{"anyOf":[{"type":"object","properties":{"a":{"enum":[1,2,3]},"b":{"type":"string","pattern":"^x+$"}},"required":["a"]},{"type":"null"}]},"uniqueItems":false}`)
	require.Empty(t, fits.Check([]byte(list(40_000, `{"a":3,"b":"xxx"}`)), nil), "what tools have is far from the limit")
	steps := 3
	require.NotEmpty(t, fits.CheckWithin([]byte(`[{"a":1}]`), nil, &steps))
	require.LessOrEqual(t, steps, 0)
}

// Thousands of references, each in the place of a value of another type, are told apart quickly.
func TestCheckWithManyHoles(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"type":"object","properties":{"x":{"type":"array","items":{"type":"number"}},"y":{"type":"string"}}}`)
	var b strings.Builder
	holes := make([]tool.Hole, 4096)
	for i := range holes {
		holes[i] = tool.Hole{Pointer: fmt.Sprintf("/x/%d", i)}
		b.WriteString("null,")
	}
	start := time.Now()
	require.Equal(t, []string{`/x/4096: must be a number, not a string: "z"`, "/y: must be a string, not a number: 5"}, lines(s.Check([]byte(`{"x":[`+b.String()+`"z"],"y":5}`), holes)))
	require.Less(t, time.Since(start), 10*time.Second)
}

// A schema with references shares its budget between goroutines; each check must still have one of its own.
func TestCheckFromManyGoroutines(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"n":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`)
	good := []byte(`{"v":1,"n":{"v":2,"n":{"v":3}}}`)
	bad := []byte(`{"v":1,"n":{"v":2,"n":{"v":"3"}}}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if v := s.Check(good, nil); len(v) != 0 {
					t.Errorf("valid value refused: %v", v)
				}
				if v := s.Check(bad, nil); len(v) != 1 || v[0].Pointer != "/n/n/v" {
					t.Errorf("invalid value: %v", v)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}`, `{"x":1}`, "/x")
	f.Add(`{"anyOf":[{"$ref":"#/$defs/a"},{"not":{}}],"$defs":{"a":{"uniqueItems":true}}}`, `{"x":[1,1e5]}`, "")
	f.Add(`{"if":{"minProperties":1},"then":{"multipleOf":1e-5},"else":false}`, `1e-9999`, "/")
	f.Fuzz(func(t *testing.T, schema, value, hole string) {
		s, err := tool.CompileSchema([]byte(schema))
		if err != nil {
			require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
			return
		}
		all := s.Check([]byte(value), nil)
		kept := s.Check([]byte(value), []tool.Hole{{Pointer: hole}})
		if len(all) == 0 && json.Valid([]byte(value)) {
			require.Empty(t, kept, "a hole only ever takes violations away")
		}
		require.LessOrEqual(t, len(kept), len(all))
	})
}

func BenchmarkCheck(b *testing.B) {
	s := compile(b, `{"type":"object","properties":{"location":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["location"],"additionalProperties":false}`)
	value := []byte(`{"location":"Tokyo","days":3}`)
	b.ReportAllocs()
	for b.Loop() {
		if v := s.Check(value, nil); len(v) > 0 {
			b.Fatal(v)
		}
	}
}

func BenchmarkCompileSchema(b *testing.B) {
	raw := []byte(`{"type":"object","properties":{"location":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["location"],"additionalProperties":false}`)
	for b.Loop() {
		if _, err := tool.CompileSchema(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleSchema_Check() {
	s, err := tool.CompileSchema([]byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	// days is a reference that is resolved when the step runs, so only the missing city is certain.
	for _, v := range s.Check([]byte(`{"days":"$ref:plan.days"}`), []tool.Hole{{Pointer: "/days"}}) {
		fmt.Printf("%q %s\n", v.Pointer, v.Message)
	}
	// Output: "" the required property "city" is missing (string)
}
