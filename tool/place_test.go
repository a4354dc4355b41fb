package tool

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func schemaOf(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := CompileSchema([]byte(raw))
	require.NoError(t, err, raw)
	return s
}

func TestFind(t *testing.T) {
	t.Parallel()
	every := Elem{Index: EveryItem}
	for _, c := range []struct {
		schema string
		path   []Elem
		want   string
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, path("a"), "[string]"},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, path("a"), "[string] optional"},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, path("b"), "impossible at 0 of [a]"},
		{`{"type":"object","properties":{"a":{}}}`, path("b"), "undeclared at 0 of [a]"},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, path("b"), "[]"},
		{`{"type":"object","properties":{"a":{}},"patternProperties":{"^b":{}},"additionalProperties":false}`, path("b"), "[]"},
		{`{"type":"object","properties":{"a":{}},"anyOf":[{},{}]}`, path("b"), "[]"},
		{`{"type":"object","additionalProperties":{"type":"number"}}`, path("b"), "[number] optional"},
		{`{"type":"object","properties":{"a":{}}}`, path(0), "impossible at 0 of []"},
		{`{"type":"object"}`, []Elem{every}, "impossible at 0 of []"},
		{`{"type":["object","null"],"properties":{"a":{"type":"number"}},"required":["a"]}`, path("a"), "[number] optional"},
		{`{"type":"array","items":{"type":"string"}}`, path("a"), "impossible at 0 of []"},
		{`{"type":"array","items":{"type":"string"}}`, path(1), "[string] optional"},
		{`{"type":"array","items":{"type":"string"},"maxItems":1}`, path(1), "impossible at 0 of []"},
		{`{"type":"array","items":{"type":"string"}}`, []Elem{every}, "[array]"},
		{`{"type":"array","items":{"type":"string"}}`, append([]Elem{every}, path("x")...), "impossible at 1 of []"},
		{`{"type":"array","items":{"type":"string"}}`, []Elem{{Index: AnyItem}}, "[string] optional"},
		{`{"type":"array","prefixItems":[{"type":"string"}]}`, []Elem{{Index: AnyItem}}, "[] optional"},
		{`{"type":"integer"}`, path("x"), "impossible at 0 of []"},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false}}}`, path("b"), "impossible at 0 of [a]"},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":false},{"type":"null"}]}`, path("a"), "[number] optional"},
		{`{"anyOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"null"}]}`, path("b"), "impossible at 0 of [a]"},
		{`{"anyOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{}]}`, path("b"), "[] optional"},
		{`{"allOf":[{},{"type":"string"}]}`, path("b"), "impossible at 0 of []"},
		{`{"$ref":"#"}`, path("b"), "[] optional"},
		{`true`, path("b"), "[]"},
	} {
		p := schemaOf(t, c.schema).Find(c.path)
		got := fmt.Sprint(p.Kinds())
		switch {
		case p.Impossible:
			got = fmt.Sprint("impossible at ", p.At, " of ", p.Names)
		case p.Undeclared:
			got = fmt.Sprint("undeclared at ", p.At, " of ", p.Names)
		case p.Optional:
			got += " optional"
		}
		require.Equal(t, c.want, got, "%s %v", c.schema, c.path)
	}
}

func TestMayFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		may      bool
	}{
		{`{"type":"number"}`, `{"type":"integer"}`, true},
		{`{"type":"integer"}`, `{"type":"number"}`, true},
		{`{"type":"number"}`, `{"type":"string"}`, false},
		{`{"type":["string","null"]}`, `{"type":"number"}`, false},
		{`{"type":["string","null"]}`, `{"type":["number","null"]}`, true},
		{`{}`, `{"type":"number"}`, true},
		{`{"type":"object"}`, `{"type":"number"}`, false},
		{`{"enum":["a","b"]}`, `{"type":"number"}`, false},
		{`{"enum":["a","b"]}`, `{"enum":["c"]}`, false},
		{`{"enum":["a",1]}`, `{"enum":["c",1.0]}`, true},
		{`{"const":1.0}`, `{"type":"integer"}`, true},
		{`{"const":1.5}`, `{"type":"integer"}`, false},
		{`{"type":"string"}`, `{"enum":[1,2]}`, false},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"number"}`, false},
		{`{"anyOf":[{"type":"string"},{"type":"number"}]}`, `{"type":"number"}`, true},
		{`{"type":"number"}`, `{"oneOf":[{"type":"string"},{"type":"boolean"}]}`, false},
		{`{"not":{"type":"number"}}`, `{"type":"number"}`, true},
		{`{"allOf":[{"type":"string"},{}]}`, `{"type":"number"}`, false},
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"number"}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"number"}}}`, true},
		{`{"type":"object","additionalProperties":false}`, `{"type":"object","required":["a"]}`, false},
		{`{"type":"object","required":["a"]}`, `{"type":"object","additionalProperties":false}`, false},
		{`{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"number"}}`, true},
		{`{"type":"array","items":{"type":"string"},"minItems":1}`, `{"type":"array","items":{"type":"number"}}`, false},
	} {
		from, to := schemaOf(t, c.from).Find(nil), schemaOf(t, c.to).Find(nil)
		require.Equal(t, c.may, from.MayFit(to), "%s into %s", c.from, c.to)
		require.Equal(t, c.may, to.MayFit(from), "%s into %s", c.to, c.from)
	}
}

// random makes schemas and values that fit some of them.
type random struct{ *rand.Rand }

var randomNames = []string{"a", "b", "c"}

