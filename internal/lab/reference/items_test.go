package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
)

const eachPlan = `{"steps":[
	{"id":"list","tool":"x"},
	{"id":"fetch","tool":"y","for_each":{"in":"$ref:list.ids","as":"id"},"arguments":{"page":"$ref:id"}},
	{"id":"next","tool":"x","arguments":{"all":"$ref:fetch","second":"$ref:fetch[1].data || $ref:fetch[1].error.code"}}]}`

func TestRunItems(t *testing.T) {
	t.Parallel()
	contracts := map[string]reference.Contract{"y": {PartialSuccess: true, MaxAttempts: 2}}
	scripts := map[string]reference.Script{"list": gives(`{"ids":[7,8,9]}`), "fetch": {Echo: true}, "fetch=1": fails("tool_failed", true), "next": {Echo: true}}
	r := run(t, eachPlan, contracts, scripts)
	require.Equal(t, "succeeded", r.Status)
	entries := `[{"index":0,"status":"ok","data":{"page":7}},{"index":1,"status":"error","error":{"code":"tool_failed","message":"503 from upstream","retryable":true}},{"index":2,"status":"ok","data":{"page":9}}]`
	require.Equal(t, entries, string(r.Steps["fetch"].Result))
	require.Equal(t, 4, r.Steps["fetch"].Attempts, "the item that fails has two")
	require.Equal(t, `{"all":`+entries+`,"second":"tool_failed"}`, string(r.Steps["next"].Result))
	require.Equal(t, `{"page":8}`, string(r.Steps["fetch"].Items[1].Arguments))
}

func TestRunItemsFailFast(t *testing.T) {
	t.Parallel()
	r := run(t, eachPlan, nil, map[string]reference.Script{"list": gives(`{"ids":[7,8,9]}`), "fetch": {Echo: true}, "fetch=1": fails("tool_terminal", false)})
	fetch := r.Steps["fetch"]
	require.Equal(t, []string{"failed", "tool_terminal", "item 1: 503 from upstream"}, []string{fetch.Status, fetch.Code, fetch.Message})
	require.Equal(t, []string{"succeeded", "failed", "cancelled"}, []string{fetch.Items[0].Status, fetch.Items[1].Status, fetch.Items[2].Status})
	require.Nil(t, fetch.Items[2].Arguments)
	require.Equal(t, "skipped", r.Steps["next"].Status)
}

func TestRunListsThatAreNone(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][2]string{
		`{"ids":[]}`:   {"succeeded", ""},
		`{"ids":{}}`:   {"failed", "unresolved_ref"},
		`{"ids":null}`: {"failed", "unresolved_ref"},
		`{}`:           {"failed", "unresolved_ref"},
		`5`:            {"failed", "unresolved_ref"},
	} {
		r := run(t, eachPlan, nil, map[string]reference.Script{"list": gives(list)})
		require.Equal(t, want, [2]string{r.Steps["fetch"].Status, r.Steps["fetch"].Code}, list)
	}
}

func TestParseForEach(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`"for_each":{}`, `"for_each":{"in":"list"}`, `"for_each":{"in":"see $ref:list"}`, `"for_each":{"in":5}`, `"for_each":{"in":"$ref:item"}`,
		`"for_each":{"in":[1],"as":"list"}`, `"for_each":{"in":[1],"as":"a b"}`, `"for_each":{"in":"$ref:list || 1"}`, `"for_each":{"in":{"x":1}}`,
		`"for_each":{"in":[1],"as":"i"},"arguments":{"x":"$ref:item"}`, `"arguments":{"x":"$ref:item"}`, `"arguments":{"x":"$ref:many.a"}`, `"arguments":{"x":"$ref:many[0].a"}`,
	} {
		_, err := reference.Parse([]byte(`{"steps":[{"id":"list","tool":"x"},{"id":"many","tool":"x","for_each":{"in":[]}},{"id":"s","tool":"x",` + s + `}]}`))
		require.Error(t, err, s)
	}
}

// What items came to under records: no attempt begins after a failure or a stop, and what was decided counts.
func TestRunStoppedItems(t *testing.T) {
	t.Parallel()
	list := reference.Decided{Step: "list", Reply: reference.Reply{Body: []byte(`{"ids":[7,8,9]}`)}}
	item := func(step, body string) reference.Decided {
		return reference.Decided{Step: step, Reply: reference.Reply{Body: []byte(body)}}
	}
	failing := func(step, code string, byOwner bool) reference.Decided {
		return reference.Decided{Step: step, ByOwner: byOwner, Reply: reference.Reply{Err: &reference.Err{Code: code, Message: code, Retryable: true}}}
	}
	stop := reference.Decided{Stop: "cancelled"}
	fast, partial := map[string]reference.Contract{"y": {MaxAttempts: 3}}, map[string]reference.Contract{"y": {MaxAttempts: 1, PartialSuccess: true}}
	for name, c := range map[string]struct {
		contracts        map[string]reference.Contract
		decided          []reference.Decided
		status, message  string
		attempts, cancel int
	}{
		"retried":      {fast, []reference.Decided{list, failing("fetch=1", "tool_failed", false), item("fetch=1", "1"), item("fetch=0", "0"), item("fetch=2", "2"), item("next", "1")}, "succeeded", "", 4, 0},
		"fail-fast":    {fast, []reference.Decided{list, failing("fetch=2", "tool_terminal", false), failing("fetch=0", "cancelled", true), failing("fetch=1", "tool_failed", false)}, "failed", "item 1: tool_failed", 2, 1},
		"partial":      {partial, []reference.Decided{list, failing("fetch=2", "tool_failed", false), item("fetch=0", "1"), item("fetch=1", "1"), item("next", "1")}, "succeeded", "", 3, 0},
		"stopped":      {partial, []reference.Decided{list, item("fetch=0", "1"), stop, failing("fetch=1", "cancelled", true), item("fetch=2", "1")}, "cancelled", "", 2, 1},
		"stopped late": {partial, []reference.Decided{list, item("fetch=0", "1"), stop, item("fetch=1", "1"), item("fetch=2", "1")}, "succeeded", "", 3, 0},
		"no records":   {partial, []reference.Decided{list, stop}, "cancelled", "", 0, 0},
	} {
		r, err := reference.RunStopped([]byte(eachPlan), c.contracts, c.decided)
		require.NoError(t, err, name)
		fetch := r.Steps["fetch"]
		require.Equal(t, c.status, fetch.Status, name)
		require.Equal(t, c.message, fetch.Message, name)
		require.Equal(t, c.attempts, fetch.Attempts, name)
		cancelled := 0
		for _, x := range fetch.Items {
			if x.Status == "cancelled" {
				cancelled++
			}
		}
		require.Equal(t, c.cancel, cancelled, name)
	}
	_, err := reference.RunStopped([]byte(eachPlan), partial, []reference.Decided{list, item("fetch=3", "1")})
	require.Error(t, err)
	_, err = reference.RunStopped([]byte(eachPlan), partial, []reference.Decided{list, item("fetch", "1")})
	require.Error(t, err)
	r, err := reference.RunStopped([]byte(eachPlan), partial, []reference.Decided{item("list", `{"ids":[]}`), item("next", "1")})
	require.NoError(t, err, "a list without items needs no record")
	require.Equal(t, "[]", string(r.Steps["fetch"].Result))
}
