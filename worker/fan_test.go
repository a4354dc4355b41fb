package worker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

var contacts = tool.Batch{Argument: "contacts", MaxItems: 3}

func TestSplit(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		items []string
		array bool
		rest  string
	}{
		`{"email":"a"}`:                          {[]string{`{"email":"a"}`}, false, ""},
		`{}`:                                     {[]string{`{}`}, false, ""},
		`{"contacts":[{"email": "a"},7.0,null]}`: {[]string{`{"email": "a"}`, `7.0`, `null`}, true, ""},
		`{"contacts":[]}`:                        {[]string{}, true, ""},
		`{"w":"x", "contacts":[1], "a": {"b": 1.0}}`:      {[]string{`1`}, true, `,"a":{"b":1.0},"w":"x"`},
		`{"a":{"b":1.0},"contacts":[2,3],"w":"x"}`:        {[]string{`2`, `3`}, true, `,"a":{"b":1.0},"w":"x"`},
		`{"contacts":[1],"<\"é\n>":"y"}`:                  {[]string{`1`}, true, `,"<\"é\n>":"y"`},
		`{"nested":{"contacts":[1,2,3,4]},"email":"<a>"}`: {[]string{`{"nested":{"contacts":[1,2,3,4]},"email":"<a>"}`}, false, ""},
	} {
		c, f := split([]byte(args), contacts)
		require.Nil(t, f, args)
		got := make([]string, len(c.items))
		for i, item := range c.items {
			got[i] = string(item)
		}
		require.Equal(t, want.items, got, args)
		require.Equal(t, want.array, c.array, args)
		require.Equal(t, want.rest, c.rest, args)
	}
	for args, part := range map[string]string{
		`{"contacts":7}`:         "must be an array",
		`{"contacts":null}`:      "must be an array",
		`{"contacts":{}}`:        "must be an array",
		`{"contacts":[1,2,3,4]}`: "has 4 items; the tool takes at most 3",
		`[1]`:                    "can't be read",
		``:                       "can't be read",
	} {
		_, f := split([]byte(args), contacts)
		require.NotNil(t, f, args)
		require.Equal(t, fault.InvalidArguments, f.Code, args)
		require.Contains(t, f.Message, part, args)
	}
	_, f := split([]byte(`{"contacts":[1,2,3,4]}`), contacts)
	require.Contains(t, f.Hint, "for_each")
}

// callsOf splits arguments that can be split.
func callsOf(t *testing.T, args ...string) []call {
	t.Helper()
	calls := make([]call, len(args))
	for i, a := range args {
		c, f := split([]byte(a), contacts)
		require.Nil(t, f, a)
		calls[i] = c
	}
	return calls
}

func TestJoin(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"contacts":[{"email":"a"},{"email": "b"},1]}`,
		string(join("contacts", callsOf(t, `{"email":"a"}`, `{"contacts":[{"email": "b"},1]}`))))
	require.Equal(t, `{"a\"b":[1,2],"a":1.0,"w":"x"}`,
		string(join(`a"b`, callsOf(t, `{"w":"x","contacts":[1],"a":1.0}`, `{"contacts":[2],"a":1.0,"w":"x"}`))))
	require.Equal(t, `{"contacts":[]}`, string(join("contacts", nil)))
}

func TestReadEnvelope(t *testing.T) {
	t.Parallel()
	got, f := readEnvelope([]byte(`{"results":[{"index":0,"status":"ok","data":{"n": 1.0}},
		{"index":1,"status":"error","error":{"code":"NOT_FOUND","message":"gone","retryable":false,"details":{"a":1}}},
		{"index":2,"status":"error","error":{"code":"timeout","message":"slow","retry_after_ms":2000}},
		{"index":3,"status":"error","error":"only words"},{"index":4,"status":"error"},{"index":5,"status":"ok"}],"extra":1}`), 6)
	require.Nil(t, f)
	require.Equal(t, []verdict{
		{body: []byte(`{"n": 1.0}`)},
		{err: &fault.Error{Code: fault.ToolFailed, Message: "NOT_FOUND: gone", Details: json.RawMessage(`{"a":1}`)}},
		{err: &fault.Error{Code: fault.Timeout, Message: "slow", Retryable: true, RetryAfter: 2 * time.Second}},
		{err: &fault.Error{Code: fault.ToolFailed, Message: "only words", Retryable: true}},
		{err: &fault.Error{Code: fault.ToolFailed, Message: "the item failed without saying why", Retryable: true}},
		{},
	}, got)
	for body, part := range map[string]string{
		``:                "no object",
		`words`:           "no object",
		`[1,2]`:           "no object",
		`{"ok":true}`:     "no object",
		`{"results":{}}`:  "no object",
		`{"results":[1]}`: "no object",
		`{"results":[]}`:  "0 results for 2 items",
		`{"results":[{"index":0,"status":"ok"}]}`:                                                     "1 results for 2 items",
		`{"results":[{"index":0,"status":"ok"},{"index":1,"status":"ok"},{"index":2,"status":"ok"}]}`: "3 results for 2 items",
		`{"results":[{"index":0,"status":"ok"},{"status":"ok"}]}`:                                     "number 1 has no index",
		`{"results":[{"index":1,"status":"ok"},{"index":0,"status":"ok"}]}`:                           "number 0 has the index 1",
		`{"results":[{"index":0,"status":"ok"},{"index":0,"status":"ok"}]}`:                           "number 1 has the index 0",
		`{"results":[{"index":0,"status":"ok"},{"index":1,"status":"fine"}]}`:                         `"fine"`,
		`{"results":[{"index":0,"status":"ok"},{"index":1}]}`:                                         "neither ok nor error",
	} {
		_, f := readEnvelope([]byte(body), 2)
		require.NotNil(t, f, body)
		require.Equal(t, fault.ToolTerminal, f.Code, body)
		require.False(t, f.Retryable)
		require.Contains(t, f.Message, part, body)
		require.Contains(t, f.Hint, `{"results":[{"index":0,"status":"ok"`, "it says what is expected")
	}
}

