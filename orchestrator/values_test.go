package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// withValues refers to a result that lies in a blob, hands a large value on, and sums the rest.
const withValues = `{"steps":[{"id":"a","tool":"large"},
	{"id":"n","value":{"twice":{"$calc":"$ref:a.n * 2"},"from":"a"}},
	{"id":"all","value":["$ref:a.text"]},
	{"id":"sum","value":{"$calc":"$ref:n.twice + 0.2"}},
	{"id":"size","value":{"$calc":"len($ref:all)"}},
	{"id":"use","tool":"echo","arguments":{"sum":"$ref:sum","first":"$ref:all[0]"}},
	{"id":"each","value":{"$calc":"$ref:i + $ref:sum"},"for_each":{"in":[1,2],"as":"i"}}],
	"output_steps":["n","sum","size","each","all"]}`

func hostLarge(s *system) string {
	text := strings.Repeat("x", 300<<10)
	s.host("large", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: fmt.Appendf(nil, `{"n":7,"text":%q}`, text)}, nil
	})
	return text
}

// TestAValueThatReadsABlobIsRecorded: what it came to stands in the ledger, a large one as a handle; of other values
// nothing does. Whoever looks sees them all.
func TestAValueThatReadsABlobIsRecorded(t *testing.T) {
	t.Parallel()
	s := start(t)
	text := hostLarge(s)
	o := s.run(withValues, "r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, `{"twice":14,"from":"a"}`, result(t, o, "n"))
	require.Equal(t, `14.2`, result(t, o, "sum"))
	require.Equal(t, `1`, result(t, o, "size"))
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":15.2},{"index":1,"status":"ok","data":16.2}],"summary":{"ok":2,"error":0}}`, result(t, o, "each"))
	require.Equal(t, `["`+text+`"]`, result(t, o, "all"))
	require.Equal(t, 7, o.Stats.Succeeded)

	doc := s.history("default", "r")
	record := func(step string) string {
		return subjects.ToldRecord(subjects.NewRun("default", "r"), doc.Generation, step, subjects.ToldValue, s.store.Ledger.Shards())
	}
	e, err := s.store.Ledger.Read(ctx(t), record("n"))
	require.NoError(t, err)
	require.Equal(t, `{"value":{"twice":14,"from":"a"}}`, string(e.Data))
	e, err = s.store.Ledger.Read(ctx(t), record("all"))
	require.NoError(t, err)
	require.Contains(t, string(e.Data), `{"handle":{"name":"default/r/`)
	require.False(t, s.lies(record("sum")), "it is derived")
	require.True(t, s.lies(record("size")), "what it refers to lies in a blob")
	for i := range doc.Steps {
		if st := &doc.Steps[i]; st.Tool == "" {
			require.Zero(t, st.Attempts, st.ID)
			require.False(t, st.Decided.IsZero(), st.ID)
		}
	}
}

// TestValuesGoOnWithAnotherOwner: one that comes while a tool is at work derives the same.
func TestValuesGoOnWithAnotherOwner(t *testing.T) {
	t.Parallel()
	s := start(t)
	hostLarge(s)
	plan := `{"steps":[{"id":"p","value":{"$calc":"1.1 * 3"}},{"id":"g","tool":"gate"},{"id":"a","tool":"large","depends_on":["g"]},` +
		`{"id":"v","value":{"$calc":"$ref:a.n + $ref:p"}}],"output_steps":["v"]}`
	r := s.submit(plan, "r")
	<-s.tools.begun
	s.leave()
	close(s.tools.gate)
	s.orchestrator()
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, `10.3`, result(t, o, "v"))
}

// TestARunOfValuesAlone needs no worker, and is over when it is started.
func TestARunOfValuesAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"a","value":{"$calc":"0.1 + 0.2"}},{"id":"b","value":"is ${ref:a}"},{"id":"c","value":{"$calc":"1 / 0"}}]}`, "r")
	require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
	require.Equal(t, `0.3`, result(t, o, "a"))
	require.Equal(t, `"is 0.3"`, result(t, o, "b"))
	require.Equal(t, fault.ConditionFailed, o.Errors[0].Code)
	require.Zero(t, o.Errors[0].Attempts)
	letters, err := s.client.DeadLetters(ctx(t), client.DeadOptions{})
	require.NoError(t, err)
	require.Empty(t, letters, "nothing was executed")
}

// TestARetryDerivesValuesAnew: results are taken over, values are not.
func TestARetryDerivesValuesAnew(t *testing.T) {
	t.Parallel()
	s := start(t)
	hostLarge(s)
	o := s.run(`{"steps":[{"id":"a","tool":"large"},{"id":"v","value":["$ref:a.n"]},{"id":"w","value":{"$calc":"$ref:v[0] + 1"}},`+
		`{"id":"use","tool":"echo","arguments":{"w":"$ref:w"}},{"id":"bad","tool":"fail"}],"output_steps":["use","w"]}`, "r")
	require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
	again, err := s.client.Retry(ctx(t), "r", client.RetryOptions{})
	require.NoError(t, err)
	o = s.wait(again)
	require.Equal(t, `8`, result(t, o, "w"))
	doc := s.history("default", o.Run)
	for i := range doc.Steps {
		require.Equal(t, doc.Steps[i].ID == "a" || doc.Steps[i].ID == "use", doc.Steps[i].Reused, doc.Steps[i].ID)
	}
}

// TestAReferenceInAValueThatFoundNothing is a warning of the outcome, as one in arguments is.
func TestAReferenceInAValueThatFoundNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"a","tool":"echo","arguments":{"n":1}},{"id":"v","value":[{"$calc":"$ref:a.m * 2"},{"$calc":"$ref:a.o ?? 1"}]},`+
		`{"id":"w","value":"$ref:i.q","for_each":{"in":["$ref:a"],"as":"i"}}]}`, "r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Len(t, o.Warnings, 2, "%v", o.Warnings)
	require.Equal(t, "/steps/1/value/0", o.Warnings[0].Path)
	require.Contains(t, o.Warnings[0].Message, "$ref:a.m found nothing")
	require.Equal(t, "/steps/2/value", o.Warnings[1].Path)
}
