package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// sample is what step "a" came to in the tables below; step "b" came to null and step "gone" to nothing.
const sample = `{"city":"Tokyo","temp":21.50,"big":12345678901234567890,"huge":1e400,"yes":true,"no":null,"text":"say \"hi\"\n\u00e9\\",
 "list":[10,{"id":"x"},[1, 2],null,"5"],"o":{"0":"zero","01":"lead","k e.y":{"z":1},"é":2,"$ref":"x","a\"b":3,"-":4,"":5},"deep":{"a":{"b":[ {"c" : [ 7 ] } ]}}}`

// resolve returns what a value in the arguments of a step comes to, or the code of the error in angle brackets.
func resolve(t *testing.T, value, options string) string {
	t.Helper()
	body := `{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"gone","tool":"t"},
		{"id":"s","tool":"t","arguments":{"v":` + value + `}}]` + options + `}`
	p, r := plan.Parse([]byte(body), nil)
	if p == nil {
		return "<" + strings.Join(codes(r.Problems), " ") + ">"
	}
	args, err := p.Arguments(3, results)
	if err != nil {
		require.NotEmpty(t, err.Message)
		return "<" + string(err.Code) + ">"
	}
	require.True(t, json.Valid(args), "%s", args)
	require.Equal(t, cap(args), len(args), "the size is known before")
	out, ok := strings.CutPrefix(string(args), `{"v":`)
	require.True(t, ok)
	return strings.TrimSuffix(out, "}")
}

