package plan_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// unescaped returns what a step is handed whose arguments are these.
func unescaped(t *testing.T, args []byte) []byte {
	t.Helper()
	p, r := plan.Parse([]byte(`{"steps":[{"id":"a","tool":"t","arguments":`+string(args)+`}]}`), nil)
	require.Empty(t, r.Problems, "%s", args)
	require.False(t, p.Steps[0].HasRefs, "%s", args)
	out, err := p.Arguments(0, func(int) ([]byte, bool) { panic("there is nothing to refer to") })
	require.Nil(t, err)
	return out
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ object, want string }{
		{`{}`, `{}`},
		{` {"a" : [1.0, "$5", "ref:", "$ refs $", "see $ref", "$$ref"]} `, ` {"a" : [1.0, "$5", "ref:", {"$text":"$ refs $"}, "see $ref", "$$ref"]} `},
		{`{"a":["{{a.x}}","ref:a","{{$ref:a}}"],"$text":"b"}`, `{"a":[{"$text":"{{a.x}}"},{"$text":"ref:a"},{"$text":"{{$ref:a}}"}],"$$text":"b"}`},
		{`{"$text":{"$$text":"$ref"}}`, `{"$$text":{"$$$text":{"$text":"$ref"}}}`},
		{`{"a":"$ref:b"}`, `{"a":"$$ref:b"}`},
		{`{"a":"see ${ref:b}, $ref:c and $$$ref:d $"}`, `{"a":"see $${ref:b}, $$ref:c and $$$$$$ref:d $"}`},
		{`{"a":"$ref:a || 1"}`, `{"a":"$$ref:a || 1"}`},
		{`{"$ref":"b"}`, `{"$$ref":"b"}`},
		{`{"$ref":{"$ref":1,"$$ref":2,"$$$ref":3},"x":[{"$ref":"ref"}]}`, `{"$$ref":{"$$ref":1,"$$$ref":2,"$$$$ref":3},"x":[{"$$ref":"ref"}]}`},
		{`{"$ref:a":1,"x ${ref:":2,"$$ref:":3,"$":4}`, `{"$$ref:a":1,"x $${ref:":2,"$$$$ref:":3,"$":4}`},
		{`{"a":"\u0024ref:b \/ é\u00e9"}`, `{"a":"$$ref:b / éé"}`},
		{`{"\u0024ref":"\"$ref:\n"}`, `{"$$ref":"\"$$ref:\n"}`},
	} {
		got, err := plan.Escape([]byte(c.object))
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
		require.JSONEq(t, c.object, string(unescaped(t, got)))
	}
}

func TestEscapeRefuses(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]fault.Code{
		``:                            fault.MalformedJSON,
		`{`:                           fault.MalformedJSON,
		`{} {}`:                       fault.MalformedJSON,
		`[]`:                          fault.InvalidArguments,
		`null`:                        fault.InvalidArguments,
		`{"a":1,"\u0061":2}`:          fault.DuplicateKey,
		"{\"a\":\"\xff\"}":            fault.InvalidUTF8,
		`{"a":"\ud800"}`:              fault.InvalidUTF8,
		`{"a":` + nested(61, "1"):     fault.MalformedJSON,
		`{"a":` + nested(61, "1")[1:]: fault.MalformedJSON,
	} {
		_, err := plan.Escape([]byte(text))
		require.Equal(t, code, fault.As(err).Code, text)
	}
	_, err := plan.Escape([]byte(`{"a":` + nested(60, `"{{x}}"`) + `}`)) // an object has to stand around the text
	require.Equal(t, fault.MalformedJSON, fault.As(err).Code)
	deepest := `{"a":` + nested(60, `"$ref:x"`) + `}`
	got, err := plan.Escape([]byte(deepest))
	require.NoError(t, err)
	require.Equal(t, deepest, string(unescaped(t, got)))
}

// nested is a value in n arrays.
func nested(n int, value string) string {
	return strings.Repeat("[", n) + value + strings.Repeat("]", n)
}

// requireEscapes holds Escape against its promise for one object.
func requireEscapes(t *testing.T, object []byte) {
	t.Helper()
	args, err := plan.Escape(object)
	require.NoError(t, err)
	got := unescaped(t, args)
	require.Equal(t, decoded(t, object), decoded(t, got), "%s", object)
	if !bytes.Contains(object, []byte(`\`)) { // nothing is spelled in two ways
		require.Equal(t, string(bytes.TrimSpace(object)), string(got))
	}
}

// decoded returns a value with its numbers as they stand.
func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), "%s", text)
	return v
}

// Objects made of all that means something in a reference.
func TestEscapeKeepsEveryObject(t *testing.T) {
	t.Parallel()
	crumbs := []string{"$", "$$", "$ref", "$ref:", "${ref:", "ref:", "{ref:", "a", "}", " ", "||", ".x", `"`, `\`, "é", "\n", "[0]", "ref", "$text", "{{", "}}", "<a>", "#", "steps."}
	r := rand.New(rand.NewPCG(5, 6))
	text := func() string {
		s := ""
		for range r.IntN(5) {
			s += crumbs[r.IntN(len(crumbs))]
		}
		return s
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(6); {
		case n < 3 || depth == 0:
			return text()
		case n == 3:
			list := []any{}
			for range r.IntN(4) {
				list = append(list, value(depth-1))
			}
			return list
		}
		object := map[string]any{}
		for range r.IntN(4) {
			object[text()] = value(depth - 1)
		}
		return object
	}
	for range 20_000 {
		object, err := json.Marshal(map[string]any{text(): value(3), text(): value(3)})
		require.NoError(t, err)
		requireEscapes(t, object)
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{`{}`, `{"$ref":"a"}`, `{"$$ref":"$ref:a"}`, `{"x":["${ref:a}","\u0024ref:b"]}`, `{"$ref:a":"$$$ref:"}`, ` {"a":1e400} `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		args, err := plan.Escape(object)
		if err != nil {
			require.Contains(t, []fault.Code{fault.MalformedJSON, fault.DuplicateKey, fault.InvalidUTF8, fault.InvalidArguments}, fault.As(err).Code)
			return
		}
		if len(args) < 100_000 { // a larger plan is refused for its size
			requireEscapes(t, object)
		}
	})
}

func BenchmarkEscape(b *testing.B) {
	object := []byte(`{"list":[` + repeat(1000, `{"id":%d,"text":"costs $5","ref":"$ref:a.%d"}`) + `]}`)
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		if _, err := plan.Escape(object); err != nil {
			b.Fatal(err)
		}
	}
}
