package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestAnOutputStandsInPlaceOfResults: small and inline it is derived, and leaves no record.
func TestAnOutputStandsInPlaceOfResults(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"concurrency":1,"output":{"sum":["$ref:a.x","$ref:b.x"],"text":"a is ${ref:a.x}"},"steps":[
		{"id":"a","tool":"echo","arguments":{"x":1}},{"id":"b","tool":"echo","arguments":{"x":2}}]}`, "small")
	require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
	require.Equal(t, `{"sum":[1,2],"text":"a is 1"}`, string(o.Output))
	require.Empty(t, o.Results)
	require.EqualValues(t, len(o.Output), o.Stats.BytesReturned)
	doc := s.history("default", "small")
	require.Equal(t, `{"x":1}`, string(doc.Steps[0].Result), "the document has the results")
	_, err := s.store.Ledger.Read(ctx(t), subjects.ToldRecord(subjects.NewRun("default", "small"), doc.Generation, subjects.RootScope, subjects.ToldOutput, 1))
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

// TestAnOutputOfBlobsIsRecorded: one that reads a blob, and one that is itself too large for a record.
func TestAnOutputOfBlobsIsRecorded(t *testing.T) {
	t.Parallel()
	s := start(t)
	big := `{"id":"big","tool":"big","arguments":{"bytes":1048576}}`
	for id, output := range map[string]string{"part": `{"n":"$ref:big.n"}`, "whole": `{"n":"$ref:big.n","all":"$ref:big"}`} {
		o := s.run(`{"output":`+output+`,"steps":[`+big+`]}`, id)
		require.Equal(t, outcome.Succeeded, o.Status, "%v", o.Errors)
		var got struct {
			N   int `json:"n"`
			All any `json:"all"`
		}
		require.NoError(t, json.Unmarshal(o.Output, &got))
		require.Equal(t, 1048576, got.N)
		require.Equal(t, id == "whole", got.All != nil)
		require.Equal(t, id == "whole", len(o.Output) > 1<<20)
		rec, err := s.store.Ledger.Read(ctx(t), subjects.ToldRecord(subjects.NewRun("default", id), o.Generation, subjects.RootScope, subjects.ToldOutput, 1))
		require.NoError(t, err)
		require.Less(t, len(rec.Data), 1<<10)
	}
}

// TestAnOutputThatCanNotBeMade fails the run, and its error stands for the plan.
func TestAnOutputThatCanNotBeMade(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"output":"$ref:a.x.y","steps":[{"id":"a","tool":"echo","arguments":{"x":"text"}}]}`, "wrong")
	require.Equal(t, outcome.Failed, o.Status)
	require.Len(t, o.Errors, 1)
	require.Equal(t, subjects.RootScope, o.Errors[0].Step)
	require.Equal(t, fault.UnresolvedRef, o.Errors[0].Code)
	require.Empty(t, o.Output)
}
