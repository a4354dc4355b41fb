package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestAPlanOfAStep: once for each item, with values, and with an account of all that was done.
func TestAPlanOfAStep(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"output_steps":["each"],"concurrency":1,"steps":[
		{"id":"each","for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"},"plan":{"steps":[
			{"id":"a","tool":"echo","arguments":{"n":"$input.n","none":"$input.none"}},
			{"id":"b","value":{"twice":{"$calc":"$ref:a.n * 2"}}}],"output":"$ref:b"}}]}`, "nested")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":{"twice":2}},{"index":1,"status":"ok","data":{"twice":4}}],"summary":{"ok":2,"error":0}}`,
		result(t, o, "each"))
	require.Equal(t, 5, o.Stats.Steps)
	require.Len(t, o.Warnings, 1)
	require.Equal(t, "/steps/0/plan/steps/0/arguments/none", o.Warnings[0].Path)
	require.Equal(t, "each=0/a", o.Warnings[0].Step)
	require.Contains(t, o.Warnings[0].Message, "$input.none found nothing")
	doc := s.history("default", "nested")
	require.Len(t, doc.Steps[0].Items, 2)
	inside := doc.Steps[0].Items[1].Steps
	require.Equal(t, []string{"each=1/a", "each=1/b"}, []string{inside[0].ID, inside[1].ID})
	require.JSONEq(t, `{"n":2,"none":null}`, string(inside[0].Result))
	require.Equal(t, 2, s.tools.total())
}

// TestInputsAndOutputsOfBlobs: an input is read beside the loop, and an output that reads one is recorded.
func TestInputsAndOutputsOfBlobs(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"output_steps":["c"],"steps":[{"id":"big","tool":"big","arguments":{"bytes":1048576}},
		{"id":"p","arguments":{"all":"$ref:big"},"plan":{"steps":[{"id":"a","tool":"echo","arguments":{"n":"$input.all.n"}}],
			"output":{"n":"$ref:a.n","all":"$input.all"}}},
		{"id":"c","tool":"echo","arguments":{"n":"$ref:p.n","also":"$ref:p.all.n"}}]}`, "large")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"n":1048576,"also":1048576}`, result(t, o, "c"))
	_, err := s.store.Ledger.Read(ctx(t), subjects.ToldRecord(subjects.NewRun("default", "large"), o.Generation, "p", subjects.ToldOutput, 1))
	require.NoError(t, err)
}

// TestAFailureWithin fails the step that has the plan, and both are told of.
func TestAFailureWithin(t *testing.T) {
	t.Parallel()
	s := start(t)
	plan := func(partial string) string {
		return `{"steps":[{"id":"p",` + partial + `"arguments":{"x":"text"},"plan":{"steps":[
			{"id":"a","tool":"echo","arguments":{"y":"$input.x.y"}},{"id":"b","tool":"echo","arguments":{"n":1}}]}}]}`
	}
	o := s.run(plan(""), "failed")
	require.Equal(t, outcome.Failed, o.Status)
	require.Len(t, o.Errors, 2, "%s", o.JSON())
	require.Equal(t, "p", o.Errors[0].Step)
	require.Equal(t, fault.SubPlanFailed, o.Errors[0].Code)
	require.Equal(t, "p/a", o.Errors[1].Step)
	require.Equal(t, fault.UnresolvedRef, o.Errors[1].Code)
	o = s.run(plan(`"partial":true,`), "partial")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"a":null,"b":{"n":1}}`, result(t, o, "p"))
}

// TestAPersonApprovesWithinAPlan: of a step within, with what its input comes to, and of the input itself.
func TestAPersonApprovesWithinAPlan(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"p","approval":true,"arguments":{"to":"ann"},"plan":{"steps":[
		{"id":"pay","tool":"echo","arguments":{"to":"$input.to"},"approval":{"ask":"Pay ${input.to}?"}}]}}]}`, "r")
	_, err := s.client.Approve(ctx(t), s.asked("r", "p"), client.Answer{Arguments: json.RawMessage(`{"to":"bob"}`)})
	require.NoError(t, err)
	q := s.asked("r", "p/pay")
	require.Equal(t, "Pay bob?", q.Text)
	require.JSONEq(t, `{"to":"bob"}`, string(q.Arguments))
	_, err = s.client.Approve(ctx(t), q, client.Answer{})
	require.NoError(t, err)
	o := s.wait(r)
	require.JSONEq(t, `{"pay":{"to":"bob"}}`, result(t, o, "p"))
	s.noQuestions()
}

