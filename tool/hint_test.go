package tool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
)

// What a violation tells to write. Each is one mistake, and one violation.
func TestHintsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	x := func(schema string) string {
		return `{"type":"object","properties":{"x":` + schema + `},"additionalProperties":false}`
	}
	weather := `{"type":"object","properties":{"location":{"type":"string","description":"City and country"},"days":{"type":"integer"},"units":{"enum":["celsius","fahrenheit"]}},"required":["location"]`
	for name, c := range map[string]struct{ schema, value, at, want string }{
		"number in quotes":         {x(`{"type":"number"}`), `{"x":"63"}`, "/x", "write 63, without quotes"},
		"number with its unit":     {x(`{"type":"number"}`), `{"x":"63.5 km"}`, "/x", "write 63.5, without quotes"},
		"number with commas":       {x(`{"type":"integer"}`), `{"x":"$1,200"}`, "/x", "write 1200, without quotes"},
		"number with zeros":        {x(`{"type":"integer"}`), `{"x":"007"}`, "/x", "write 7, without quotes"},
		"two numbers":              {x(`{"type":"number"}`), `{"x":"3 to 5"}`, "/x", "write <number>"},
		"no number":                {x(`{"type":"number","description":"How many"}`), `{"x":"a lot"}`, "/x", "write <number: How many>"},
		"whole number":             {x(`{"type":"integer"}`), `{"x":63.5}`, "/x", "write a whole number: 63 or 64"},
		"whole, below zero":        {x(`{"type":"integer"}`), `{"x":-1.5}`, "/x", "write a whole number: -2 or -1"},
		"whole number in quotes":   {x(`{"type":"integer"}`), `{"x":"63.0"}`, "/x", "write 63, without quotes"},
		"number or null":           {x(`{"type":["number","null"]}`), `{"x":"63"}`, "/x", "write 63, without quotes"},
		"any of":                   {x(`{"anyOf":[{"type":"null"},{"type":"integer"}]}`), `{"x":"63"}`, "/x", "write 63, without quotes"},
		"text for a boolean":       {x(`{"type":"boolean"}`), `{"x":"True"}`, "/x", "write true, without quotes"},
		"no":                       {x(`{"type":"boolean"}`), `{"x":"no"}`, "/x", "write false, without quotes"},
		"1 for a boolean":          {x(`{"type":"boolean"}`), `{"x":1}`, "/x", "write true"},
		"number for text":          {x(`{"type":"string"}`), `{"x":42}`, "/x", `write "42", in quotes`},
		"boolean for text":         {x(`{"type":"string"}`), `{"x":true}`, "/x", `write "true", in quotes`},
		"array of one":             {x(`{"type":"string"}`), `{"x":["Oslo"]}`, "/x", `write "Oslo", without the brackets`},
		"array of two":             {x(`{"type":"string"}`), `{"x":["Oslo","Rome"]}`, "/x", `write one value, such as "Oslo"; to do it for each of them, give the step a for_each`},
		"object around":            {x(`{"type":"number"}`), `{"x":{"result":5}}`, "/x", `write 5, without {"result": …} around it`},
		"scalar for an array":      {x(`{"type":"array","items":{"type":"string"}}`), `{"x":"Oslo"}`, "/x", `put it into an array: ["Oslo"]`},
		"number for an array":      {x(`{"type":"array","items":{"type":"string"}}`), `{"x":5}`, "/x", `write ["5"]`},
		"commas for an array":      {x(`{"type":"array","items":{"type":"string"}}`), `{"x":"a, b"}`, "/x", `write ["a", "b"]`},
		"numbers for an array":     {x(`{"type":"array","items":{"type":"integer"}}`), `{"x":"1,2"}`, "/x", `write [1, 2]`},
		"array in quotes":          {x(`{"type":"array"}`), `{"x":"[1, 2]"}`, "/x", `write the array itself, not a string that holds it: [1,2]`},
		"object in quotes":         {x(`{"type":"object"}`), `{"x":"{\"a\":1}"}`, "/x", `write the object itself, not a string that holds it: {"a":1}`},
		"object for an array":      {x(`{"type":"array"}`), `{"x":{"a":1}}`, "/x", `put it into an array: [{"a":1}]`},
		"object around an array":   {x(`{"type":"array"}`), `{"x":{"items":[1]}}`, "/x", `write [1], without {"items": …} around it`},
		"scalar for an object":     {x(`{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string"}},"required":["city"]}`), `{"x":"Oslo"}`, "/x", `write {"city": "Oslo"}`},
		"array for an object":      {x(`{"type":"object"}`), `{"x":[{"a":1}]}`, "/x", `write {"a":1}, without the brackets`},
		"null that may be left":    {x(`{"type":"string"}`), `{"x":null}`, "/x", "leave it out, or write a string"},
		"case of an enumeration":   {x(`{"enum":["celsius","fahrenheit"]}`), `{"x":"Celsius"}`, "/x", `write "celsius"`},
		"letter of an enumeration": {x(`{"enum":["celsius","fahrenheit"]}`), `{"x":"F"}`, "/x", `write "fahrenheit"`},
		"typo of an enumeration":   {x(`{"enum":["celsius","fahrenheit"]}`), `{"x":"farenheit"}`, "/x", `write "fahrenheit"`},
		"none of an enumeration":   {x(`{"enum":["celsius","fahrenheit"]}`), `{"x":"kelvin"}`, "/x", `write one of "celsius", "fahrenheit"`},
		"type of an enumeration":   {x(`{"enum":[1,2]}`), `{"x":"2"}`, "/x", `write 2`},
		"const":                    {x(`{"const":"v1"}`), `{"x":"1"}`, "/x", `write "v1"`},
		"renamed":                  {weather + `}`, `{"city":"Oslo"}`, "", `rename "city" to "location"`},
		"renamed, closed":          {weather + `,"additionalProperties":false}`, `{"city":"Oslo"}`, "", `rename "city" to "location"`},
		"renamed by letters":       {weather + `,"additionalProperties":false}`, `{"Locaton":"Oslo","days":1}`, "", `rename "Locaton" to "location"`},
		"missing":                  {weather + `}`, `{"days":1}`, "", `add "location": <string: City and country>`},
		"too deep":                 {weather + `}`, `{"input":{"location":"Oslo"}}`, "", `take what stands in "input" out of it: "location" has to stand beside it, not in it`},
		"superfluous, near":        {weather + `,"additionalProperties":false}`, `{"location":"Oslo","unit":"celsius"}`, "/unit", `rename "unit" to "units"`},
		"superfluous":              {weather + `,"additionalProperties":false}`, `{"location":"Oslo","verbose":true}`, "/verbose", `leave "verbose" out`},
		"wrong type is no rename":  {weather + `,"additionalProperties":true}`, `{"flag":true,"other":{"a":1},"more":2}`, "", `add "location": <string: City and country>`},
		"minimum":                  {x(`{"minimum":1,"maximum":10}`), `{"x":0}`, "/x", "write 1, or up to 10"},
		"maximum":                  {x(`{"maximum":10}`), `{"x":11}`, "/x", "write 10 or less"},
		"multiple":                 {x(`{"multipleOf":5}`), `{"x":12}`, "/x", "write 10 or 15"},
		"pattern, case":            {x(`{"pattern":"^[A-Z]{3}$"}`), `{"x":"eur"}`, "/x", `write "EUR"`},
		"pattern":                  {x(`{"pattern":"^[A-Z]{3}$"}`), `{"x":"euro"}`, "/x", `write text that matches ^[A-Z]{3}$`},
		"unique":                   {x(`{"uniqueItems":true}`), `{"x":[1,1]}`, "/x", "leave one of the two out"},
		"default of the missing":   {`{"properties":{"n":{"type":"integer","default":5}},"required":["n"]}`, `{}`, "", `add "n": 5`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := compile(t, c.schema).Check([]byte(c.value), nil)
			require.Len(t, found, 1, "%v", found)
			require.Equal(t, c.at, found[0].Pointer)
			require.Equal(t, c.want, found[0].Hint, "%s", found[0].Message)
		})
	}
}

// A value with a reference in it is not quoted: what stands there now is a placeholder.
func TestHintsDoNotQuoteHoles(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties":{"list":{"type":"array"},"n":{"type":"number"}}}`)
	found := s.Check([]byte(`{"list":{"a":null},"n":""}`), []tool.Hole{{Pointer: "/list/a"}, {Pointer: "/n", Text: true}})
	require.Len(t, found, 2)
	require.Empty(t, found[0].Hint)
	require.False(t, found[0].Text)
	require.Equal(t, "must be a number, not a string", found[1].Message)
	require.True(t, found[1].Text, "it is wrong because it is text")
}

// The answer does not depend on the order in which a map is read.
func TestViolationsAreDeterministic(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"o":{"type":"object","properties":{"p":{},"q":{},"r":{}},"required":["p","q","r"]}},"required":["a","b"],"additionalProperties":false}`)
	first := s.Check([]byte(`{"aa":"1","bb":"2","o":"x","cc":{"p":1},"dd":1}`), nil)
	for range 50 {
		require.Equal(t, first, s.Check([]byte(`{"aa":"1","bb":"2","o":"x","cc":{"p":1},"dd":1}`), nil))
	}
}
