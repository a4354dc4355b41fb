package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
)

// producer is what step a came to in the tables below.
const producer = `{"n": 1.0, "big":12345678901234567890, "e": 1e400, "s":"text", "q":"\"42\"", "t": true, "nil":null, ` +
	`"o": { "k" : [1, 2.50 ,{"deep":"d"}] }, "0":"zero", "k e.y":"spaced", "01":"lead"}`

// resolve returns the arguments of step b of a plan, where a is producer, or missing.
func resolve(t *testing.T, arguments, options string, missing bool) (string, string) {
	t.Helper()
	plan := fmt.Sprintf(`{"steps":[{"id":"a","tool":"x"},{"id":"b","tool":"x","arguments":%s}]%s}`, arguments, options)
	p, err := reference.Parse([]byte(plan))
	if err != nil {
		return "", "rejected"
	}
	args, failure := p.Arguments(1, reference.Sight{Result: func(int) ([]byte, bool) { return []byte(producer), !missing }})
	if failure != nil {
		return "", failure.Code
	}
	return string(args), ""
}

func TestArguments(t *testing.T) {
	t.Parallel()
	tests := []struct{ arguments, want, code string }{
		// whole references keep type and bytes
		{`{"x":"$ref:a.n"}`, `{"x":1.0}`, ""},
		{`{"x": "$ref:a.big" }`, `{"x": 12345678901234567890 }`, ""},
		{`{"x":"$ref:a.e"}`, `{"x":1e400}`, ""},
		{`{"x":["$ref:a.o"]}`, `{"x":[{ "k" : [1, 2.50 ,{"deep":"d"}] }]}`, ""},
		{`{"x":"$ref:a.o.k[2].deep"}`, `{"x":"d"}`, ""},
		{`{"x":"$ref:a[\"k e.y\"]"}`, `{"x":"spaced"}`, ""},
		{`{"x":"$ref:a[\"\\u0073\"]"}`, `{"x":"text"}`, ""},
		{`"{\"x\": \"$ref:a.n\"}"`, `{"x": 1.0}`, ""},
		// paths
		{`{"x":"$ref:a.o.k.1"}`, `{"x":2.50}`, ""},
		{`{"x":"$ref:a.0"}`, `{"x":"zero"}`, ""},
		{`{"x":"$ref:a.01"}`, `{"x":"lead"}`, ""},
		{`{"x":"$ref:a[0]"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.o.k.01"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.o.k[\"1\"]"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.o.k[99999999999999999999]"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.nil.deeper.still"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.nope.deeper"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.s.deeper"}`, "", "unresolved_ref"},
		{`{"x":"at ${ref:a.n.deeper}"}`, "", "unresolved_ref"},
		{`{"x":"$ref:a..n"}`, "", "rejected"},
		{`{"x":"$ref:a[01]"}`, "", "rejected"},
		{`{"x":"$ref:a[-1]"}`, "", "rejected"},
		{`{"x":"$ref:a.@this"}`, "", "rejected"},
		{`{"x":"$ref:"}`, "", "rejected"},
		// alternatives
		{`{"x":"$ref:a.nil||$ref:a.n"}`, `{"x":1.0}`, ""},
		{`{"x":"$ref:a.s.deeper || $ref:a.nope || \"none\""}`, `{"x":"none"}`, ""},
		{`{"x":"$ref:a.nil || 1.00"}`, `{"x":1.00}`, ""},
		{`{"x":"$ref:a.nil || $ref:a.nope"}`, `{"x":null}`, ""},
		{`{"x":"$ref:a.nil\n||\t0"}`, `{"x":0}`, ""},
		{`{"x":"$ref:a.n || 1 "}`, "", "rejected"},
		{`{"x":"$ref:a.n || 1 || 2"}`, "", "rejected"},
		{`{"x":"$ref:a.n || [1]"}`, "", "rejected"},
		{`{"x":"$ref:a.n || or"}`, "", "rejected"},
		{`{"x":"$ref:a.n ||"}`, "", "rejected"},
		// templates
		{`{"x":"It is $ref:a.n."}`, `{"x":"It is 1.0."}`, ""},
		{`{"x":"It is $ref:a.s, $ref:a.q; ${ref:a.o}!"}`, `{"x":"It is text, \"42\"; { \"k\" : [1, 2.50 ,{\"deep\":\"d\"}] }!"}`, ""},
		{`{"x":"${ref:a.n}"}`, `{"x":"1.0"}`, ""},
		{`{"x":"$ref:a.s is <text>"}`, `{"x":"text is <text>"}`, ""},
		{`{"x":"${ref:a.nope} and ${ref:a.nil}"}`, `{"x":"null and null"}`, ""},
		{`{"x":"a || $ref:a.n || b"}`, `{"x":"a || 1.0 || b"}`, ""},
		{`{"x":"no $ref:a.n/b"}`, "", "rejected"},
		{`{"x":"no $ref:a.n.b.x,"}`, "", "unresolved_ref"},
		{`{"x":"no $ref:a.,"}`, "", "rejected"},
		{`{"x":"no ${ref:a.n"}`, "", "rejected"},
		{`{"x":"no ${ref:a.n || 1}"}`, "", "rejected"},
		{`{"x":"no $ref: here"}`, "", "rejected"},
		// escapes
		{`{"x":"$$ref:a"}`, `{"x":"$ref:a"}`, ""},
		{`{"x":"$$$ref:a.n"}`, `{"x":"$1.0"}`, ""},
		{`{"x":"$$$$ref:a.n"}`, `{"x":"$$ref:a.n"}`, ""},
		{`{"x":"$${ref:a.n} $5 $refund"}`, `{"x":"${ref:a.n} $5 $refund"}`, ""},
		{`{"$$ref":"a","$$ref:k":1}`, `{"$ref":"a","$ref:k":1}`, ""},
		{`{"$ref:a":1}`, "", "rejected"},
		{`{"x ${ref:":1}`, "", "rejected"},
		// object form
		{`{"x":{"$ref":"a.o.k[0]"}}`, `{"x":1}`, ""},
		{`{"\u0024ref":"a.o"}`, `{ "k" : [1, 2.50 ,{"deep":"d"}] }`, ""},
		{`{"$ref":"a.n"}`, "", "invalid_arguments"},
		{`{"$ref":"a.nope"}`, "", "invalid_arguments"},
		{`{"x":{"$ref":"a","y":1}}`, "", "rejected"},
		{`{"x":{"$ref":"$ref:a"}}`, "", "rejected"},
		{`"$ref:a"`, "", "rejected"},
		// no references
		{`null`, `{}`, ""},
		{`""`, `{}`, ""},
		{`{ "x" : "\u0041\/" }`, `{ "x" : "\u0041\/" }`, ""},
		{`[1]`, "", "rejected"},
	}
	for _, tt := range tests {
		args, code := resolve(t, tt.arguments, "", false)
		require.Equal(t, tt.code, code, tt.arguments)
		require.Equal(t, tt.want, args, tt.arguments)
	}
}