func results(dep int) ([]byte, bool) {
	switch dep {
	case 0:
		return []byte(sample), true
	case 1:
		return []byte("null"), true
	}
	return nil, false
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, want string }{
		// Rule 2: whole values keep type and bytes.
		{`"$ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.temp"`, `21.50`},
		{`"$ref:a.big"`, `12345678901234567890`},
		{`"$ref:a.huge"`, `1e400`},
		{`"$ref:a.yes"`, `true`},
		{`"$ref:a.no"`, `null`},
		{`"$ref:a.text"`, `"say \"hi\"\n\u00e9\\"`},
		{`"$ref:a.list"`, `[10,{"id":"x"},[1, 2],null,"5"]`},
		{`"$ref:a.list[2]"`, `[1, 2]`},
		{`"$ref:a.deep.a.b[0].c[0]"`, `7`},
		{`"$ref:a.deep.a.b[0]"`, `{"c" : [ 7 ] }`},
		{`"$ref:a"`, sample},
		{`"$ref:b"`, `null`},
		{`"\u0024ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.o[\"k e.y\"].z"`, `1`},
		{`"$ref:a.o[\"\u00e9\"]"`, `2`},
		{`"$ref:a.o[\"\\u00e9\"]"`, `2`},
		{`"$ref:a.o[\"$ref\"]"`, `"x"`},
		{`"$ref:a.o[\"a\\\"b\"]"`, `3`},
		{`"$ref:a.o[\"\"]"`, `5`},
		{`"$ref:a.o.-"`, `4`},
		{`["$ref:a.city",{"x":"$ref:a.temp"}]`, `["Tokyo",{"x":21.50}]`},

		// Rule 6: digits, indexes, keys.
		{`"$ref:a.list.0"`, `10`},
		{`"$ref:a.list[1].id"`, `"x"`},
		{`"$ref:a.list.00"`, `null`},
		{`"$ref:a.list[5]"`, `null`},
		{`"$ref:a.list.99999999999999999999999"`, `null`},
		{`"$ref:a.list[99999999999999999999999]"`, `null`},
		{`"$ref:a.list[\"0\"]"`, `null`},
		{`"$ref:a.list.id"`, `null`},
		{`"$ref:a.o.0"`, `"zero"`},
		{`"$ref:a.o.01"`, `"lead"`},
		{`"$ref:a.o[\"0\"]"`, `"zero"`},
		{`"$ref:a.o[0]"`, `null`},
		{`"$ref:a.no.x.y"`, `null`},
		{`"$ref:a.list[3].x"`, `null`},
		{`"$ref:b.x"`, `null`},
		{`"$ref:gone.x"`, `null`},
		{`"$ref:a.nope"`, `null`},
		{`"$ref:a.city.x"`, `<unresolved_ref>`},
		{`"$ref:a.temp[0]"`, `<unresolved_ref>`},
		{`"$ref:a.yes.x.y"`, `<unresolved_ref>`},
		{`"$ref:a.list[4].0"`, `<unresolved_ref>`},

		// Rule 1: alternatives.
		{`"$ref:a.nope || $ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.nope||$ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.nope \t||\n\r $ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.no || $ref:a.temp || 5"`, `21.50`},
		{`"$ref:a.no || $ref:gone.x || 5.0"`, `5.0`},
		{`"$ref:a.no || \"none\""`, `"none"`},
		{`"$ref:a.no || \"a \\\"b\\\" $ref:zz\""`, `"a \"b\" $ref:zz"`},
		{`"$ref:a.no || null"`, `null`},
		{`"$ref:a.no || -1e5"`, `-1e5`},
		{`"$ref:a.no || false"`, `false`},
		{`"$ref:a.no || $ref:b"`, `null`},
		{`"$ref:a.city.x || $ref:a.temp"`, `21.50`},
		{`"$ref:a.city.x || 1"`, `1`},
		{`"$ref:a.city.x || $ref:a.temp.y"`, `null`},
		{`"$ref:a.city || x"`, `<invalid_ref>`},
		{`"$ref:a.city || "`, `<invalid_ref>`},
		{`"$ref:a.city ||"`, `<invalid_ref>`},
		{`"$ref:a.city || 01"`, `<invalid_ref>`},
		{`"$ref:a.city || 1 || 2"`, `<invalid_ref>`},
		{`"$ref:a.city || {}"`, `<invalid_ref>`},
		{`"$ref:a.city || $ref:b "`, `<invalid_ref>`},
		{`"$ref:a.city || $ref:b text"`, `<invalid_ref>`},
		{`"$ref:a.city || ${ref:b}"`, `<invalid_ref>`},
		{`"$ref:a.city || \"\\ud800\""`, `<invalid_ref>`},
		{`"$ref:a.city | $ref:b"`, `"Tokyo | null"`},
		{`"$ref:a.city || $ref:zz"`, `<unknown_ref>`},

		// Rule 2: what has no white space outside quotes is one reference or none.
		{`"$ref:a.city,"`, `<invalid_ref>`},
		{`"$ref:a.city."`, `<invalid_ref>`},
		{`"$ref:a.city!"`, `<invalid_ref>`},
		{`"$ref:a/$ref:b"`, `<invalid_ref>`},
		{`"$ref:a[\"x y\"]x"`, `<invalid_ref>`},
		{`"$ref:a\"x y\""`, `<invalid_ref>`},
		{`"$ref:a[\"x"`, `<invalid_ref>`},
		{`"$ref:a[\"x y"`, `<invalid_ref>`},
		{`"$ref:a['x']"`, `<invalid_ref>`},
		{`"$ref:a[x]"`, `<invalid_ref>`},
		{`"$ref:a[]"`, `<invalid_ref>`},
		{`"$ref:a[1.5]"`, `<invalid_ref>`},
		{`"$ref:a[00]"`, `<invalid_ref>`},
		{`"$ref:a[\"\\x\"]"`, `<invalid_ref>`},
		{`"$ref:a[\"\\ud800\"]"`, `<invalid_ref>`},
		{`"$ref:é"`, `<invalid_ref>`},
		{`"$ref:a.é"`, `<invalid_ref>`},
		{`"$ref:"`, `<invalid_ref>`},
		{`"$ref:.x"`, `<invalid_ref>`},
		{`"$ref:` + strings.Repeat("x", 65) + `"`, `<invalid_ref>`},
		{`"$ref:zz"`, `<unknown_ref>`},
		{`"$ref:A"`, `<unknown_ref>`},

		// Rule 3: templates.
		// A string without white space that begins with a reference is that reference or a mistake.
		{`"$ref:a.temp,b"`, `<invalid_ref>`}, {`"$ref:a.temp!"`, `<invalid_ref>`}, {`"$ref:a.temp."`, `<invalid_ref>`}, {`"$ref:a.tempé"`, `<invalid_ref>`},
		{`"$ref:a.temp, b"`, `"21.50, b"`}, {`"x,$ref:a.temp,b"`, `"x,21.50,b"`}, {`"${ref:a.temp},b"`, `"21.50,b"`},
		{`"In $ref:a.city"`, `"In Tokyo"`},
		{`"$ref:a.city is nice"`, `"Tokyo is nice"`},
		{`"${ref:a.city}"`, `"Tokyo"`},
		{`"${ref:a.temp}"`, `"21.50"`},
		{`"${ref:a.city}${ref:a.temp}"`, `"Tokyo21.50"`},
		{`"x${ref:a.city}.temp"`, `"xTokyo.temp"`},
		{`"US$ref:a.temp"`, `"US21.50"`},
		{`"$ref:a.temp degrees. See $ref:a.city."`, `"21.50 degrees. See Tokyo."`},
		{`"($ref:a.city, $ref:a.temp) \"$ref:a.yes\" '$ref:a.city'"`, `"(Tokyo, 21.50) \"true\" 'Tokyo'"`},
		{`"a $ref:a.city: b $ref:a.city; c $ref:a.city! d $ref:a.city? e [$ref:a.city] {$ref:a.city}"`, `"a Tokyo: b Tokyo; c Tokyo! d Tokyo? e [Tokyo] {Tokyo}"`},
		{`"is $ref:a.cityé"`, `"is Tokyoé"`},
		{`"is $ref:a.city.\nYes"`, `"is Tokyo.\nYes"`},
		{`"is $ref:a.list"`, `"is [10,{\"id\":\"x\"},[1, 2],null,\"5\"]"`},
		{`"is $ref:a.text"`, `"is say \"hi\"\n\u00e9\\"`},
		{`"is $ref:a.nope and $ref:a.no and $ref:gone"`, `"is null and null and null"`},
		{`"is $ref:a.o[\"k e.y\"].z !"`, `"is 1 !"`},
		{`"\"quoted\" \u0041\t$ref:a.city"`, `"\"quoted\" A\tTokyo"`},
		{`"tab\u0000 $ref:a.city"`, `"tab\u0000 Tokyo"`},
		{`"is $ref:a.city.x and more"`, `<unresolved_ref>`},
		{`"is $ref:a.city. x"`, `"is Tokyo. x"`},
		{`"is $ref:a.city.) x"`, `<invalid_ref>`},
		{`"is $ref:a.city/x"`, `<invalid_ref>`},
		{`"is $ref:a.city[x] y"`, `<invalid_ref>`},
		{`"is $ref:a..b y"`, `<invalid_ref>`},
		{`"is $ref:a|b y"`, `<invalid_ref>`},
		{`"is $ref:a$ref:b y"`, `<invalid_ref>`},
		{`"is $ref: y"`, `<invalid_ref>`},
		{`"is ${ref:a.city"`, `<invalid_ref>`},
		{`"is ${ref:a.city y}"`, `<invalid_ref>`},
		{`"is ${ref: a}"`, `<invalid_ref>`},
		{`"is ${ref:}"`, `<invalid_ref>`},
		{`"is ${ref:a || b}"`, `<invalid_ref>`},
		{`"${ref:a.x || \"none\"}"`, `<invalid_ref>`},
		{`"is $ref:zz and ${ref:yy}"`, `<unknown_ref>`},
		{`" $ref:a.city"`, `" Tokyo"`},
		{`"$ref:a.city "`, `"Tokyo "`},
		{`"$ref:a.city\u00a0x"`, `<invalid_ref>`}, // no white space in the sense of the rule

		// Rule 4: escapes.
		{`"$$ref:a"`, `"$ref:a"`},
		{`"$$$ref:a.city"`, `"$Tokyo"`},
		{`"$$$$ref:a.city"`, `"$$ref:a.city"`},
		{`"$$$$$ref:a.city x"`, `"$$Tokyo x"`},
		{`"$${ref:a}"`, `"${ref:a}"`},
		{`"$$${ref:a.city}"`, `"$Tokyo"`},
		{`"\u0024$ref:a"`, `"$ref:a"`},
		{`"costs $5, $$ and $refund, $ref, ${x} and $$ref:b"`, `"costs $5, $$ and $refund, $ref, ${x} and $ref:b"`},
		{`"$ref:a.city costs $$ref:x"`, `"Tokyo costs $ref:x"`},
		{`"$"`, `"$"`},

		// Rule 8: projections.
		{`"$ref:a.list[*].id"`, `<unresolved_ref>`},
		{`"$ref:a.list[*].id || 1"`, `["x"]`},
		{`"$ref:a.list[*]"`, `[10,{"id":"x"},[1, 2],null,"5"]`},
		{`"$ref:a.list[2][*]"`, `[1,2]`},
		{`"$ref:a.list[2][*].x || 3"`, `[]`},
		{`"$ref:a.deep.a.b[*].c[*]"`, `[7]`},
		{`"$ref:a.deep.a.b[*].c"`, `[[ 7 ]]`},
		{`"$ref:a.deep.a.b[*].nope"`, `[]`},
		{`"$ref:a.no[*].x"`, `null`},
		{`"$ref:gone[*]"`, `null`},
		{`"$ref:b[*]"`, `null`},
		{`"$ref:a.no[*] || 1"`, `1`},
		{`"$ref:a.o[*]"`, `<unresolved_ref>`},
		{`"$ref:a.city[*]"`, `<unresolved_ref>`},
		{`"$ref:a.o[*] || $ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.list[*].id.x"`, `<unresolved_ref>`},
		{`"$ref:a.list[*].id.x || 1"`, `[]`},
		{`"$ref:a.list[*][*]"`, `<unresolved_ref>`},
		{`"$ref:a.list[*][*] || 1"`, `[1,2]`},
		{`"ids: $ref:a.deep.a.b[*].c."`, `"ids: [[ 7 ]]."`},
		{`"${ref:a.list[2][*]}"`, `"[1,2]"`},
		{`{"$ref":"a.deep.a.b[*].c"}`, `[[ 7 ]]`},
		{`"$ref:a.list.*"`, `<invalid_ref>`},
		{`"$ref:a.list[ * ]"`, `<invalid_ref>`},
		{`"$ref:a.list[**]"`, `<invalid_ref>`},
		{`"$ref:a.list[*"`, `<invalid_ref>`},
		{`"$ref:a.list[\"*\"]"`, `null`},

		// Rule 9: verbatim text.
		{`{"$text":"{{a.x}} and $ref:zz \u00e9\/"}`, `"{{a.x}} and $ref:zz \u00e9\/"`},
		{`[ { "\u0024text" : "$$ref:a" } ]`, `[ "$$ref:a" ]`},
		{`{"$text":""}`, `""`},
		{`{"$text":{"$search":"$ref:a.city"}}`, `{"$text":{"$search":"Tokyo"}}`},
		{`{"$text":"$ref:a.city","x":1}`, `{"$text":"Tokyo","x":1}`},
		{`{"$text":null}`, `{"$text":null}`},
		{`{"$$text":"$ref:a.city"}`, `{"$text":"Tokyo"}`},
		{`{"$$$text":1,"$texts":2}`, `{"$$text":1,"$texts":2}`},

		// Rule 10: foreign forms.
		{`"$Ref:a"`, `<invalid_ref>`},
		{`"{{a.x}}"`, `<invalid_ref>`},
		{`" {{ steps.a.list[0] }}\n"`, `<invalid_ref>`},
		{`"${{a}}"`, `<invalid_ref>`},
		{`"${a[\"k e.y\"]}"`, `<invalid_ref>`},
		{`"{a.x}"`, `<invalid_ref>`},
		{`"[[a.list[*].id]]"`, `<invalid_ref>`},
		{`"<a.x>"`, `<invalid_ref>`},
		{`"%a%"`, `<invalid_ref>`},
		{`"$a.x$"`, `<invalid_ref>`},
		{`"$a.x"`, `<invalid_ref>`},
		{`"$.a.x"`, `<invalid_ref>`},
		{`"#a"`, `<invalid_ref>`},
		{`"@ a.x"`, `<invalid_ref>`},
		{`"$steps.a.x"`, `<invalid_ref>`},
		{`"ref:a"`, `<invalid_ref>`},
		{`"REF: a.x"`, `<invalid_ref>`},
		{`"$ref.a.x"`, `<invalid_ref>`},
		{`"$REF a"`, `<invalid_ref>`},
		{`"$REF:steps.a.x"`, `<invalid_ref>`},
		{`"\u007ba}"`, `<invalid_ref>`},
		{`"{{$ref:a.x}}"`, `<invalid_ref>`},
		{`"< $ref:a.list[*].id >"`, `<invalid_ref>`},
		{`"$$ref:a$"`, `"$ref:a$"`},
		{`"$ref:steps.a.x"`, `<unknown_ref>`},
		{`"{{zz.x}}"`, `"{{zz.x}}"`},
		{`"{{a.x}"`, `"{{a.x}"`},
		{`"a.x"`, `"a.x"`},
		{`"(a.x)"`, `"(a.x)"`},
		{`"{{a.x y}}"`, `"{{a.x y}}"`},
		{`["$a.x","$ref:a.city"]`, `["$a.x","Tokyo"]`},
		{`["{{$ref:a.city}}","${ref:a.city}"]`, `["{{Tokyo}}","Tokyo"]`},
		{`["{{$ref:a.city}}","{{$ref:a.temp}}"]`, `<invalid_ref>`},
		{`["{{a.x}}",{"$text":"$ref:a"},"$$ref:a","$ref:b"]`, `<invalid_ref>`},
		{`["{{a.x}}",{"$ref":"a.city"}]`, `["{{a.x}}","Tokyo"]`},
		{`"use {{a.x}} here"`, `"use {{a.x}} here"`},

		// Rule 5: the object form and keys.
		{`{"$ref":"a.city"}`, `"Tokyo"`},
		{`{ "\u0024ref" : "a.o[\"k e.y\"]" }`, `{"z":1}`},
		{`[{"$ref":"a.list.0"},{"x":{"$ref":"b"}}]`, `[10,{"x":null}]`},
		{`{"$ref":"a.city","x":1}`, `<invalid_ref>`},
		{`{"x":1,"$ref":"a.city"}`, `<invalid_ref>`},
		{`{"$ref":7}`, `<invalid_ref>`},
		{`{"$ref":null}`, `<invalid_ref>`},
		{`{"$ref":"$ref:a"}`, `<invalid_ref>`},
		{`{"$ref":"${ref:a}"}`, `<invalid_ref>`},
		{`{"$ref":"a || b"}`, `<invalid_ref>`},
		{`{"$ref":"#/$defs/x"}`, `<invalid_ref>`},
		{`{"$ref":""}`, `<invalid_ref>`},
		{`{"$ref":"zz"}`, `<unknown_ref>`},
		{`{"$$ref":"#/$defs/x"}`, `{"$ref":"#/$defs/x"}`},
		{`{"type":"object","x":{"$$ref":"#/$defs/x","$defs":{}}}`, `{"type":"object","x":{"$ref":"#/$defs/x","$defs":{}}}`},
		{`{"\u0024$ref":"$ref:a.city"}`, `{"$ref":"Tokyo"}`},
		{`{"$$ref:a":1,"x $${ref:a} $":2}`, `{"$ref:a":1,"x ${ref:a} $":2}`},
		{`{"x $$$$ref:a":1}`, `{"x $$ref:a":1}`},
		{`{"$$$ref":1,"$$$$ref":2,"$refs":3,"$":4}`, `{"$$ref":1,"$$$ref":2,"$refs":3,"$":4}`},
		{`{"$ref:a":1}`, `<invalid_ref>`},
		{`{"x $ref:a y":1}`, `<invalid_ref>`},
		{`{"$ref:":1}`, `<invalid_ref>`},
		{`{"${ref:a}":1}`, `<invalid_ref>`},
		{`{"$$$ref:a":1}`, `<invalid_ref>`},

		// Not references.
		{`12345678901234567890.10e+5`, `12345678901234567890.10e+5`},
		{`[ 1 , { "a" : [ ] } ]`, `[ 1 , { "a" : [ ] } ]`},
		{`"\u0041\/"`, `"\u0041\/"`},
	} {
		require.Equal(t, c.want, resolve(t, c.value, ""), c.value)
		// The same within arguments that are a JSON string.
		body := steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"gone","tool":"t"},{"id":"s","tool":"t","arguments":` + quoted(`{"v":`+c.value+`}`) + `}`)
		p, r := plan.Parse([]byte(body), nil)
		if p == nil {
			require.Equal(t, c.want, "<"+strings.Join(codes(r.Problems), " ")+">", c.value)
			continue
		}
		args, err := p.Arguments(3, results)
		if err != nil {
			require.Equal(t, c.want, "<"+string(err.Code)+">", c.value)
			continue
		}
		require.Equal(t, `{"v":`+c.want+`}`, string(args), c.value)
	}
}

func TestOnMissingError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, want string }{
		{`"$ref:a.city"`, `"Tokyo"`},
		{`"$ref:a.no"`, `null`},
		{`"$ref:b"`, `null`},
		{`"x $ref:a.no"`, `"x null"`},
		{`"$ref:a.nope"`, `<unresolved_ref>`},
		{`"$ref:a.no.x"`, `<unresolved_ref>`},
		{`"$ref:gone"`, `<unresolved_ref>`},
		{`"x $ref:gone"`, `<unresolved_ref>`},
		{`"$ref:gone || $ref:a.nope"`, `<unresolved_ref>`},
		{`"$ref:gone || $ref:a.city"`, `"Tokyo"`},
		{`"$ref:gone || null"`, `null`},
		{`{"$ref":"a.list[9]"}`, `<unresolved_ref>`},
	} {
		require.Equal(t, c.want, resolve(t, c.value, `,"on_missing":"error"`), c.value)
	}
}

func TestArgumentsAsAWhole(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"$ref":"a.o"}},{"id":"r","tool":"t","arguments":"{\"$ref\":\"a.o\"}"}`))
	for result, want := range map[string]string{
		`{"o":{"x":1}}`: `{"x":1}`, `{"o":{}}`: `{}`, `{"o":[1]}`: `<invalid_arguments>`, `{"o":null}`: `<invalid_arguments>`,
		`{}`: `<invalid_arguments>`, `{"o":"{}"}`: `<invalid_arguments>`, `5`: `<unresolved_ref>`,
	} {
		for step := 1; step <= 2; step++ {
			args, err := p.Arguments(step, func(int) ([]byte, bool) { return []byte(result), true })
			if err != nil {
				require.Equal(t, want, "<"+string(err.Code)+">", result)
				continue
			}
			require.Equal(t, want, string(args))
		}
	}
	_, err := p.Arguments(1, func(int) ([]byte, bool) { return nil, false })
	require.Equal(t, fault.InvalidArguments, err.Code)
	require.Contains(t, err.Message, "$ref:a.o")
}

