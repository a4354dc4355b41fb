package tool

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	const example = true
	for _, c := range []struct {
		schema, want string
		example      bool
	}{
		{schema: `{"type":"object"}`, want: `{}`},
		{schema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`, want: `{"a":0}`},
		{schema: `true`, want: `{}`},
		{schema: `{}`, want: `{}`},
		{schema: `{"type":["string","null"]}`, want: `""`},
		{schema: `{"type":"null"}`, want: `null`},
		{schema: `{"type":["object","null"],"required":["a"],"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]}},"$defs":{"b":{"type":"object","required":["c"],"properties":{"c":{"type":"integer"}}}}}`,
			want: `{"a":{"c":0}}`},
		{schema: `{"type":["object","null"],"required":["a"],"properties":{"a":{"$ref":"#"}}}`, want: `{"a":null}`},
		{schema: `{"type":"boolean"}`, want: `false`},
		{schema: `{"type":"boolean","not":{"const":false}}`, want: `true`},
		{schema: `{"required":["a"]}`, want: `{"a":{}}`},
		{schema: `{"minItems":2}`, want: `[{},{}]`},
		{schema: `{"minLength":2}`, want: `"aa"`},

		{schema: `{"type":"string","examples":[7,"Rome","Oslo"]}`, want: `"Rome"`, example: example},
		{schema: `{"$ref":"#/$defs/a","$defs":{"a":{"type":"integer","examples":[21]}}}`, want: `21`, example: example},
		{schema: `{"const":{"b":1,"a":"<"}}`, want: `{"a":"<","b":1}`, example: example},
		{schema: `{"type":"number","default":1.50}`, want: `1.50`},
		{schema: `{"enum":["x","y"]}`, want: `"x"`},
		{schema: `{"enum":[1,"y"],"type":"string"}`, want: `"y"`},
		{schema: `{"type":"object","properties":{"t":{"type":"number","examples":[21.5]},"u":{"default":3}},"required":["t","u"]}`, want: `{"t":21.5,"u":3}`},

		{schema: `{"type":"integer","minimum":5}`, want: `5`},
		{schema: `{"type":"integer","exclusiveMinimum":5}`, want: `6`},
		{schema: `{"type":"integer","minimum":2.5,"multipleOf":4}`, want: `4`},
		{schema: `{"type":"integer","maximum":-3}`, want: `-3`},
		{schema: `{"type":"integer","exclusiveMaximum":-3,"multipleOf":2}`, want: `-4`},
		{schema: `{"type":"integer","minimum":-3,"maximum":9}`, want: `0`},
		{schema: `{"type":"integer","minimum":0,"maximum":3,"not":{"enum":[0,1]}}`, want: `2`},
		{schema: `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.5}`, want: `0.03125`},
		{schema: `{"type":"number","exclusiveMinimum":0}`, want: `1`},
		{schema: `{"type":"number","minimum":0.1,"multipleOf":0.25}`, want: `0.25`},
		{schema: `{"allOf":[{"type":"integer","multipleOf":4,"minimum":1},{"multipleOf":6}]}`, want: `12`},
		{schema: `{"type":"integer","minimum":1e400}`, want: `1` + strings.Repeat("0", 400)},

		{schema: `{"type":"string","pattern":"^[A-Z]{3}-[0-9]+$"}`, want: `"AAA-0"`},
		{schema: `{"type":"string","pattern":"^[a-z]+$","minLength":5}`, want: `"aaaaa"`},
		{schema: `{"type":"string","pattern":"b"}`, want: `"b"`},
		{schema: `{"type":"string","pattern":"b","minLength":3}`, want: `"baa"`},
		{schema: `{"type":"string","pattern":"^(yes|no)$","not":{"const":"yes"}}`, want: `"no"`},
		{schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"string","format":"date"}`, want: `"2026-01-31"`},

		{schema: `{"type":"array"}`, want: `[]`},
		{schema: `{"type":"array","items":{"type":"integer"},"minItems":3,"uniqueItems":true}`, want: `[0,1,2]`},
		{schema: `{"type":"array","items":{"type":"string"},"minItems":3,"uniqueItems":true}`, want: `["","b","c"]`},
		{schema: `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"boolean"},"minItems":2}`, want: `["",false]`},
		{schema: `{"type":"array","contains":{"const":7},"minContains":2}`, want: `[7,7]`},
		{schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"null"},"minItems":2}`, want: `[0,null]`},

		{schema: `{"type":"object","minProperties":2,"properties":{"z":{"type":"null"}},"additionalProperties":{"type":"integer"}}`, want: `{"p0":0,"z":null}`},
		{schema: `{"type":"object","minProperties":1,"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, want: `{"x-":""}`},
		{schema: `{"type":"object","required":["a"],"dependentRequired":{"a":["b"]},"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`, want: `{"a":0,"b":0}`},
		{schema: `{"type":"object","required":["a"],"dependentSchemas":{"a":{"required":["c"],"properties":{"c":{"const":1}}}}}`, want: `{"a":{},"c":1}`},

		{schema: `{"anyOf":[{"type":"null"},{"type":"integer"}]}`, want: `0`},
		{schema: `{"oneOf":[{"type":"integer"},{"type":"integer","minimum":0}]}`, want: ``},
		{schema: `{"type":"object","properties":{"k":{"enum":["a","b"]}},"required":["k"],"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["x"]}}`, want: `{"k":"a","x":{}}`},
		{schema: `{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]},"n":{"type":"integer"}},"required":["next","n"]}`, want: `{"n":0,"next":null}`},
	} {
		s := schemaOf(t, c.schema)
		got := SampleOf(s)
		if c.want == "" {
			if got.JSON != nil { // found, but not a fixed one
				require.Empty(t, s.Check(got.JSON, nil), c.schema)
			}
			continue
		}
		require.Equal(t, c.want, string(got.JSON), c.schema)
		require.Equal(t, c.example, got.Example, c.schema)
		require.Empty(t, s.Check(got.JSON, nil), c.schema)
		require.Equal(t, got, SampleOf(schemaOf(t, c.schema)), "the same everywhere")
	}
	require.Zero(t, SampleOf(nil))
	whole, err := CompileSchema(nil)
	require.NoError(t, err)
	require.Equal(t, "{}", string(SampleOf(whole).JSON))
}