func TestArgumentsMissing(t *testing.T) {
	t.Parallel()
	tests := []struct{ arguments, options, want, code string }{
		{`{"x":"$ref:a.n"}`, ``, `{"x":null}`, ""},
		{`{"x":"at ${ref:a}"}`, ``, `{"x":"at null"}`, ""},
		{`{"x":"$ref:a || 7"}`, `,"on_missing":"error"`, `{"x":7}`, ""},
		{`{"x":"$ref:a || $ref:a.n"}`, `,"on_missing":"error"`, ``, "unresolved_ref"},
		{`{"x":"$ref:a.n"}`, `,"on_missing":"error"`, ``, "unresolved_ref"},
		{`{"x":"at ${ref:a}"}`, `,"on_missing":"error"`, ``, "unresolved_ref"},
		{`{"$ref":"a"}`, ``, ``, "invalid_arguments"},
	}
	for _, tt := range tests {
		args, code := resolve(t, tt.arguments, tt.options, true)
		require.Equal(t, tt.code, code, tt.arguments)
		require.Equal(t, tt.want, args, tt.arguments)
	}
}

func TestArgumentsTooLarge(t *testing.T) {
	t.Parallel()
	p, err := reference.Parse([]byte(`{"steps":[{"id":"a","tool":"x"},
		{"id":"b","tool":"x","arguments":{"x":"$ref:a","y":"$ref:a"}}, {"id":"c","tool":"x","arguments":{"x":"$ref:a"}}]}`))
	require.NoError(t, err)
	half := []byte(`"` + strings.Repeat("y", 33<<20) + `"`)
	result := func(int) ([]byte, bool) { return half, true }
	_, failure := p.Arguments(1, reference.Sight{Result: result})
	require.NotNil(t, failure)
	require.Equal(t, "too_large", failure.Code)
	args, failure := p.Arguments(2, reference.Sight{Result: result})
	require.Nil(t, failure)
	require.Len(t, args, len(half)+len(`{"x":}`))
}