func (r random) schema(depth int) string {
	keywords := []string{}
	add := func(format string, args ...any) { keywords = append(keywords, fmt.Sprintf(format, args...)) }
	types := []string{"null", "boolean", "integer", "number", "string", "array", "object", "object", "array"}
	switch r.IntN(4) {
	case 0:
		add(`"type":[%q,%q]`, "null", types[1+r.IntN(8)])
	case 1, 2:
		add(`"type":%q`, types[r.IntN(9)])
	}
	if depth > 0 && r.IntN(2) == 0 {
		props := []string{}
		for _, name := range randomNames[:r.IntN(4)] {
			props = append(props, fmt.Sprintf("%q:%s", name, r.schema(depth-1)))
		}
		add(`"properties":{%s}`, strings.Join(props, ","))
		if r.IntN(2) == 0 {
			add(`"required":[%q]`, randomNames[r.IntN(3)])
		}
		switch r.IntN(4) {
		case 0:
			add(`"additionalProperties":false`)
		case 1:
			add(`"additionalProperties":%s`, r.schema(depth-1))
		}
	}
	if depth > 0 && r.IntN(4) == 0 {
		add(`"items":%s`, r.schema(depth-1))
		if r.IntN(2) == 0 {
			add(`"minItems":1`)
		}
		if r.IntN(4) == 0 {
			add(`"prefixItems":[%s]`, r.schema(depth-1))
		}
	}
	if depth > 0 && r.IntN(5) == 0 {
		add(`%q:[%s,%s]`, []string{"anyOf", "oneOf", "allOf"}[r.IntN(3)], r.schema(depth-1), r.schema(depth-1))
	}
	if r.IntN(10) == 0 {
		add(`"enum":[%s,%s]`, r.value(1), r.value(1))
	}
	if r.IntN(20) == 0 {
		add(`"$ref":"#/$defs/d"`)
	}
	return "{" + strings.Join(keywords, ",") + "}"
}

func (r random) value(depth int) string {
	switch n := r.IntN(9); {
	case n == 0:
		return "null"
	case n == 1:
		return "true"
	case n == 2:
		return []string{"0", "1", "1.0", "1.5"}[r.IntN(4)]
	case n == 3 || depth == 0:
		return []string{`"x"`, `"y"`}[r.IntN(2)]
	case n < 6:
		return "[" + strings.Join([]string{r.value(depth - 1), r.value(depth - 1)}[:r.IntN(3)], ",") + "]"
	}
	parts := []string{}
	for _, name := range append(randomNames, "d") {
		if r.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%s", name, r.value(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// walkPath returns the values that a path leads to in v; behind [*] there may be several.
func walkPath(v any, path []Elem) []any {
	for i, e := range path {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[e.Key]
			if !ok || !e.IsKey {
				return nil
			}
			v = next
		case []any:
			if e.Index == EveryItem || e.Index == AnyItem {
				var all []any
				for _, item := range x {
					all = append(all, walkPath(item, path[i+1:])...)
				}
				return all
			}
			if e.Index < 0 || e.Index >= len(x) {
				return nil
			}
			v = x[e.Index]
		default:
			return nil
		}
	}
	return []any{v}
}

// Whatever is in a valid value is never called impossible, and what fits both schemas never called disjoint.
func TestNothingPossibleIsCalledImpossible(t *testing.T) {
	t.Parallel()
	r := random{rand.New(rand.NewPCG(3, 4))}
	found, fitted, impossible, unfit := 0, 0, 0, 0
	for range 4_000 {
		withDefs := func() (*Schema, string) {
			raw := r.schema(3)
			raw = strings.TrimSuffix(raw, "}")
			if len(raw) > 1 {
				raw += ","
			}
			raw += `"$defs":{"d":` + strings.ReplaceAll(r.schema(1), `"$ref":"#/$defs/d"`, `"title":""`) + `}}`
			return schemaOf(t, raw), raw
		}
		from, fromRaw := withDefs()
		to, toRaw := withDefs()
		elems := []Elem{{Key: "a", Index: -1, IsKey: true}, {Key: "b", Index: -1, IsKey: true}, {Key: "d", Index: -1, IsKey: true}, {Index: 0}, {Index: 1}, {Index: EveryItem}, {Index: AnyItem}}
		var way []Elem
		for range r.IntN(3) {
			way = append(way, elems[r.IntN(len(elems))])
		}
		place, whole := from.Find(way), to.Find(nil)
		if place.Impossible {
			impossible++
		} else if !place.MayFit(whole) {
			unfit++
		}
		for range 25 {
			text := r.value(3)
			if len(from.Check([]byte(text), nil)) > 0 {
				continue
			}
			var v any
			require.NoError(t, json.Unmarshal([]byte(text), &v))
			all := walkPath(v, way)
			if len(all) > 0 {
				found++
				require.False(t, place.Impossible, "%v in %s of %s", way, text, fromRaw)
			}
			for _, w := range all {
				if strings.Contains(fmt.Sprint(way), fmt.Sprint(EveryItem)) {
					w = all
				}
				handed, err := json.Marshal(w)
				require.NoError(t, err)
				if len(to.Check(handed, nil)) == 0 {
					fitted++
					require.True(t, place.MayFit(whole), "%s by %v in %s of %s fits %s", handed, way, text, fromRaw, toRaw)
				}
			}
		}
	}
	t.Log(found, fitted, impossible, unfit)
	require.Greater(t, found, 1_000)
	require.Greater(t, fitted, 300)
	require.Greater(t, impossible, 100)
	require.Greater(t, unfit, 100)
}