func TestAbsentArguments(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":""},{"id":"c","tool":"t","arguments":null},{"id":"d","tool":"t","arguments":"{}"},{"id":"e","tool":"t","arguments":" { } "}`))
	for i, want := range []string{"{}", "{}", "{}", "{}", "{ }"} {
		args, err := p.Arguments(i, nil)
		require.Nil(t, err)
		require.Equal(t, want, string(args))
		require.False(t, p.Steps[i].HasRefs)
	}
}

// A result is data: what looks like a reference in it is handed on as it is.
func TestResultsAreData(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":"$ref:a","y":"<${ref:a.k}>"}}`))
	args, err := p.Arguments(1, func(int) ([]byte, bool) { return []byte(`{"k":"$ref:a.k ${ref:zz}","$ref":"a"}`), true })
	require.Nil(t, err)
	require.Equal(t, `{"x":{"k":"$ref:a.k ${ref:zz}","$ref":"a"},"y":"<$ref:a.k ${ref:zz}>"}`, string(args))
}

// Too much is refused before it is built: the result is one buffer of 32 MiB, and nothing of its size is made.
func TestArgumentsTooLarge(t *testing.T) {
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":["$ref:a","$ref:a"]}},{"id":"e","tool":"t","arguments":{"x":"- $ref:a"}},{"id":"m","tool":"t","arguments":{"x":"$ref:a"}}`))
	big := []byte("[" + strings.Repeat("\n", 32<<20) + "1]")
	result := func(int) ([]byte, bool) { return big, true }
	for step := 1; step <= 2; step++ { // twice; and once, but each line feed becomes two bytes
		allocated := testing.AllocsPerRun(1, func() {
			_, err := p.Arguments(step, result)
			require.NotNil(t, err)
			require.Equal(t, fault.TooLarge, err.Code)
		})
		require.Less(t, allocated, 20.0)
	}
	args, err := p.Arguments(3, result)
	require.Nil(t, err)
	require.Len(t, args, len(big)+6)
}

