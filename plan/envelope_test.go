package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

func TestEntries(t *testing.T) {
	t.Parallel()
	items := []plan.Item{
		{Data: []byte(`{"n":1.0}`)},
		{Error: fault.New(fault.ToolFailed, "503 from <%s>", "upstream")},
		{},
		{Error: &fault.Error{Code: fault.Timeout, Message: "too slow", Details: json.RawMessage(`{"after": 3}`)}},
		{Error: &fault.Error{Code: fault.ToolTerminal, Message: "odd", Details: json.RawMessage(`{"broken`), Cause: errors.New("not sent")}},
	}
	got, err := plan.Entries(items)
	require.Nil(t, err)
	require.Equal(t, cap(got), len(got), "the size is known before")
	require.JSONEq(t, `[{"index":0,"status":"ok","data":{"n":1}},
		{"index":1,"status":"error","error":{"code":"tool_failed","message":"503 from <upstream>","retryable":true}},
		{"index":2,"status":"ok","data":null},
		{"index":3,"status":"error","error":{"code":"timeout","message":"too slow","retryable":false,"details":{"after":3}}},
		{"index":4,"status":"error","error":{"code":"tool_terminal","message":"odd","retryable":false}}]`, string(got))
	require.Contains(t, string(got), `"data":{"n":1.0}`, "the producer's bytes")

	whole := plan.Envelope(got)
	var envelope struct {
		Results []struct {
			Index  int
			Status string
		}
		Summary struct{ OK, Error int }
	}
	require.NoError(t, json.Unmarshal(whole, &envelope))
	require.Len(t, envelope.Results, 5)
	require.Equal(t, 2, envelope.Summary.OK)
	require.Equal(t, 3, envelope.Summary.Error)
}

func TestNoEntries(t *testing.T) {
	t.Parallel()
	got, err := plan.Entries(nil)
	require.Nil(t, err)
	require.Equal(t, `[]`, string(got))
	require.Equal(t, `{"results":[],"summary":{"ok":0,"error":0}}`, string(plan.Envelope(got)))
}

// Entries of exactly the largest size are built, one byte more is not.
func TestEntriesAreLimited(t *testing.T) {
	t.Parallel()
	const around = `[{"index":0,"status":"ok","data":""},{"index":1,"status":"ok","data":""}]`
	half := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'x'
		}
		b[0], b[n-1] = '"', '"'
		return b
	}
	room := plan.MaxOutput - len(around)
	got, err := plan.Entries([]plan.Item{{Data: half(room/2 + 2)}, {Data: half(room - room/2 + 2)}})
	require.Nil(t, err)
	require.Equal(t, plan.MaxOutput, len(got))
	_, err = plan.Entries([]plan.Item{{Data: half(room/2 + 3)}, {Data: half(room - room/2 + 3)}})
	require.Equal(t, fault.TooLarge, err.Code)
	require.NotEmpty(t, err.Hint)
}

// What references see and what Items, ItemArguments and Entries make is one thing.
func ExamplePlan_Items() {
	p, _ := plan.Parse([]byte(`{"steps": [
		{"id": "search", "tool": "search"},
		{"id": "fetch", "tool": "fetch", "for_each": {"in": "$ref:search.ids", "as": "id"}, "arguments": {"page": "$ref:id"}},
		{"id": "read", "tool": "read", "arguments": {"text": "$ref:fetch[1].data.text"}}
	]}`), nil)
	found := func(int) ([]byte, bool) { return []byte(`{"ids": [7, 8]}`), true }
	items, _ := p.Items(1, found)
	for _, item := range items {
		args, _ := p.ItemArguments(1, item, found)
		fmt.Println(string(args))
	}
	entries, _ := plan.Entries([]plan.Item{{Error: fault.New(fault.Timeout, "too slow")}, {Data: []byte(`{"text":"hello"}`)}})
	args, _ := p.Arguments(2, func(int) ([]byte, bool) { return entries, true })
	fmt.Println(string(args))
	// Output:
	// {"page": 7}
	// {"page": 8}
	// {"text": "hello"}
}
