package orchestrator_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// problemsOf reads the problems of a refused amendment: codes and places.
func problemsOf(t *testing.T, err error) (all []string) {
	t.Helper()
	var f *fault.Error
	require.True(t, errors.As(err, &f), "%v", err)
	var p wire.AmendProblems
	require.NoError(t, json.Unmarshal(f.Details, &p), "%v", err)
	for _, x := range p.Problems {
		require.NotEmpty(t, x.Message)
		all = append(all, string(x.Code)+" "+x.Path)
	}
	return all
}

// TestWhatPeopleDiscardIsMissed: an agent does not come to an output that was put forward beside a call which people discarded. Its
// planner is told of both, also by another owner.
func TestWhatPeopleDiscardIsMissed(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"g","tool":"gate"},{"id":"b","tool":"echo","depends_on":["g"],"arguments":{"n":1}}],"output":{"b":"$ref:b"}}`,
		`{"output":"without b"}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"}]}`, "missed")
	<-s.tools.begun
	_, err := s.client.Amend(ctx(t), "missed", client.Amendment{Scope: "a/=0", Discard: []string{"b"}})
	require.NoError(t, err)
	next := s.orchestrator()
	s.leave()
	s.leave = next
	s.tools.gate <- struct{}{}
	o := s.wait(r)
	require.JSONEq(t, `"without b"`, result(t, o, "a"), "%s", o.JSON())
	require.JSONEq(t, `{"b":"$ref:b"}`, string(x.asked[1]["dropped_output"]))
	require.Contains(t, string(x.asked[1]["rounds"]), `"id":"b","tool":"echo","arguments":{"n":1},"status":"cancelled"`)
}

// TestARoundIsAmended: what people add is called as the planner's own calls are, by the entries' names, with their gates, and
// what they discard never runs. Another owner comes to the same. The planner is told, and refers to what was added.
func TestARoundIsAmended(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"first","tool":"look","arguments":{"n":7}}]}`,
		`{"steps":[{"id":"g","tool":"gate"},{"id":"w","tool":"look","depends_on":["g"],"arguments":{"n":1}},{"id":"v","tool":"look","depends_on":["g"],"arguments":{"n":2}}]}`,
		`{"output":{"x":"$ref:r1.x.n","p":"$ref:r1.p","v":"$ref:r1.v.n"}}`)
	s.plays("below", `{"output":"done"}`)
	s.agent("clerk", "", `{"planner":{"tool":"below"},"tools":["echo"]}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","clerk",{"tool":"echo","as":"look"},{"tool":"length","needs":{"all":["echo"]}},"execute_tool_plan",
		{"unfold":"db","description":"Data.","tools":["big"]}]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"}]}`, "amended")
	<-s.tools.begun
	amend := client.Amendment{Scope: "a/=1", By: "ann", Discard: []string{"w", "v"}, Add: raws(
		`{"id":"x","tool":"look","arguments":{"n":"$ref:r0.first.n"}}`, `{"id":"l","tool":"length","depends_on":["x"],"arguments":{"text":"abc"}}`, `{"id":"early","tool":"big","arguments":{"Bytes":1}}`,
		`{"id":"p","tool":"execute_tool_plan","arguments":{"steps":[{"id":"i","tool":"look","arguments":{"n":3}}],"output":"$ref:i.n"}}`, `{"id":"db","tool":"db"}`,
		`{"id":"v","tool":"look","depends_on":["x","g"],"arguments":{"n":"$ref:x.n"}}`, `{"id":"c","tool":"clerk"}`)}
	done, err := s.client.Amend(ctx(t), "amended", amend)
	require.NoError(t, err)
	require.Equal(t, 1, done.Revision)
	e, err := s.store.Ledger.Read(ctx(t), subjects.AmendRecord(subjects.NewRun("default", "amended"), r.Generation(), "a/=1", 1, 1))
	require.NoError(t, err)
	require.Equal(t, []string{wire.AmendedRounds, wire.DiscardedCalls}, wire.RecordNeeds(e.Header, e.Data), "who does not know of such leaves the run alone")
	again, err := s.client.Amend(ctx(t), "amended", amend)
	require.NoError(t, err)
	require.True(t, again.Already)
	amend.Add = amend.Add[:1]
	_, err = s.client.Amend(ctx(t), "amended", amend)
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	next := s.orchestrator()
	s.leave()
	s.leave = next
	s.tools.gate <- struct{}{}
	o := s.wait(r)
	require.JSONEq(t, `{"x":7,"p":3,"v":7}`, result(t, o, "a"), "%s", o.JSON())
	doc := s.history("default", "amended")
	status := map[string]outcome.StepStatus{}
	for _, st := range doc.Steps[0].Steps {
		status[st.ID] = st.Status
	}
	require.Equal(t, outcome.StepCancelled, status["a/=1/w"])
	for _, id := range []string{"v", "x", "l", "p", "db", "c", "r0"} {
		require.Equal(t, outcome.StepSucceeded, status["a/=1/"+id], id)
	}
	require.Equal(t, outcome.StepFailed, status["a/=1/early"], "its facade was closed when it was added")
	var rounds []struct {
		Records []struct{ ID, Status, Note, Tool string }
	}
	require.NoError(t, json.Unmarshal(x.asked[2]["rounds"], &rounds))
	told := map[string]string{}
	for _, rec := range rounds[1].Records {
		told[rec.ID] = rec.Status + " " + rec.Tool + ": " + rec.Note
	}
	require.Equal(t, "succeeded look: It was added by ann while the round ran.", told["x"])
	require.Equal(t, "cancelled look: ", told["w"])
	require.Equal(t, "succeeded look: It was added by ann while the round ran.", told["v"])
	require.Contains(t, told["early"], "failed big: It was added")
	var last []struct{ ID, Status string }
	require.NoError(t, json.Unmarshal(x.asked[2]["plan"], &last))
	require.Len(t, last, 9)
	for key := range s.tools.calls {
		require.NotContains(t, key, "a/=1/w", "it was discarded while it waited")
	}
}

