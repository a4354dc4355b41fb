package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// called returns a run whose first step is the input of a template, which returns what its own step returned.
func called(t *testing.T, body string) (*machine.Run, *machine.Effects) {
	t.Helper()
	schema := func(raw string) *tool.Schema {
		s, err := tool.CompileSchema([]byte(raw))
		require.NoError(t, err)
		return s
	}
	p, report := plan.ParseLimited([]byte(body), nil, plan.Limits{Templates: map[string]*plan.Template{"x": {
		Name: "x", Plan: []byte(`{"steps":[{"id":"b","tool":"t"}],"output":"$ref:b"}`),
		Input:  schema(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`),
		Output: schema(`{"type":"string"}`),
	}}})
	require.NotNil(t, p, "%v", report.Problems)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}})
	out := &machine.Effects{}
	m.Begin(out)
	return m, out
}

const callsX = `{"steps":[{"id":"a","tool":"t"},{"id":"p","tool":"x","arguments":{"n":"$ref:a.n"}}]}`

// An input that a template does not take fails its step before anything in it begins, and says where it came from.
func TestATemplateTakesWhatItsSchemaTakes(t *testing.T) {
	t.Parallel()
	m, out := called(t, callsX)
	out.Reset()
	m.Apply(returned(10, `{"n":"many"}`), epoch, out)
	require.Empty(t, out.Dispatch)
	require.True(t, m.Finished())
	err, _ := m.Failure(machine.Call{Step: 1})
	require.Equal(t, fault.InvalidArguments, err.Code)
	require.Contains(t, err.Message, "input schema of x: /n")
	require.Contains(t, err.Message, "$ref:a.n")
	m, out = called(t, callsX)
	out.Reset()
	m.Apply(returned(10, `{"n":5}`), epoch, out)
	require.Len(t, out.Dispatch, 1)
}

// Each item is held against the schema by itself.
func TestATemplateTakesItems(t *testing.T) {
	t.Parallel()
	m, out := called(t, `{"steps":[{"id":"a","tool":"t"},{"id":"p","tool":"x","for_each":{"in":"$ref:a"},"arguments":{"n":"$ref:item"}}]}`)
	m.Apply(returned(10, `[1,"two"]`), epoch, out)
	m.Elements(1, [][]byte{[]byte(`1`), []byte(`"two"`)})
	out.Reset()
	m.Expand(1, 2, epoch, out)
	err, _ := m.Failure(machine.Call{Step: 1, Item: 2})
	require.Equal(t, fault.InvalidArguments, err.Code)
	require.Contains(t, err.Message, "$ref:item")
}

// What its plan comes to is held against what the template declares.
func TestATemplateReturnsWhatItDeclares(t *testing.T) {
	t.Parallel()
	for value, code := range map[string]fault.Code{`"text"`: "", `5`: fault.ToolTerminal} {
		m, out := called(t, callsX)
		m.Apply(returned(10, `{"n":5}`), epoch, out)
		b, ok := m.Find("p/b")
		require.True(t, ok)
		m.Apply(machine.Record{Seq: 20, Time: epoch, Result: &machine.Result{Call: b, Attempt: 1, Body: []byte(value)}}, epoch, out)
		require.True(t, m.Finished())
		err, _ := m.Failure(machine.Call{Step: 1})
		if code == "" {
			require.Nil(t, err)
			continue
		}
		require.Equal(t, code, err.Code)
		require.Contains(t, err.Message, "the output: must be a string")
	}
}
