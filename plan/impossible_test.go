package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

func typedTools(t testing.TB) toolbox {
	return toolbox{
		"add": {Input: schema(t, `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`),
			Output: schema(t, `{"type":"object","properties":{"result":{"type":"number"}},"required":["result"],"additionalProperties":false}`)},
		"list":  {Output: schema(t, `{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}},"total":{"type":["integer","null"]}}}`)},
		"shout": {Input: schema(t, `{"type":"object","properties":{"text":{"type":"string"},"all":{"type":"array","items":{"type":"string"}},"maybe":{"type":["string","null"]},"deep":{"type":"object","properties":{"x":{"type":"boolean"}}}}}`), Output: schema(t, `{"type":"string"}`)},
		"any":   {},
		"round": {Input: schema(t, `{"type":"object","properties":{"n":{"type":"integer"},"how":{"enum":["up","down"]}}}`)},
	}
}

// What declared schemas rule out is found before anything runs, and the hint is what to write.
func TestImpossibleRef(t *testing.T) {
	t.Parallel()
	tools := typedTools(t)
	const made = `{"id":"a","tool":"add","arguments":{"a":1,"b":2}},{"id":"l","tool":"list"},{"id":"s","tool":"shout"},{"id":"u","tool":"any"},
		{"id":"e","tool":"add","for_each":{"in":[1]},"arguments":{"a":"$ref:item","b":1}},`
	x := func(tool, arguments string) string {
		return steps(made + `{"id":"x","tool":"` + tool + `","arguments":` + arguments + `}`)
	}
	each := func(tool, in, arguments string) string {
		return steps(made + `{"id":"x","tool":"` + tool + `","for_each":{"in":` + in + `},"arguments":` + arguments + `}`)
	}
	for name, c := range map[string]struct{ plan, at, message, hint string }{
		"whole object for a number": {x("add", `{"a":"$ref:a","b":1}`), "/a", `$ref:a is an object, as "add" declares, but "add" takes a number here`, `write "$ref:a.result"`},
		"the same as an object":     {x("add", `{"a":{"$ref":"a"},"b":1}`), "/a/$ref", "", `write {"$ref": "a.result"}`},
		"the right field":           {x("add", `{"a":"$ref:a.result","b":1}`), "", "", ""},
		"no such key":               {x("any", `{"x":"$ref:a.reslt"}`), "/x", "can never be there", `did you mean "$ref:a.result"?`},
		"no such key in text":       {x("any", `{"x":"is ${ref:a.sum}"}`), "/x", `what "add" returns is an object and has no key "sum"`, `write ${ref:a.result}`},
		"key into a number":         {x("any", `{"x":"$ref:a.result.x"}`), "/x", `result of what "add" returns is a number`, `write "$ref:a.result"`},
		"index into an object":      {x("any", `{"x":"$ref:a[0]"}`), "/x", "", ""},
		"every item of an object":   {x("any", `{"x":"$ref:a[*]"}`), "/x", "has no items", ""},
		"key into a list":           {x("any", `{"x":"$ref:l.items.id"}`), "/x", "", `write "$ref:l.items[0].id" for one item, or "$ref:l.items[*].id" for all`},
		"other key into a list":     {x("any", `{"x":"$ref:l.items.length"}`), "/x", "", `write "$ref:l.items"`},
		"a list for a text":         {x("shout", `{"text":"$ref:l.items[*].id"}`), "/text", "is an array", `write "$ref:l.items[0].id" for one item, or run the step once for each: "for_each": {"in": "$ref:l.items[*].id"}, and "$ref:item" here`},
		"a list for a list":         {x("shout", `{"all":"$ref:l.items[*].id"}`), "", "", ""},
		"a list of nothing":         {x("any", `{"x":"$ref:l.items[*].name"}`), "/x", "", `write "$ref:l.items[*].id" or "$ref:l.items[*].n"`},
		"an item of a list":         {x("shout", `{"all":["$ref:l.items[0]"]}`), "/all/0", "is an object", `write "$ref:l.items[0].id"`},
		"number for a text":         {x("shout", `{"text":"$ref:a.result"}`), "/text", "takes a string here", `write "${ref:a.result}" for it as text`},
		"number as text":            {x("shout", `{"text":"${ref:a.result}"}`), "", "", ""},
		"text for a number":         {x("add", `{"a":"$ref:s","b":1}`), "/a", "is a string", ""},
		"number for an integer":     {x("round", `{"n":"$ref:a.result"}`), "", "", ""},
		"number for one of words":   {x("round", `{"how":"$ref:a.result"}`), "/how", "no value of", ""},
		"alternatives":              {x("add", `{"a":"$ref:s || 1","b":"$ref:a.nope || $ref:a.result"}`), "", "", ""},
		"null may be there":         {x("shout", `{"maybe":"$ref:l.total"}`), "", "", ""},
		"nothing may be there":      {x("shout", `{"maybe":"$ref:l.items"}`), "", "", ""},
		"nothing declared":          {x("add", `{"a":"$ref:u","b":"$ref:u.x"}`), "", "", ""},
		"open for more":             {x("any", `{"x":"$ref:l.more"}`), "", "", ""},
		"deep":                      {x("shout", `{"deep":{"x":"$ref:s"}}`), "/deep/x", "takes a boolean here", ""},
		"all arguments":             {x("shout", `{"$ref":"s"}`), "/$ref", "takes an object here", ""},
		"all arguments, closed":     {x("add", `{"$ref":"a"}`), "/$ref", "no value of $ref:a", ""},
		"no declared arguments":     {x("any", `{"$ref":"s"}`), "/$ref", "", ""},
		"entries for a number":      {x("add", `{"a":"$ref:e","b":1}`), "/a", "is an array", `write "$ref:e[0].data.result" for one item, or run the step once for each: "for_each": {"in": "$ref:e"}, and "$ref:item.data.result" here`},
		"an entry for a number":     {x("add", `{"a":"$ref:e[0]","b":1}`), "/a", "is an object", ""},
		"data for a number":         {x("add", `{"a":"$ref:e[0].data","b":1}`), "/a", "is an object", `write "$ref:e[0].data.result"`},
		"data's field":              {x("add", `{"a":"$ref:e[0].data.result","b":"$ref:e[0].index"}`), "", "", ""},
		"data's other field":        {x("add", `{"a":"$ref:e[0].data.value","b":1}`), "/a", "", `write "$ref:e[0].data.result"`},
		"all data for a number":     {x("add", `{"a":"$ref:e[*].data.result","b":1}`), "/a", "is an array", ""},
		"status for a number":       {x("add", `{"a":"$ref:e[0].status","b":1}`), "/a", "is a string", ""},
		"a list that is none":       {each("any", `"$ref:a.result"`, `{"x":"$ref:item"}`), "in", "a for_each takes an array here", ""},
		"item":                      {each("shout", `"$ref:l.items"`, `{"text":"$ref:item.id"}`), "", "", ""},
		"item's other field":        {each("shout", `"$ref:l.items"`, `{"text":"$ref:item.name"}`), "/text", `items[0] of what "list" returns`, `write "$ref:item.id"`},
		"item's near field":         {each("shout", `"$ref:l.items"`, `{"text":"$ref:item.ids"}`), "/text", "", `did you mean "$ref:item.id"?`},
		"item for a text":           {each("shout", `"$ref:l.items"`, `{"text":"$ref:item"}`), "/text", "is an object", `write "$ref:item.id"`},
		"item of a projection":      {each("shout", `"$ref:l.items[*].n"`, `{"text":"$ref:item"}`), "/text", "is an integer", ""},
		"item of entries":           {each("add", `"$ref:e"`, `{"a":"$ref:item.data.result","b":"$ref:item.data"}`), "/b", "is an object", `write "$ref:item.data.result"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := plan.Parse([]byte(c.plan), tools)
			switch c.at {
			case "":
				require.Empty(t, r.Problems)
				return
			case "in":
				c.at = "impossible_ref /steps/5/for_each/in"
			default:
				c.at = "impossible_ref /steps/5/arguments" + c.at
			}
			require.Equal(t, []string{c.at}, found(r.Problems), "%v", r.Problems)
			require.Contains(t, r.Problems[0].Message, c.message)
			require.Contains(t, r.Problems[0].Hint, c.hint)
		})
	}
	_, r := plan.Parse([]byte(x("any", `{"x":"$ref:l.more"}`)), tools)
	require.Equal(t, []string{"impossible_ref /steps/5/arguments/x"}, found(r.Warnings), "what is merely undeclared is a warning")
}

// No schema is asked about steps whose results are there already, from wherever they are looked at.
func TestDoneStepsAreJudgedByNoSchema(t *testing.T) {
	t.Parallel()
	body := []byte(steps(`{"id":"a","tool":"add","arguments":{"a":"one"}},{"id":"b","tool":"add","arguments":{"a":"$ref:a.sum","b":"$ref:a"}},
		{"id":"c","tool":"add","arguments":{"a":"$ref:b.sum","b":"x"}},{"id":"d","tool":"add","for_each":{"in":"$ref:b.list"},"arguments":{"a":"$ref:item.n","b":1}}`))
	_, r := plan.Parse(body, typedTools(t))
	require.Len(t, r.Problems, 7, "%v", r.Problems)
	_, r = plan.ParseLimited(body, typedTools(t), plan.Limits{Done: map[string]bool{"a": true, "b": true}})
	require.Equal(t, []string{"invalid_arguments /steps/2/arguments/b"}, found(r.Problems), "what is to be executed is judged, but not by what b's tool declares")
}