// TestWhatARoundIsNotAmendedWith: the admission of an amendment is that of an answer, and tells all that is wrong with its
// place. What can't be amended says why, and nothing is written.
func TestWhatARoundIsNotAmendedWith(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"g","tool":"gate"},{"id":"w","tool":"echo","depends_on":["g"],"arguments":{"n":1}},{"id":"sub","plan":{"steps":[{"id":"i","tool":"echo","arguments":{"n":1}},{"id":"k","tool":"gate"}]}}]}`,
		`{"steps":[{"id":"g","tool":"gate"}]}`, `{"output":1}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo",{"tool":"length","needs":{"all":["fail"]}},{"tool":"fail","once":"That will do."}],"budget":{"steps":6}}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"},{"id":"plain","tool":"echo","depends_on":["a"],"arguments":{"n":1}}]}`, "wrong")
	<-s.tools.begun
	<-s.tools.begun
	amend := func(a client.Amendment) error {
		if a.Scope == "" {
			a.Scope = "a/=0"
		}
		_, err := s.client.Amend(ctx(t), "wrong", a)
		require.Error(t, err)
		return err
	}
	require.ElementsMatch(t, []string{"unknown_ref /discard/0", "unknown_tool /add/0/tool", "invalid_id /add/1/id", "unknown_tool /add/2/tool", "invalid_value /add/3/agent", "unknown_ref /add/4/arguments/n"},
		problemsOf(t, amend(client.Amendment{Discard: []string{"none"}, Add: raws(`{"id":"x","tool":"big"}`, `{"id":"r7","tool":"echo"}`, `{"id":"q","tool":"ask","arguments":{"question":"Well?"}}`, `{"id":"i","agent":{"planner":{"tool":"planner"}}}`, `{"id":"y","tool":"echo","arguments":{"n":"$ref:zz"}}`)})))
	require.Equal(t, []string{"duplicate_step /add/0/id"}, problemsOf(t, amend(client.Amendment{Add: raws(`{"id":"w","tool":"echo"}`)})))
	require.Equal(t, []string{"invalid_value /add/0"}, problemsOf(t, amend(client.Amendment{Add: raws(`{"id":"f","tool":"fail","for_each":{"in":[1,2]}}`)})), "what is called once")
	many := make([]string, 3)
	for i := range many {
		many[i] = `{"id":"m` + string(rune('0'+i)) + `","tool":"echo","arguments":{"n":1}}`
	}
	require.Equal(t, []string{"budget_exceeded /add"}, problemsOf(t, amend(client.Amendment{Add: raws(many...)})))
	for _, times := range []string{`{"id":"m","tool":"echo","repeat":{"max":3},"arguments":{"n":1}}`, `{"id":"m","tool":"echo","for_each":{"in":[1,2,3]},"arguments":{"n":1}}`,
		`{"id":"m","plan":{"steps":[{"id":"i","tool":"echo","arguments":{"n":1}}]},"repeat":{"max":3}}`} {
		require.Equal(t, []string{"budget_exceeded /add"}, problemsOf(t, amend(client.Amendment{Add: raws(times)})), times)
	}
	for code, a := range map[fault.Code]client.Amendment{
		fault.InvalidValue: {Output: json.RawMessage(`1`)}, fault.InvalidID: {Scope: "a/=1", Rest: true},
		fault.NotAmendable: {Scope: "a/=0/sub", Rest: true}, fault.Conflict: {Revision: 3, Rest: true},
	} {
		require.Equal(t, code, fault.CodeOf(amend(a)), code)
	}
	none := amend(client.Amendment{Scope: "a", Add: raws(`{"id":"x","tool":"big"}`)})
	require.Equal(t, fault.InvalidID, fault.CodeOf(none), "an agent is no plan: what stands in none of its entries would run")
	require.Contains(t, fault.As(none).Hint, `"a/=0"`)
	require.Equal(t, fault.InvalidID, fault.CodeOf(amend(client.Amendment{Scope: "a", Rest: true})))
	require.Equal(t, fault.NotAmendable, fault.CodeOf(amend(client.Amendment{Plan: json.RawMessage(`{"steps":[]}`)})))
	s.tools.gate <- struct{}{}
	s.tools.gate <- struct{}{}
	<-s.tools.begun
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(amend(client.Amendment{Rest: true})), "the round is over")
	s.tools.gate <- struct{}{}
	require.JSONEq(t, `1`, result(t, s.wait(r), "a"))
}

// TestAnApprovedRoundIsAmendedByApprovers alone: what runs there a person has approved of.
func TestAnApprovedRoundIsAmendedByApprovers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"g","tool":"gate"}]}`, `{"output":"$ref:r0.x.n"}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo"],"approval":"plan"}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"}]}`, "approved")
	q := s.asked("approved", "a")
	_, err := s.client.Approve(ctx(t), q, client.Answer{By: "ann"})
	require.NoError(t, err)
	<-s.tools.begun
	add := client.Amendment{Scope: "a/=0", Add: raws(`{"id":"x","tool":"echo","arguments":{"n":5}}`)}
	_, err = s.client.Amend(ctx(t), "approved", add)
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
	add.Approved = true
	_, err = s.client.Amend(ctx(t), "approved", add)
	require.NoError(t, err)
	s.tools.gate <- struct{}{}
	require.JSONEq(t, `5`, result(t, s.wait(r), "a"))
}

// TestATemplateOfAnAgentIsNotAddedToThePlan: a template that only an agent of the run may call is unknown to the run's own
// plan, which would send its call to workers that nobody has.
func TestATemplateOfAnAgentIsNotAddedToThePlan(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"twice","inputSchema":{"type":"object"},"plan":{"steps":[{"id":"e","tool":"echo","arguments":{"n":1}}],"output":"$ref:e.n"}}`))
	require.NoError(t, err)
	s.plays("planner", `{"steps":[{"id":"g","tool":"gate"}]}`, `{"steps":[{"id":"t","tool":"twice"}],"output":{"n":"$ref:t"}}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","twice"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"desk"}]}`, "amended")
	<-s.tools.begun
	_, err = s.client.Amend(ctx(t), "amended", client.Amendment{Scope: subjects.RootScope, Add: raws(`{"id":"x","tool":"twice","arguments":{}}`)})
	require.ErrorContains(t, err, "the run has this template for its agents")
	s.tools.gate <- struct{}{}
	require.JSONEq(t, `{"n":1}`, result(t, s.wait(r), "a"))
}
