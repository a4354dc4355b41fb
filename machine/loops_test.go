package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// asksAgain is a loop whose iterations wait for a person, up to the question of the second.
func asksAgain(t *testing.T, first string) *machine.Question {
	p, report := plan.Parse([]byte(`{"steps":[{"id":"l","tool":"t","arguments":{"n":"$last"},"repeat":{"max":2}}]}`), nil)
	require.Empty(t, report.Problems)
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 1, Approval: tool.AlwaysApprove}}
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts})
	var e machine.Effects
	m.Begin(&e)
	c, ok := m.Find("l/=0")
	require.True(t, ok)
	q := m.Question(c)
	m.Apply(machine.Record{Seq: 1, Time: epoch, Answer: &machine.Answer{Call: c, Number: 1, Digest: q.Digest, Decision: machine.Approve}}, epoch, &e)
	m.Apply(machine.Record{Seq: 2, Time: epoch, Result: &machine.Result{Call: c, Attempt: 1, Body: []byte(first)}}, epoch, &e)
	c, ok = m.Find("l/=1")
	require.True(t, ok)
	require.NotNil(t, m.Question(c))
	return m.Question(c)
}

// TestIterationsAreAskedAboutByThemselves: an approval of an iteration is none of one that is made of another last.
func TestIterationsAreAskedAboutByThemselves(t *testing.T) {
	t.Parallel()
	require.Equal(t, asksAgain(t, "1").Digest, asksAgain(t, "1").Digest)
	require.NotEqual(t, asksAgain(t, "1").Digest, asksAgain(t, "2").Digest)
}

// TestIterationsThatSendNothingAreALoop, not as many calls within each other: ten thousand need no stack.
func TestIterationsThatSendNothingAreALoop(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"steps":[{"id":"l","arguments":{"n":"$last.v || 0"},"repeat":{"max":3000,"until":"$index == 2999"},
		"plan":{"steps":[{"id":"v","value":{"$calc":"$input.n + 1"}}]}}]}`), nil)
	require.Empty(t, report.Problems)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch})
	var e machine.Effects
	began := time.Now()
	m.Begin(&e)
	require.True(t, e.Finished)
	require.Equal(t, `{"v":3000}`, string(m.Value(0)))
	require.Equal(t, 6001, m.Stats().Steps)
	t.Log(time.Since(began), "for 3,000 iterations")
}
