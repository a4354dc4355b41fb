package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// begun returns a run of a plan whose tools are plain ones, and what it asks for at first.
func begun(t *testing.T, body string) (*machine.Run, *machine.Effects) {
	t.Helper()
	p, report := plan.Parse([]byte(body), nil)
	require.NotNil(t, p, "%v", report.Problems)
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1}}
	m, out := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts}), &machine.Effects{}
	m.Begin(out)
	return m, out
}

// returned is the record that the first step of a plan returned something.
func returned(seq uint64, body string) machine.Record {
	return machine.Record{Seq: seq, Time: epoch, Result: &machine.Result{Attempt: 1, Body: []byte(body)}}
}

const askedWithin = `{"steps":[{"id":"a","tool":"t"},
	{"id":"p","arguments":{"x":"$ref:a"},"plan":{"steps":[{"id":"b","tool":"t","approval":true,"arguments":{"x":"$input.x"}}]}}]}`

// What a person is asked about within a composite is another thing where its input is another.
func TestAQuestionWithinIsAboutTheInput(t *testing.T) {
	t.Parallel()
	digest := func(body string) string {
		m, out := begun(t, askedWithin)
		m.Apply(returned(10, body), epoch, out)
		c, ok := m.Find("p/b")
		require.True(t, ok)
		return m.Question(c).Digest
	}
	require.Equal(t, digest(`1`), digest(`1`))
	require.NotEqual(t, digest(`1`), digest(`2`))
}

// An answer that comes before the scope of its step is entered is void, and its number is used up.
func TestAnAnswerBeforeItsScope(t *testing.T) {
	t.Parallel()
	m, out := begun(t, askedWithin)
	early := &machine.Answer{Call: machine.Call{Step: machine.NotYet}, Token: "p/b", Number: 1, Digest: "any", Decision: machine.Approve}
	m.Apply(machine.Record{Seq: 10, Time: epoch, Answer: early}, epoch, out)
	m.Apply(returned(20, `1`), epoch, out)
	c, ok := m.Find("p/b")
	require.True(t, ok)
	require.Equal(t, 2, m.Question(c).Number)
	require.Equal(t, outcome.StepAsking, m.StepStatus(c.Step))
	answer := &machine.Answer{
		Call: machine.Call{Step: machine.NotYet}, Token: "p/b", Number: 2, Digest: m.Question(c).Digest, Decision: machine.Approve,
	}
	out.Reset()
	m.Apply(machine.Record{Seq: 30, Time: epoch, Answer: answer}, epoch, out)
	require.Equal(t, []machine.Dispatch{{Call: c, Attempt: 1}}, out.Dispatch)
}

// A list whose items would have more steps than a run may have fails its step before the first of them.
func TestTooManyStepsOfItems(t *testing.T) {
	t.Parallel()
	const items = plan.MaxSteps/3 + 1
	m, out := begun(t, `{"steps":[{"id":"l","tool":"t"},{"id":"e","for_each":{"in":"$ref:l"},"plan":{"steps":[
		{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t"}]}}]}`)
	list := make([][]byte, items)
	for i := range list {
		list[i] = fmt.Append(nil, i)
	}
	out.Reset()
	m.Apply(returned(10, "["+strings.TrimSuffix(strings.Repeat("0,", items), ",")+"]"), epoch, out)
	require.Equal(t, []int{1}, out.Expand)
	m.Elements(1, list)
	out.Reset()
	m.Expand(1, items, epoch, out)
	require.Empty(t, out.Dispatch)
	err, _ := m.Failure(machine.Call{Step: 1})
	require.NotNil(t, err)
	require.Equal(t, fault.LimitExceeded, err.Code)
	require.True(t, m.Finished())
	require.Equal(t, 2, m.Stats().Steps)
}

// What stops a plan stops those within it: what is out there is asked to be decided, and what waits is cancelled.
func TestWhatStopsAPlanStopsThoseWithin(t *testing.T) {
	t.Parallel()
	m, out := begun(t, `{"on_failure":"stop","steps":[{"id":"a","tool":"t"},{"id":"p","plan":{"steps":[
		{"id":"q","plan":{"steps":[{"id":"b","tool":"t"},{"id":"c","tool":"t","depends_on":["b"]}]}}]}}]}`)
	require.Len(t, out.Dispatch, 2)
	out.Reset()
	failed := &machine.Result{Attempt: 1, Error: fault.New(fault.ToolTerminal, "no")}
	m.Apply(machine.Record{Seq: 10, Time: epoch, Result: failed}, epoch, out)
	b, _ := m.Find("p/q/b")
	c, _ := m.Find("p/q/c")
	require.Len(t, out.Decide, 1)
	require.Equal(t, b, out.Decide[0].Call)
	require.Equal(t, fault.Cancelled, out.Decide[0].Error.Code)
	require.Equal(t, outcome.StepCancelled, m.StepStatus(c.Step))
	decided := &machine.Result{Call: b, Attempt: 1, Error: out.Decide[0].Error, ByOwner: true}
	m.Apply(machine.Record{Seq: 20, Time: epoch, Result: decided}, epoch, out)
	require.True(t, m.Finished())
}
