package tool

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the quick form calls valid, the validator calls valid too, with and without holes.
func FuzzQuick(f *testing.F) {
	schemas := []string{
		`{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"number"},"i":{"type":"integer"},"b":{"type":["boolean","null"]},"any":{},"yes":true},"required":["s"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"o":{"type":"object","properties":{"k":{"type":"string"}},"required":["k","l"]},"e":{"enum":[1]}}}`,
		`{"required":["x"]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":{"type":"string"}},"s":{"type":"string"}}}`,
		`true`,
	}
	for which := range schemas {
		for _, v := range []string{`{"s":"a\n","n":1.5,"i":2,"b":null,"any":[1,"x"],"yes":false}`, `{"s":1}`, `{"a":[1,2.0],"o":{"k":"x","l":0},"e":1}`,
			`{"s":"x","s":"y"}`, `{"s":"x","z":1}`, `{"i":1e2,"s":""}`, `{"n":01,"s":""}`, `{"s":"\x"}`, `{}`, `[1]`, `{"x":-0.5}`, ` { "x" : 1 } `, `{"x":1}x`, `{"s":"`} {
			f.Add(which, v, "/s", false)
			f.Add(which, v, "/i", true)
			f.Add(which, v, "/o/k", true)
		}
	}
	compiled := make([]*Schema, len(schemas))
	for i, raw := range schemas {
		s, err := CompileSchema([]byte(raw))
		require.NoError(f, err)
		compiled[i] = s
	}
	f.Fuzz(func(t *testing.T, which int, value, hole string, text bool) {
		s := compiled[uint(which)%uint(len(compiled))]
		if s.quick == nil {
			return
		}
		for _, holes := range [][]Hole{nil, {{Pointer: hole, Text: text}}} {
			if !s.quick.valid([]byte(value), holes) {
				continue
			}
			v, err := decodeBounded([]byte(value))
			require.NoError(t, err, "%s", value)
			steps := maxSteps
			require.Empty(t, s.validate(v, len(value), finder{holes: holes}, &steps), "%s %v", value, holes)
		}
	})
}

// The schemas that most tools have must be answered without the validator, otherwise the quick form is for nothing.
func TestQuickAnswersTheUsual(t *testing.T) {
	t.Parallel()
	s, err := CompileSchema([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"location":{"type":"string","description":"The city"},
		"days":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"type":"string"}},"opt":{"type":"object","properties":{"x":{"type":"number"}}}},"required":["location"],"additionalProperties":false}`))
	require.NoError(t, err)
	for value, want := range map[string]bool{
		`{"location":"Tokyo"}`:                                 true,
		`{"location":"Tokyo","tags":["a","b"],"opt":{"x":-1}}`: true,
		`{"location":"Tokyo","tags":[],"opt":{}}`:              true,
		`{"location":"Tokyo","days":3}`:                        false, // minimum: the validator's
		`{"location":5}`:                                       false,
		`{}`:                                                   false,
		`{"location":"Tokyo","x":1}`:                           false,
		`{"location":"Tokyo"`:                                  false,
		`{"location":null}`:                                    false,
		`{"location":"` + strings.Repeat("x", 1000) + `"}`:     true,
	} {
		require.Equal(t, want, s.quick.valid([]byte(value), nil), value)
	}
	require.True(t, s.quick.valid([]byte(`{"location":null}`), []Hole{{Pointer: "/location"}}))
	require.False(t, s.quick.valid([]byte(`{"location":"","tags":""}`), []Hole{{Pointer: "/tags", Text: true}}))
}

func BenchmarkCheckQuick(b *testing.B) {
	s, err := CompileSchema([]byte(`{"type":"object","properties":{"location":{"type":"string"},"days":{"type":"integer"}},"required":["location"],"additionalProperties":false}`))
	require.NoError(b, err)
	value := []byte(`{"location":"Tokyo","days":3}`)
	b.ReportAllocs()
	for b.Loop() {
		if v := s.Check(value, nil); len(v) > 0 {
			b.Fatal(v)
		}
	}
}