func TestConvert(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		body string
		text bool
		want string // "" for tool_terminal
	}{
		{"", false, "null"},
		{"", true, `""`},
		{" {\"a\": 1.0}\n", false, `{"a": 1.0}`},
		{"1e400", false, "1e400"},
		{"plain", false, `"plain"`},
		{"{broken", false, `"{broken"`},
		{"01", false, `"01"`},
		{" ", false, `" "`},
		{"42", true, `"42"`},
		{`{"a":1,"a":2}`, true, `"{\"a\":1,\"a\":2}"`},
		{`{"a":1,"\u0061":2}`, false, ""},
		{`[{"a":1},{"a":2}]`, false, `[{"a":1},{"a":2}]`},
		{`{"a":1,"a":2`, false, `"{\"a\":1,\"a\":2"`},
		{"\"\xff\"", false, ""},
		{"\xff", true, ""},
		{`"\ud800"`, false, ""},
		{`"\ud83d\ude00"`, false, `"\ud83d\ude00"`},
		{`"\\ud800"`, false, `"\\ud800"`},
		{deep(64), false, deep(64)},
		{deep(65), false, ""},
		{deep(20000), false, ""},
		{strings.Repeat("[", 70), false, `"` + strings.Repeat("[", 70) + `"`},
	}
	for _, tt := range tests {
		got, failure := reference.Convert([]byte(tt.body), tt.text)
		if tt.want == "" {
			require.NotNil(t, failure, tt.body)
			require.Equal(t, "tool_terminal", failure.Code)
			continue
		}
		require.Nil(t, failure, tt.body)
		require.Equal(t, tt.want, string(got))
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, plan := range []string{
		``, `null`, `[]`, `{}`, `{"steps":[]}`, `{"steps":[{"tool":"x"}]}`, `{"steps":[{"id":"a"}]}`, `{"steps":[{"id":"a.b","tool":"x"}]}`,
		`{"steps":[{"id":"a","tool":"x"},{"id":"a","tool":"x"}]}`,
		`{"steps":[{"id":"a","tool":"x","depends_on":["b"]}]}`,
		`{"steps":[{"id":"a","tool":"x","arguments":{"x":"$ref:a"}}]}`,
		`{"steps":[{"id":"a","tool":"x","depends_on":["b"]},{"id":"b","tool":"x","arguments":{"x":["${ref:a}"]}}]}`,
		`{"steps":[{"id":"a","tool":"x"}],"output_steps":["b"]}`,
		`{"steps":[{"id":"a","tool":"x"}],"output_steps":["a","a"]}`,
		`{"steps":[{"id":"a","tool":"x"}],"steps":[]}`,
		`{"steps":[{"id":"a","tool":"x","arguments":"x=1"}]}`,
	} {
		_, err := reference.Parse([]byte(plan))
		require.Error(t, err, plan)
		_, err = reference.Run([]byte(plan), nil, nil)
		require.Error(t, err, plan)
	}
}