func TestManyHoles(t *testing.T) {
	t.Parallel()
	var list, want []string
	for i := range plan.MaxRefs {
		list = append(list, fmt.Sprintf(`"$ref:a[%d]"`, i))
		want = append(want, fmt.Sprint(i))
	}
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":[`+strings.Join(list, ",")+`]}}`))
	args, err := p.Arguments(1, func(int) ([]byte, bool) { return []byte("[" + strings.Join(want, ",") + "]"), true })
	require.Nil(t, err)
	require.Equal(t, `{"x":[`+strings.Join(want, ",")+`]}`, string(args))
}

// References may go through 16 GiB of results together: what they find is no measure of it.
func TestManyWaysThroughALot(t *testing.T) {
	t.Parallel()
	value := []byte(`{"a":1,"pad":"` + strings.Repeat("x", plan.MaxOutput-16) + `"}`)
	require.Len(t, value, plan.MaxOutput)
	for refs, code := range map[int]fault.Code{256: "", 257: fault.TooLarge} {
		list := strings.TrimSuffix(strings.Repeat(`"$ref:a.a",`, refs), ",")
		p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":[`+list+`]}}`))
		_, err := p.Arguments(1, func(int) ([]byte, bool) { return value, true })
		if code == "" {
			require.Nil(t, err)
			continue
		}
		require.NotNil(t, err)
		require.Equal(t, code, err.Code)
		require.NotEmpty(t, err.Hint)
	}
}

