package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, name, args string) (string, error) {
	t.Helper()
	found, ok := Lookup(name)
	require.True(t, ok, name)
	schema, err := tool.CompileSchema(found.Definition.InputSchema)
	require.NoError(t, err)
	require.Empty(t, schema.Check([]byte(args), nil), "%s %s", name, args)
	out, err := found.Run(context.Background(), Call{Args: json.RawMessage(args)})
	if err == nil {
		schema, schemaErr := tool.CompileSchema(found.Definition.OutputSchema)
		require.NoError(t, schemaErr)
		require.Empty(t, schema.Check(out, nil), "%s gave %s", name, out)
	}
	return string(out), err
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tl := range slices.Concat(All(), Group("demo")) {
		d := tl.Definition
		require.True(t, subjects.ValidTool(d.Name), d.Name)
		require.False(t, names[d.Name], d.Name)
		names[d.Name] = true
		require.Contains(t, Groups(), tl.Group)
		require.NotEmpty(t, d.Description)
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		back, err := tool.ParseDefinition(raw)
		require.NoError(t, err, "%s", raw)
		require.Equal(t, d.Digest(), back.Digest())
		c, err := d.Contract()
		require.NoError(t, err, d.Name)
		require.Equal(t, tool.ParallelSafe, c.Mode, d.Name)
		require.Equal(t, 3, c.MaxAttempts, d.Name)
		for _, schema := range []json.RawMessage{d.InputSchema, d.OutputSchema} {
			_, err = tool.CompileSchema(schema)
			require.NoError(t, err, "%s", schema)
		}
	}
	for _, g := range Groups() {
		require.NotEmpty(t, Group(g))
		for _, tl := range Group(g) {
			hosted := slices.ContainsFunc(All(), func(x Tool) bool { return x.Definition == tl.Definition })
			require.Equal(t, g != "demo" && g != "nestful", hosted, "%s is hosted where nothing is said, or where it is asked for", tl.Definition.Name)
		}
	}
	for _, name := range []string{"fail", "sleep", "reminder"} { // nobody calls them by chance
		require.False(t, slices.ContainsFunc(All(), func(x Tool) bool { return x.Definition.Name == name }))
	}
	require.Nil(t, Group("nothing"))
}

func TestTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, args, want string }{
		{"text_upper", `{"text":"straße é"}`, `"STRAßE É"`},
		{"text_lower", `{"text":"ÄB<C>"}`, `"äb<c>"`},
		{"text_trim", `{"text":" \n a b \t"}`, `"a b"`},
		{"text_trim", `{"text":"--a-b--","characters":"-"}`, `"a-b"`},
		{"text_length", `{"text":"héé👍"}`, `4`},
		{"text_contains", `{"text":"Hello","search":"ell"}`, `true`},
		{"text_contains", `{"text":"Hello","search":"hELL"}`, `false`},
		{"text_contains", `{"text":"ΣΑΣ K","search":"σας k","ignore_case":true}`, `true`},
		{"text_slice", `{"text":"héllo","start":1,"end":3}`, `"él"`},
		{"text_slice", `{"text":"héllo","start":-2}`, `"lo"`},
		{"text_slice", `{"text":"héllo","end":-1}`, `"héll"`},
		{"text_slice", `{"text":"héllo","start":4,"end":2}`, `""`},
		{"text_slice", `{"text":"héllo","start":-99,"end":99}`, `"héllo"`},
		{"text_replace", `{"text":"a.b.c","old":".","new":"--"}`, `"a--b--c"`},
		{"text_replace", `{"text":"a.b.c","old":".","new":"","count":1}`, `"ab.c"`},
		{"text_split", `{"text":"a, b,c","separator":","}`, `["a"," b","c"]`},
		{"text_split", `{"text":" a  b\nc "}`, `["a","b","c"]`},
		{"text_split", `{"text":""}`, `[]`},
		{"text_concat", `{"parts":["x=",1.50,", ok=",true,null]}`, `"x=1.50, ok=truenull"`},
		{"text_concat", `{"parts":[]}`, `""`},
		{"text_join", `{"items":["a",2,"c"]}`, `"a, 2, c"`},
		{"text_join", `{"items":["a","b"],"separator":"\n"}`, `"a\nb"`},

		{"json_get", `{"value":{"a":[{"b/c":1.0}]},"pointer":"/a/0/b~1c"}`, `1.0`},
		{"json_get", `{"value":{"a":1},"pointer":""}`, `{"a":1}`},
		{"json_get", `{"value":{"a":null},"pointer":"/a","default":2}`, `null`},
		{"json_get", `{"value":{"a":null},"pointer":"/b/c","default":[2]}`, `[2]`},
		{"json_get", `{"value":{"@pretty":12345678901234567890},"pointer":"/@pretty"}`, `12345678901234567890`},
		{"json_get", `{"value":{"a":{"#":7}},"pointer":"/a/#"}`, `7`},
		{"json_keys", `{"value":{"b":1,"a\u0041":2}}`, `["b","a\u0041"]`},
		{"json_values", `{"value":{"b":1e5,"a":{"x":[]}}}`, `[1e5,{"x":[]}]`},
		{"json_length", `{"value":[1,[2,3],"]"]}`, `3`},
		{"json_length", `{"value":{"a":1,"b":{}}}`, `2`},
		{"json_length", `{"value":"hé"}`, `2`},
		{"json_length", `{"value":[]}`, `0`},
		{"json_pick", `{"value":{"a":1,"b":2.0,"c":3},"keys":["c","x","b","c"]}`, `{"c":3,"b":2.0}`},
		{"json_merge", `{"values":[{"a":1,"o":{"x":1}},{"b":2,"o":{"y":2}},{"a":3}]}`, `{"a":3,"o":{"y":2},"b":2}`},
		{"json_merge", `{"values":[{"a":1,"o":{"x":1,"p":{"q":1}}},{"o":{"y":2.50,"p":{"r":2}}},{"o":{"x":null}}],"deep":true}`, `{"a":1,"o":{"x":null,"p":{"q":1,"r":2},"y":2.50}}`},
		{"json_merge", `{"values":[{"o":{"x":1}},{"o":5},{"o":{"y":1}}],"deep":true}`, `{"o":{"y":1}}`},
		{"json_merge", `{"values":[]}`, `{}`},
		{"json_equal", `{"a":{"x":1,"y":[1.0,"é"]},"b":{"y":[1,"\u00e9"],"x":1e0}}`, `true`},
		{"json_equal", `{"a":12345678901234567890,"b":12345678901234567891}`, `false`},
		{"json_equal", `{"a":1e400,"b":10e399}`, `true`},
		{"json_equal", `{"a":-0.0,"b":0}`, `true`},
		{"json_equal", `{"a":0.00120,"b":1.2e-3}`, `true`},
		{"json_equal", `{"a":[],"b":{}}`, `false`},
		{"json_equal", `{"a":null,"b":false}`, `false`},
		{"json_equal", `{"a":"1","b":1}`, `false`},
		{"json_diff", `{"a":{"x":1},"b":{"x":1.0}}`, `{"equal":true,"changes":[]}`},
		{"json_diff", `{"a":{"x":1,"y":{"z/~":[1,2,3]},"gone":0},"b":{"y":{"z/~":[1,5]},"x":1,"new":"n"}}`,
			`{"equal":false,"changes":[{"op":"replace","path":"/y/z~1~0/1","from":2,"to":5},{"op":"remove","path":"/y/z~1~0/2","from":3},{"op":"remove","path":"/gone","from":0},{"op":"add","path":"/new","to":"n"}]}`},
		{"json_diff", `{"a":1,"b":[1]}`, `{"equal":false,"changes":[{"op":"replace","path":"","from":1,"to":[1]}]}`},
		{"json_diff", `{"a":[1],"b":[1,2,3]}`, `{"equal":false,"changes":[{"op":"add","path":"/1","to":2},{"op":"add","path":"/2","to":3}]}`},
		{"json_parse", `{"text":" {\"a\": 1.0} "}`, `{"a": 1.0}`},
		{"json_stringify", `{"value":{ "a" : [1.0, "<é>"] }}`, `"{\"a\":[1.0,\"<é>\"]}"`},

		{"sleep", `{"ms":1}`, `1`},
		{"fail", `{"until_attempt":1}`, `1`},
	} {
		out, err := run(t, c.tool, c.args)
		require.NoError(t, err, "%s %s", c.tool, c.args)
		require.Equal(t, `{"result":`+c.want+`}`, out, "%s %s", c.tool, c.args)
	}
	out, err := run(t, "echo", `{"a": 1.0}`)
	require.NoError(t, err)
	require.Equal(t, `{"a": 1.0}`, out)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, args string
		code       fault.Code
		part       string
	}{
		{"json_get", `{"value":{"a":1,"bc":2},"pointer":"/b"}`, fault.ToolTerminal, "there are the keys a, bc"},
		{"json_get", `{"value":[1],"pointer":"/1"}`, fault.ToolTerminal, "an array of 1 items"},
		{"json_get", `{"value":[1],"pointer":"/00"}`, fault.ToolTerminal, "finds nothing"},
		{"json_get", `{"value":"text","pointer":"/a"}`, fault.ToolTerminal, "no object or array"},
		{"json_get", `{"value":{},"pointer":"/a"}`, fault.ToolTerminal, "empty object"},
		{"json_get", `{"value":{"a":1},"pointer":"a.b","default":1}`, fault.ToolTerminal, `write "/a/b"`},
		{"json_parse", `{"text":"{\"a\":"}`, fault.ToolTerminal, "not valid JSON"},
		{"json_parse", `{"text":"1 2"}`, fault.ToolTerminal, "exactly one"},
		{"json_parse", `{"text":"` + strings.Repeat("[", 300) + `"}`, fault.ToolTerminal, "deeper"},
		{"fail", `{}`, fault.ToolFailed, "failed as asked"},
		{"fail", `{"message":"no luck","terminal":true}`, fault.ToolTerminal, "no luck"},
		{"fail", `{"message":"not yet","until_attempt":2}`, fault.ToolFailed, "not yet"},
	} {
		_, err := run(t, c.tool, c.args)
		require.Error(t, err, "%s %s", c.tool, c.args)
		require.Equal(t, c.code, fault.CodeOf(err), err)
		require.ErrorContains(t, err, c.part)
	}
}