func TestWriteEnvelope(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"results":[],"summary":{"ok":0,"error":0}}`, string(writeEnvelope(nil)))
	items := []verdict{
		{body: []byte(`{"n": 1.0}`)}, {},
		{err: &fault.Error{Code: fault.Timeout, Message: "slow", Retryable: true, RetryAfter: 2 * time.Second, Details: json.RawMessage(`{"a":1}`)}},
		{err: &fault.Error{Code: fault.ToolTerminal, Message: "bad", Details: json.RawMessage(`{`)}},
	}
	raw := writeEnvelope(items)
	require.Equal(t, `{"results":[{"index":0,"status":"ok","data":{"n": 1.0}},{"index":1,"status":"ok","data":null},`+
		`{"index":2,"status":"error","error":{"code":"timeout","message":"slow","retryable":true,"retry_after_ms":2000,"details":{"a":1}}},`+
		`{"index":3,"status":"error","error":{"code":"tool_terminal","message":"bad","retryable":false}}],"summary":{"ok":2,"error":2}}`, string(raw))
	back, f := readEnvelope(raw, 4)
	require.Nil(t, f)
	require.Equal(t, items[2], back[2], "what was written is read")
}

func TestFan(t *testing.T) {
	t.Parallel()
	ok := func(s string) verdict { return verdict{body: []byte(s)} }
	bad := verdict{err: &fault.Error{Code: fault.ToolFailed, Message: "no row", Retryable: true, RetryAfter: time.Second}}
	worse := verdict{err: &fault.Error{Code: fault.InvalidArguments, Message: "worse"}}
	calls := callsOf(t, `{"email":"a"}`, `{"contacts":[1,2]}`, `{"email":"b"}`)
	all := func(int, int) bool { return true }

	fine := []verdict{ok(`"a"`), ok(`1`), ok(`2`), ok(`"b"`)}
	for _, how := range []tool.Propagation{tool.PartialSuccess, tool.FailFast} {
		got := fan(calls, fine, how, all)
		require.Equal(t, ok(`"a"`), got[0])
		require.Equal(t, `{"results":[{"index":0,"status":"ok","data":1},{"index":1,"status":"ok","data":2}],"summary":{"ok":2,"error":0}}`, string(got[1].body))
		require.Equal(t, ok(`"b"`), got[2])
	}

	some := []verdict{ok(`"a"`), ok(`1`), bad, worse}
	got := fan(calls, some, tool.PartialSuccess, all)
	require.Equal(t, ok(`"a"`), got[0])
	require.Nil(t, got[1].err, "what failed of several items is in the envelope")
	require.Contains(t, string(got[1].body), `"summary":{"ok":1,"error":1}`)
	require.Contains(t, string(got[1].body), `{"index":1,"status":"error","error":{"code":"tool_failed","message":"no row"`)
	require.Equal(t, worse, got[2])

	got = fan(calls, some, tool.FailFast, func(call, other int) bool { return call != 0 })
	require.Equal(t, bad, got[1], "its own error")
	require.Equal(t, worse, got[2], "its own error, too")
	require.Equal(t, "item 2 of the batch failed", got[0].err.Message, "of another tenant: no more than that")
	got = fan(calls, some, tool.FailFast, all)
	require.Equal(t, fault.ToolFailed, got[0].err.Code)
	require.Equal(t, "item 2 of the batch failed: no row", got[0].err.Message)
	require.True(t, got[0].err.Retryable)
	require.Equal(t, time.Second, got[0].err.RetryAfter)
	got = fan(calls, []verdict{worse, ok(`1`), ok(`2`), ok(`3`)}, tool.FailFast, all)
	require.False(t, got[1].err.Retryable, "as retryable as what failed")
	require.Contains(t, got[2].err.Message, "item 0 of the batch failed: worse")
	require.False(t, strings.Contains(string(got[1].body), "results"))
}
