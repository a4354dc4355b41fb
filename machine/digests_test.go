package machine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// TestWhatIsApprovedOfIsAllOfAnAmendment: the digest that an answer names is of the run, the number and all that is changed,
// whatever the record says of itself. So nobody has approved of anything else.
func TestWhatIsApprovedOfIsAllOfAnAmendment(t *testing.T) {
	t.Parallel()
	step := func(id string) json.RawMessage { return json.RawMessage(`{"id":"` + id + `","tool":"t"}`) }
	asked := func(change func(a *machine.Amendment)) string {
		t.Helper()
		var out machine.Effects
		m := of(t, `{"approval":true,"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t"}]}`, tool.Contract{MaxAttempts: 1}, &out)
		root := machine.Call{Step: machine.ThePlan}
		m.Apply(machine.Record{Seq: 5, Time: began, Answer: &machine.Answer{
			Call: root, Number: 1, Digest: m.Question(root).Digest, Decision: machine.Approve}}, began, &out)
		a := &machine.Amendment{Scope: "=", Revision: 1, Digest: "as it says", Add: []json.RawMessage{step("d"), step("e")}, Discard: []string{"a"}}
		change(a)
		m.Apply(machine.Record{Seq: 6, Time: began, Amendment: a}, began, &out)
		q := m.Question(root)
		require.NotNil(t, q)
		require.Equal(t, a, q.Amendment)
		return q.Digest
	}
	same := asked(func(*machine.Amendment) {})
	require.Equal(t, same, asked(func(*machine.Amendment) {}), "every owner comes to the same")
	for name, change := range map[string]func(a *machine.Amendment){
		"what it says it is":  func(a *machine.Amendment) { a.Digest = "another" },
		"another step":        func(a *machine.Amendment) { a.Add[1] = step("f") },
		"one step less":       func(a *machine.Amendment) { a.Add = a.Add[:1] },
		"another discarded":   func(a *machine.Amendment) { a.Discard = []string{"b"} },
		"one more discarded":  func(a *machine.Amendment) { a.Discard = []string{"a", "b"} },
		"the rest discarded":  func(a *machine.Amendment) { a.Rest = true },
		"another output":      func(a *machine.Amendment) { a.Output = json.RawMessage(`"$ref:b"`) },
		"other output steps":  func(a *machine.Amendment) { a.OutputSteps = []string{"b"} },
		"others output steps": func(a *machine.Amendment) { a.OutputSteps = []string{"c"} },
	} {
		require.NotEqual(t, same, asked(change), name)
	}
	require.NotEqual(t, asked(func(a *machine.Amendment) { a.OutputSteps = []string{"b"} }), asked(func(a *machine.Amendment) { a.OutputSteps = []string{"c"} }))
}

// TestWhatIsApprovedOfIsOneRound, of one run, by all of its record.
func TestWhatIsApprovedOfIsOneRound(t *testing.T) {
	t.Parallel()
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"careful"}]}`), nil, plan.Limits{Templates: agents})
	require.NotNil(t, p, "%v", report.Problems)
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1}, "planner": {MaxAttempts: 1}, "careful": {MaxAttempts: 1}}
	asked := func(run, record string) string {
		t.Helper()
		var out machine.Effects
		m := machine.New(p, machine.Start{Key: run, Submitted: epoch, Started: epoch, Contracts: contracts})
		m.Begin(&out)
		planner, there := m.Find("a/=0/=plan")
		require.True(t, there)
		m.Apply(machine.Record{Seq: 1, Time: epoch, Result: &machine.Result{Call: planner, Attempt: 1, Body: []byte(`{}`)}}, epoch, &out)
		of, r := plan.ParseLimited([]byte(`{"steps":[{"id":"x","tool":"t"}]}`), nil, plan.Limits{Templates: agents, Language2: true})
		require.NotNil(t, of, "%v", r.Problems)
		m.Apply(machine.Record{Seq: 2, Time: epoch, Round: &machine.Round{
			Scope: "a/=0", Contracts: contracts, Plan: of, Approval: &plan.Approval{}, Digest: record}}, epoch, &out)
		q := m.Question(machine.Call{})
		require.NotNil(t, q)
		return q.Digest
	}
	same := asked("t/r/1", "d")
	require.Equal(t, same, asked("t/r/1", "d"), "every owner comes to the same")
	require.NotEqual(t, same, asked("t/r/1", "e"))
	require.NotEqual(t, same, asked("t/r/2", "d"))
}
