package dialect_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/dialect"
	"github.com/stepjet/stepjet/tool"
)

// TestTheStateBehindPrograms has at each key what the interpreter says that a call behind the last would read there, where
// nothing spoils that.
func TestTheStateBehindPrograms(t *testing.T) {
	t.Parallel()
	compared, folded := 0, 0
	for seed := range *programs {
		p := randomProgram(rand.New(rand.NewSource(int64(seed))))
		p.output = nil
		x := interpret(p)
		if x.refused {
			continue
		}
		initial, _ := json.Marshal(p.initial)
		came := map[string]dialect.Came{}
		for i, c := range p.calls {
			switch raw, _ := json.Marshal(c.result); x.status[i] {
			case "succeeded":
				came[fmt.Sprint("c", i)] = dialect.Came{Result: raw}
			case "failed":
				raw, _ = json.Marshal(c.fails)
				came[fmt.Sprint("c", i)] = dialect.Came{Error: raw}
			}
		}
		after, lost := dialect.WritersOf(p.document()).After(initial, came, nil, 1<<20)
		if len(lost) > 0 {
			continue
		}
		var got map[string]any
		require.NoError(t, json.Unmarshal(after, &got))
		for _, key := range append(slices.Clone(keys), "err") {
			at := from{path: []string{key}}
			if seenAt, below := x.seen(x.view(len(p.calls), at.path), at.path); len(seenAt)+len(below) == 0 {
				require.Equal(t, p.initial[key], got[key], "seed %d", seed)
				continue
			}
			all, constant := x.candidates(len(p.calls), at)
			want, spoiled := first(all, constant)
			if n := x.joinedAt(x.view(len(p.calls), at.path), at.path); n >= 0 {
				folded++
				if n == 0 || all[0].bad { // of the whole state, which has no methods here; or spoiled
					continue
				}
			}
			if spoiled {
				require.Nil(t, got[key])
				continue
			}
			require.Equal(t, withoutNulls(want), withoutNulls(got[key]), "seed %d, %s\n%s\n%v", seed, key, p.document(), x.status)
			compared++
		}
	}
	require.Greater(t, compared, *programs/5)
	require.Greater(t, folded, *programs/20)
}

// withoutNulls is a value whose objects have no null: some methods leave it out, and it is as good as nothing.
func withoutNulls(v any) any {
	m, is := v.(map[string]any)
	if !is {
		return v
	}
	out := map[string]any{}
	for key, x := range m {
		if x != nil {
			out[key] = withoutNulls(x)
		}
	}
	return out
}

// TestTheStateBehindCalls as it is written, case by case.
func TestTheStateBehindCalls(t *testing.T) {
	t.Parallel()
	schema, err := tool.CompileSchema([]byte(`{"type":"object","required":["later"],"properties":{"n":{"type":"number"},"tags":{"type":"array","items":{"type":"string"}}}}`))
	require.NoError(t, err)
	for _, c := range []struct{ calls, state, came, want, lost string }{
		{`{"_tool":"a"}`, ``, `{}`, ``, ``},
		{`{"_tool":"a"}`, ``, `{"a":1}`, `{"a":1}`, ``},
		{`{"_tool":"a","_outputPath":"†state"}`, `{"x":1,"y":2}`, `{"a":{"x":3,"y":null}}`, `{"x":3,"y":2}`, ``},
		{`{"_tool":"a","_outputPath":"†state"}`, `{"x":1}`, `{"a":"text"}`, `{"x":1}`, `a: the state is an object`},
		{`{"_tool":"a","_outputPath":"†state.x && †state.y.z"}`, `{"y":{"w":0}}`, `{"a":12345678901234567890}`, `{"x":12345678901234567890,"y":{"w":0,"z":12345678901234567890}}`, ``},
		{`{"_tool":"a","_outputPath":"†state.y.z"}`, `{"y":5}`, `{"a":1}`, `{"y":5}`, `a: what stands at †state.y is no object`},
		{`{"_tool":"a","_outputPath":"†state.l","_outputMethod":"push"},{"_tool":"b","_outputPath":"†state.l","_outputMethod":"concat"}`, `{"l":[0]}`, `{"b":[2,3],"a":1}`, `{"l":[0,1,2,3]}`, ``},
		{`{"_tool":"a","_outputPath":"†state.l","_outputMethod":"push"}`, `{"l":"no list"}`, `{"a":1}`, `{"l":"no list"}`, `a: push does not fit what stands at †state.l`},
		{`{"_tool":"a","_outputPath":"†state.m","_outputMethod":"merge"}`, `{"m":{"x":1}}`, `{"a":{"y":2,"x":null}}`, `{"m":{"x":1,"y":2}}`, ``},
		{`{"_tool":"a","_outputPath":"†state.r || †state.e"}`, `{"r":0}`, `{"a":{"error":{"code":"no"}}}`, `{"e":{"code":"no"},"r":0}`, ``},
		{`{"_tool":"a","_outputPath":"†state.r"}`, `{"r":0}`, `{"a":{"error":{"code":"no"}}}`, `{"r":0}`, ``},
		{`{"_tool":"a","_outputPath":"†state.n"},{"_tool":"b","_outputPath":"†state.tags","_outputMethod":"push"}`, `{"n":0}`, `{"a":"much","b":"x"}`, `{"n":0,"tags":["x"]}`, `a: †state.n: must be a number`},
		{`{"_tool":"b","_outputPath":"†state.tags","_outputMethod":"push"}`, `{"tags":["x"]}`, `{"b":7}`, `{"tags":["x"]}`, `b: †state.tags.1: must be a string`},
		{`{"_tool":"a"},{"_tool":"b"}`, `{}`, `{"a":"` + strings.Repeat("x", 900) + `","b":"y"}`, `{"b":"y"}`, `a: with it the state would have more than 800 bytes`},
		{`{"_tool":"a","_outputPath":"†state.x"}`, ``, `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`, ``, `a: the state would be nested`},
	} {
		var values map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(c.came), &values))
		came := map[string]dialect.Came{}
		for id, v := range values {
			var failed struct{ Error json.RawMessage }
			if came[id] = (dialect.Came{Result: v}); json.Unmarshal(v, &failed) == nil && failed.Error != nil {
				came[id] = dialect.Came{Error: failed.Error}
			}
		}
		after, lost := dialect.WritersOf([]byte(`{"calls":[`+c.calls+`]}`)).After([]byte(c.state), came, schema, 800)
		require.Equal(t, c.want, string(after), c.calls)
		var told []string
		for id, why := range lost {
			told = append(told, id+": "+why)
		}
		require.True(t, len(told) == 0 && c.lost == "" || len(told) == 1 && c.lost != "" && strings.HasPrefix(told[0], c.lost), "%s: %q", c.calls, told)
	}
	require.Nil(t, dialect.WritersOf([]byte(`{"steps":[]}`)))
	require.Nil(t, dialect.WritersOf([]byte(`{`)))
}
