package worker

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestMarshal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"html":         {map[string]string{"a": "<b>&</b>"}, `{"a":"<b>&</b>"}`},
		"string":       {"42", `"42"`},
		"json text":    {`{"a":1}`, `"{\"a\":1}"`},
		"null":         {(*int)(nil), `null`},
		"nothing":      {struct{}{}, `{}`},
		"exact number": {json.RawMessage(`12345678901234567890.10`), `12345678901234567890.10`},
		"newline":      {"a\n", `"a\n"`},
	} {
		got, err := marshal(c.value)
		require.NoError(t, err, name)
		require.Equal(t, c.want, string(got), name)
	}
	_, err := marshal(math.NaN())
	require.Equal(t, fault.ToolTerminal, fault.CodeOf(err))
	got, err := marshal("after the error")
	require.NoError(t, err)
	require.Equal(t, `"after the error"`, string(got))
}

func TestMarshalledBytesAreNotShared(t *testing.T) {
	t.Parallel()
	first, err := marshal("first")
	require.NoError(t, err)
	_, err = marshal("other")
	require.NoError(t, err)
	require.Equal(t, `"first"`, string(first))
}

func TestUnmarshalWholeNumbers(t *testing.T) {
	t.Parallel()
	var in struct {
		N    int      `json:"n"`
		U    uint64   `json:"u"`
		List []int8   `json:"list"`
		F    float64  `json:"f"`
		S    string   `json:"s"`
		Big  *big.Int `json:"big"`
	}
	err := unmarshal([]byte(`{"n":5.0,"u":1.8446744073709551615e19,"list":[1e2,-0.0],"f":0.1,"s":"1.0","big":123456789012345678901234567890}`), &in)
	require.NoError(t, err)
	require.Equal(t, 5, in.N)
	require.Equal(t, uint64(math.MaxUint64), in.U)
	require.Equal(t, []int8{100, 0}, in.List)
	require.InDelta(t, 0.1, in.F, 0)
	require.Equal(t, "1.0", in.S)
	require.Equal(t, "123456789012345678901234567890", in.Big.String())
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		`{"n":5.5}`, `{"n":1e400}`, `{"n":1e999999999}`, `{"n":1e-999999999}`, `{"n":300.0}`, `{"n":"5"}`, `{"n":5`, `[]`,
	} {
		var in struct {
			N int8 `json:"n"`
		}
		err := unmarshal([]byte(args), &in)
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), args)
	}
}

type weatherIn struct {
	Location string `json:"location" jsonschema:"city to look up"`
	Days     int    `json:"days,omitempty"`
}

type tree struct {
	Children []tree `json:"children"`
}

func TestInferredSchemas(t *testing.T) {
	t.Parallel()
	in, err := inputSchema(reflect.TypeFor[weatherIn]())
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","required":["location"],"additionalProperties":false,"properties":{
		"location":{"type":"string","description":"city to look up"},"days":{"type":"integer"}}}`, string(in))
	pointer, err := inputSchema(reflect.TypeFor[*weatherIn]())
	require.NoError(t, err)
	require.JSONEq(t, string(in), string(pointer))
	for _, open := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage]()} {
		got, err := inputSchema(open)
		require.NoError(t, err)
		require.JSONEq(t, `{"type":"object"}`, string(got))
	}
	std, err := inputSchema(reflect.TypeFor[struct {
		Raw  json.RawMessage `json:"raw"`
		Data []byte          `json:"data"`
		At   time.Time       `json:"at"`
		N    json.Number     `json:"n"`
	}]())
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","required":["raw","data","at","n"],"additionalProperties":false,"properties":{
		"raw":true,"data":{"type":["null","string"],"contentEncoding":"base64"},"at":{"type":"string"},"n":{"type":"number"}}}`, string(std))
}

func TestTypesWithoutASchema(t *testing.T) {
	t.Parallel()
	for _, bad := range []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[[]int](), reflect.TypeFor[tree](), reflect.TypeFor[struct{ C chan int }]()} {
		_, err := inputSchema(bad)
		require.Equal(t, fault.InvalidTool, fault.CodeOf(err), bad)
	}
	require.Nil(t, outputSchema(reflect.TypeFor[tree]()))
	require.JSONEq(t, `{"type":"string"}`, string(outputSchema(reflect.TypeFor[string]())))
}