// TestARetryWithinAPlanChargesNobodyTwice takes over by token what was done in plans of steps that did not succeed, of
// items where the list is the same, also over a retry that never came to them.
func TestARetryWithinAPlanChargesNobodyTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	const body = `{"approval":true,"steps":[
		{"id":"p","plan":{"steps":[{"id":"a","tool":"pay","arguments":{"who":"ann"}},
			{"id":"in","plan":{"steps":[{"id":"b","tool":"pay","arguments":{"who":"bob"}},
				{"id":"c","tool":"pay","arguments":{"who":"cy"},"depends_on":["b"]}]}}]}},
		{"id":"each","for_each":{"in":["dee"]},"arguments":{"who":"$ref:item"},"plan":{"steps":[
			{"id":"q","tool":"pay","arguments":{"who":"$input.who"}},
			{"id":"r","tool":"pay","arguments":{"who":"eve"},"depends_on":["q"]}]}}]}`
	approved := func(r *client.Run) *outcome.Outcome {
		_, err := s.client.Approve(ctx(t), s.asked(r.ID(), subjects.RootScope), client.Answer{})
		require.NoError(t, err)
		return s.wait(r)
	}
	again := func(run string) *client.Run {
		r, err := s.client.Retry(ctx(t), run, client.RetryOptions{})
		require.NoError(t, err)
		return r
	}
	x.set("", "cy", "eve")
	require.Equal(t, outcome.Failed, approved(s.submit(body, "r")).Status)
	require.Equal(t, []string{"ann", "bob", "cy", "dee", "eve"}, x.called())
	cy := x.info(t, "cy")

	x.set("")
	second := again("r")
	s.asked(second.ID(), subjects.RootScope)
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), second.ID(), "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(second).Status)

	third := again(second.ID())
	o := approved(third)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"cy", "eve"}, x.called(), "what was done is left alone")
	require.Equal(t, cy.Key, x.info(t, "cy").RetriedKey)
	doc := s.history("default", third.ID())
	require.True(t, doc.Steps[0].Steps[0].Reused)
	require.True(t, doc.Steps[0].Steps[1].Steps[0].Reused)
	require.True(t, doc.Steps[1].Items[0].Steps[0].Reused)
	require.JSONEq(t, `{"a":{"paid":"ann"},"in":{"b":{"paid":"bob"},"c":{"paid":"cy"}}}`, result(t, o, "p"))
}

// TestAnotherListIsAnotherInput: nothing is taken over within an item by its place alone.
func TestAnotherListIsAnotherInput(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	const body = `{"steps":[{"id":"who","tool":"customers","optional":true},{"id":"few","tool":"echo","arguments":{"list":["ann"]}},
		{"id":"each","for_each":{"in":"$ref:who || $ref:few.list"},"arguments":{"who":"$ref:item"},"plan":{"steps":[
			{"id":"q","tool":"pay","arguments":{"who":"$input.who"}},{"id":"r","tool":"pay","arguments":{"who":"eve"},"depends_on":["q"]}]}}]}`
	x.set("", "eve")
	require.Equal(t, outcome.Partial, s.run(body, "r").Status)
	require.Equal(t, []string{"ann", "eve"}, x.called())
	x.set(`["zoe"]`)
	o, _ := s.retry("r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"eve", "zoe"}, x.called())
}

// TestWhatFailedInAPartIsTriedAgain: a step that succeeded with a part of its plan is entered again for the rest.
func TestWhatFailedInAPartIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	x.set("", "bob")
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"p","partial":true,"plan":{"steps":[
		{"id":"a","tool":"pay","arguments":{"who":"ann"}},{"id":"b","tool":"pay","arguments":{"who":"bob"}}]}}]}`, "r").Status)
	x.set("")
	o, _ := s.retry("r")
	require.Equal(t, []string{"bob"}, x.called())
	require.JSONEq(t, `{"a":{"paid":"ann"},"b":{"paid":"bob"}}`, result(t, o, "p"))
}