// Arguments that the schema would have refused must not hurt a function that is called without it.
func TestArgumentsNobodyChecked(t *testing.T) {
	t.Parallel()
	for _, args := range []string{``, `null`, `[]`, `"x"`, `{}`, `{`, `{"text":1,"value":1,"values":1,"keys":1,"parts":1,"items":1,"ms":"x","message":1,"pointer":1}`,
		`{"text":null,"value":null,"values":[1],"keys":null,"pointer":null,"ms":-1}`, "{\"text\":\"\xff\"}", strings.Repeat(`{"a":`, 5000)} {
		for _, tl := range All() {
			if tl.Definition.Name == "echo" {
				continue
			}
			out, err := tl.Run(context.Background(), Call{Args: json.RawMessage(args)})
			if err != nil {
				require.NotEqual(t, fault.Internal, fault.CodeOf(err), "%s: %v", tl.Definition.Name, err)
				continue
			}
			require.True(t, json.Valid(out), "%s(%s) = %s", tl.Definition.Name, args, out)
		}
	}
}

func TestBombsAreRefused(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("a", 1<<20)
	many := func(n int, each string) string { return strings.TrimSuffix(strings.Repeat(each+",", n), ",") }
	numbered := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":%s`, i, value)
		}
		return b.String()[1:]
	}
	for name, args := range map[string]string{
		"text_replace":   `{"text":"` + big + `","old":"a","new":"` + strings.Repeat("b", 1000) + `"}`,
		"text_join":      `{"items":[` + many(10_000, `""`) + `],"separator":"` + big + `"}`,
		"text_split":     `{"text":"` + strings.Repeat("a", 12<<20) + `","separator":"a"}`,
		"text_upper":     `{"text":"` + strings.Repeat("a", MaxSize) + `"}`,
		"json_diff":      `{"a":{"` + big + `":{` + numbered(1000, "1") + `}},"b":{"` + big + `":{` + numbered(1000, "2") + `}}}`,
		"json_equal":     `{"a":"` + strings.Repeat("a", maxJSON) + `","b":1}`,
		"json_stringify": `{"value":"` + strings.Repeat("a", maxJSON) + `"}`,
	} {
		found, _ := Lookup(name)
		_, err := found.Run(context.Background(), Call{Args: json.RawMessage(args)})
		require.Equal(t, fault.TooLarge, fault.CodeOf(err), name)
		require.False(t, fault.As(err).Retryable)
	}
}

// Neither a long key above many equal members nor many objects merged into a large one may cost their product.
func TestWalkingCostsNoMoreThanTheSize(t *testing.T) {
	t.Parallel()
	items := strings.TrimSuffix(strings.Repeat("1,", 300_000), ",")
	half := `{"` + strings.Repeat("k", 1<<20) + `":[` + items + `]}`
	equal, _ := Lookup("json_equal")
	begin := time.Now()
	out, err := equal.Run(context.Background(), Call{Args: json.RawMessage(`{"a":` + half + `,"b":` + half + `}`)})
	require.NoError(t, err)
	require.Equal(t, `{"result":true}`, string(out))
	merge, _ := Lookup("json_merge")
	large := `{"o":{"z":[` + items + `]}}`
	_, err = merge.Run(context.Background(), Call{Args: json.RawMessage(`{"deep":true,"values":[` + large + strings.Repeat(`,{"o":{}}`, 200_000) + `]}`)})
	require.NoError(t, err)
	require.Less(t, time.Since(begin), time.Minute)
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stopped)
	sleep, _ := Lookup("sleep")
	_, err := sleep.Run(ctx, Call{Args: json.RawMessage(`{"ms":3600000}`)})
	require.ErrorIs(t, err, stopped)
	for _, args := range []string{`{"ms":3600001}`, `{"ms":-1}`, `{}`} {
		_, err = sleep.Run(context.Background(), Call{Args: json.RawMessage(args)})
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), args)
	}
}

func TestFailUntil(t *testing.T) {
	t.Parallel()
	fail, _ := Lookup("fail")
	for attempt := 1; attempt <= 4; attempt++ {
		out, err := fail.Run(context.Background(), Call{Args: json.RawMessage(`{"until_attempt":3}`), Attempt: attempt})
		if attempt < 3 {
			require.Equal(t, fault.ToolFailed, fault.CodeOf(err))
			require.True(t, fault.As(err).Retryable)
		} else {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf(`{"result":%d}`, attempt), string(out))
		}
	}
}

func ExampleLookup() {
	add, _ := Lookup("add")
	out, _ := add.Run(context.Background(), Call{Args: json.RawMessage(`{"a": 12345678901234567890, "b": 1}`)})
	fmt.Println(string(out))
	// Output: {"result":12345678901234567891}
}