// A sample is valid, and there is one for nearly every schema that a random value fits.
func TestASampleIsValid(t *testing.T) {
	t.Parallel()
	r := random{rand.New(rand.NewPCG(5, 6))}
	possible, found := 0, 0
	for range 1_500 {
		raw := strings.TrimSuffix(r.schema(3), "}")
		if len(raw) > 1 {
			raw += ","
		}
		raw += `"$defs":{"d":` + strings.ReplaceAll(r.schema(1), `"$ref":"#/$defs/d"`, `"title":""`) + `}}`
		s := schemaOf(t, raw)
		sample := SampleOf(s)
		if sample.JSON != nil {
			require.True(t, json.Valid(sample.JSON), raw)
			require.Empty(t, s.Check(sample.JSON, nil), "%s for %s", sample.JSON, raw)
		}
		for range 25 {
			if len(s.Check([]byte(r.value(3)), nil)) == 0 {
				possible++
				if sample.JSON != nil {
					found++
				}
				break
			}
		}
	}
	t.Log(possible, found)
	require.Greater(t, possible, 800)
	require.Greater(t, found*1000, possible*995)
}

// What a pattern's sample is, the pattern matches.
func TestASampleMatchesItsPattern(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	parts := []string{"a", `\d`, "[A-F]", "[^x]", ".", `\s`, `\x{1F600}`, "(ab|cd)", "(?i:q)", `\.`, "é", "[^a-zA-Z0-9_ -]"}
	repeats := []string{"", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"}
	for range 2_000 {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			b.WriteString(parts[r.IntN(len(parts))] + repeats[r.IntN(len(repeats))])
		}
		pattern, err := json.Marshal("^" + b.String() + "$")
		require.NoError(t, err)
		s := schemaOf(t, fmt.Sprintf(`{"type":"string","pattern":%s}`, pattern))
		sample := SampleOf(s)
		require.NotNil(t, sample.JSON, "%s", pattern)
		require.Empty(t, s.Check(sample.JSON, nil), "%s for %s", sample.JSON, pattern)
	}
}

// A schema of a few lines may ask for more than there is: a sample is given up soon, and says that there is none.
func TestASampleOfABombIsGivenUp(t *testing.T) {
	t.Parallel()
	var chain strings.Builder // each definition refers twice to the next: 2^60 ways, none of which leads anywhere
	for i := range 60 {
		fmt.Fprintf(&chain, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"anyOf":[{"minimum":1},{"minimum":2}]},`, 500), ",")
	for name, raw := range map[string]string{
		"many items":     `{"type":"array","minItems":1000000000}`,
		"many of many":   `{"type":"array","minItems":60000,"items":{"type":"array","minItems":60000,"items":{"type":"integer"}}}`,
		"long text":      `{"type":"string","minLength":1000000000}`,
		"long pattern":   `{"type":"string","pattern":"^(a+b+)+$","minLength":500000000}`,
		"properties":     `{"type":"object","minProperties":1000000}`,
		"no end":         `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		"no end, twice":  `{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`,
		"itself":         `{"anyOf":[{"$ref":"#"},{"$ref":"#"}],"not":{}}`,
		"nothing":        `false`,
		"contradiction":  `{"allOf":[{"type":"string"},{"type":"integer"}]}`,
		"chain":          `{"$ref":"#/$defs/d0","$defs":{` + chain.String() + `"d60":{"type":"integer","minimum":1,"maximum":0}}}`,
		"many branches":  `{"type":"integer","maximum":0,"allOf":[` + many + `]}`,
		"many different": `{"type":"array","minItems":100000,"uniqueItems":true,"items":{"type":"boolean"}}`,
		"required":       `{"type":"object","additionalProperties":false,"required":["` + strings.Repeat(`x","`, 1) + `y"]}`,
	} {
		began := time.Now()
		require.Nil(t, SampleOf(schemaOf(t, raw)).JSON, name)
		require.Less(t, time.Since(began), 20*time.Second, name)
	}
}

// A schema is used by many goroutines, and a sample shares the allowance of its checks.
func TestSamplesBesideChecks(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string","minLength":2},{"type":"null"}]}},"required":["a"]}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if got := string(SampleOf(s).JSON); got != `{"a":"aa"}` {
					t.Error(got)
				}
				if bad := s.Check([]byte(`{"a":"b"}`), nil); len(bad) == 0 {
					t.Error("a short text is refused")
				}
			}
		})
	}
	all.Wait()
}