// Whatever a store hands back, Arguments must neither panic nor read beyond it.
func TestDamagedResults(t *testing.T) {
	t.Parallel()
	p := parsed(t, steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":"$ref:a.k.x[1].y","y":"<${ref:a.k}>"}}`))
	whole := `{"z":[1,"\\\""],"k":{"x":[{"y":1},{"y":"\u0041"}]}}`
	for n := range len(whole) {
		for _, damaged := range []string{whole[:n], whole[:n] + `"`, whole[n:], `[` + whole[:n], whole[:n] + `\`} {
			require.NotPanics(t, func() {
				_, _ = p.Arguments(1, func(int) ([]byte, bool) { return []byte(damaged), true })
			}, damaged)
		}
	}
}

func TestUnresolvedMessages(t *testing.T) {
	t.Parallel()
	p := parsed(t, `{"steps":[{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"x":"$ref:a.city.name"}},{"id":"u","tool":"t","arguments":{"x":"$ref:a.temp[3]"}},{"id":"v","tool":"t","arguments":{"x":"$ref:a.zip"}}],"on_missing":"error"}`)
	for step, says := range map[int]string{
		1: `$ref:a.city.name: what is there is a string, which has no key "name"`,
		2: `$ref:a.temp[3]: what is there is a number, which has no item 3`,
		3: `$ref:a.zip found nothing, and the plan says on_missing: error; step "a" returned an object with the keys city, temp, big, huge, yes, no, text, list, o, deep`,
	} {
		_, err := p.Arguments(step, results)
		require.NotNil(t, err)
		require.Equal(t, fault.UnresolvedRef, err.Code)
		require.Equal(t, says, err.Message)
		require.False(t, err.Retryable)
	}
}

func ExamplePlan_Arguments() {
	p, report := plan.Parse([]byte(`{"steps": [
		{"id": "london", "tool": "get_weather", "arguments": {"location": "London"}},
		{"id": "note", "tool": "send", "arguments": {"temp": "$ref:london.temp", "text": "London is $ref:london.temp degrees."}}
	]}`), nil)
	if len(report.Problems) > 0 {
		fmt.Println(report.Problems)
		return
	}
	args, err := p.Arguments(1, func(dep int) ([]byte, bool) { return []byte(`{"temp": 21.0}`), true })
	fmt.Println(string(args), err == nil)
	// Output: {"temp": 21.0, "text": "London is 21.0 degrees."} true
}

func ExampleParse() {
	_, report := plan.Parse([]byte(`{"steps": [
		{"id": "a", "tool": "echo", "arguments": {"x": "$ref:b"}},
		{"id": "b", "tool": "echo", "arguments": {"x": "$ref:a", "y": "$ref:c"}}
	]}`), nil)
	for _, p := range report.Problems {
		fmt.Println(p.Code, p.Path, p.Message)
	}
	// Output:
	// unknown_ref /steps/1/arguments/y there is no step "c"
	// cycle /steps/0/arguments/x 2 steps wait for each other: a -> b -> a
}
