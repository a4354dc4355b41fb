package orchestrator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestALoop: each iteration is made of the one before, begins only after it, and waits where the loop says so.
func TestALoop(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"a","tool":"echo","arguments":{"most":2}},
		{"id":"poll","tool":"echo","arguments":{"n":"$index","last":"$last.n","most":"$ref:a.most"},
			"repeat":{"until":"$last.n >= $ref:a.most","max":9,"every":"300ms"}},
		{"id":"b","tool":"echo","arguments":{"n":"$ref:poll.n"}}],"output_steps":["poll","b"]}`, "loop")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"n":2,"last":1,"most":2}`, result(t, o, "poll"))
	require.JSONEq(t, `{"n":2}`, result(t, o, "b"))
	require.Equal(t, 6, o.Stats.Steps, "the iterations among them")
	require.Equal(t, 5, s.tools.total())
	require.Empty(t, o.Warnings)
	doc := s.history("default", "loop")
	turns := doc.Steps[1].Steps
	require.Len(t, turns, 3)
	for i := range turns {
		require.Equal(t, fmt.Sprintf("poll/=%d", i), turns[i].ID)
		require.Equal(t, "echo", turns[i].Tool)
		if i > 0 {
			require.GreaterOrEqual(t, turns[i].Decided.Sub(turns[i-1].Decided), 300*time.Millisecond)
		}
	}
	require.Equal(t, 3, doc.Steps[1].Attempts)
}

// TestALoopsEnd: what it comes to, and how it fails.
func TestALoopsEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	of := func(step string) *outcome.Outcome { return s.run(`{"steps":[{"id":"l",`+step+`}]}`, "") }
	o := of(`"tool":"echo","arguments":{"n":"$index"},"repeat":{"max":3,"collect":true}`)
	require.JSONEq(t, `[{"n":0},{"n":1},{"n":2}]`, result(t, o, "l"))

	o = of(`"tool":"echo","arguments":{"n":"$index"},"repeat":{"until":"$last.n > 5","max":2}`)
	require.Equal(t, outcome.Failed, o.Status)
	require.Equal(t, fault.RepeatExhausted, o.Errors[0].Code)
	require.Len(t, o.Errors, 1)

	o = of(`"tool":"fail","repeat":{"max":2}`)
	require.Contains(t, o.Errors[0].Message, "iteration 0: ")
	require.Len(t, o.Errors, 1, "the iteration's is the loop's")

	o = of(`"tool":"echo","arguments":{"n":"$index"},"repeat":{"until":"$last.n"}`)
	require.Equal(t, outcome.Succeeded, o.Status, "0 is false, and 1 true: %s", o.JSON())
	o = of(`"tool":"echo","arguments":{"n":"x"},"repeat":{"until":"$last.n > 1"}`)
	require.Equal(t, fault.ConditionFailed, o.Errors[0].Code)

	o = of(`"for_each":{"in":[1,2]},"arguments":{"n":"$ref:item","i":"$index"},"repeat":{"until":"$last.in.i >= $ref:item"},
		"plan":{"steps":[{"id":"in","tool":"echo","arguments":{"n":"$input.n","i":"$input.i"}}]}`)
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":{"in":{"n":1,"i":1}}},{"index":1,"status":"ok","data":{"in":{"n":2,"i":2}}}],
		"summary":{"ok":2,"error":0}}`, result(t, o, "l"))

	o = s.run(`{"steps":[{"id":"l","tool":"gate","timeout":"300ms","repeat":{"max":3}},
		{"id":"h","tool":"echo","if":"$error:l.code == 'timeout'","arguments":{"said":"$error:l.message"}}]}`, "slow")
	require.Equal(t, outcome.Succeeded, o.Status, "a failure that is handled: %s", o.JSON())
}

// TestALoopOfBlobs: where $last lies in one, the arguments are built beside the loop of the orchestrator, and whether the
// plan's is over is recorded, of the iteration. So is the list of all results.
func TestALoopOfBlobs(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"output_steps":["n"],"steps":[
		{"id":"l","tool":"big","arguments":{"bytes":"$last.n || 700000"},"repeat":{"until":"$index == 1 and $last.n == 700000","collect":true}},
		{"id":"n","tool":"echo","arguments":{"all":"$ref:l[*].n"}}]}`, "blobs")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"all":[700000,700000]}`, result(t, o, "n"))
	run := subjects.NewRun("default", "blobs")
	for _, i := range []int{0, 1} {
		_, err := s.store.Ledger.Read(ctx(t), subjects.ToldRecord(run, o.Generation, subjects.Iteration("l", i), subjects.ToldUntil, 1))
		require.NoError(t, err)
	}
	_, err := s.store.Ledger.Read(ctx(t), subjects.ToldRecord(run, o.Generation, "l", subjects.ToldOutput, 1))
	require.NoError(t, err)
}

// TestAPersonIsAskedInEachIteration, with what it is made of, and once for all where the plan says so.
func TestAPersonIsAskedInEachIteration(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"l","tool":"echo","arguments":{"n":"$index","last":"$last.n"},"approval":true,"repeat":{"max":2}}]}`, "each")
	for i, want := range []string{`{"n":0,"last":null}`, `{"n":1,"last":0}`} {
		q := s.asked("each", subjects.Iteration("l", i))
		require.JSONEq(t, want, string(q.Arguments))
		_, err := s.client.Approve(ctx(t), q, client.Answer{})
		require.NoError(t, err)
	}
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	r = s.submit(`{"steps":[{"id":"l","tool":"echo","arguments":{"n":"$index"},"approval":{"all":true},"repeat":{"max":2}}]}`, "all")
	_, err := s.client.Approve(ctx(t), s.asked("all", "l"), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	s.noQuestions()
}

// TestARetryGoesOnWithALoop takes over the iterations up to the first that is not whole, and of that what was done in it. A
// loop that ran as often as it may begins anew.
func TestARetryGoesOnWithALoop(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	x.set("", "cy")
	const body = `{"steps":[{"id":"l","arguments":{"i":"$index","before":"$last.pay.paid"},"repeat":{"max":4},"plan":{"steps":[
		{"id":"who","value":{"$calc":"$input.i == 0 ? 'ann' : $input.i == 1 ? 'bob' : 'dee'"}},
		{"id":"pay","tool":"pay","arguments":{"who":"$ref:who"}},
		{"id":"tip","tool":"pay","if":"$input.i == 2","depends_on":["pay"],"arguments":{"who":"cy"}}]}}]}`
	o := s.run(body, "r")
	require.Equal(t, outcome.Failed, o.Status)
	require.Equal(t, []string{"ann", "bob", "cy", "dee"}, x.called())
	x.set("")
	o, doc := s.retry("r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []string{"cy", "dee"}, x.called(), "the tip, and the fourth iteration")
	reused := func(steps []outcome.Step) (all []bool) {
		for i := range steps {
			all = append(all, steps[i].Reused)
		}
		return all
	}
	turns := doc.Steps[0].Steps
	require.Equal(t, []bool{true, true, false, false}, reused(turns))
	require.Equal(t, []bool{false, true, false}, reused(turns[2].Steps), "a value is derived anew")

	o = s.run(`{"steps":[{"id":"l","tool":"pay","arguments":{"who":"eve"},"repeat":{"until":"$last.paid == 'ann'","max":1}}]}`, "poll")
	require.Equal(t, fault.RepeatExhausted, o.Errors[0].Code)
	x.set("")
	o, _ = s.retry("poll")
	require.Equal(t, fault.RepeatExhausted, o.Errors[0].Code)
	require.Equal(t, []string{"eve"}, x.called())
	require.Empty(t, x.info(t, "eve").RetriedKey, "it is asked anew, not the same again")
}

// TestARunHasAtMostSoManyIterations: each counts as a step, and a loop fails before one that would be too many.
func TestARunHasAtMostSoManyIterations(t *testing.T) {
	t.Parallel()
	s := start(t)
	o := s.run(`{"steps":[{"id":"l","repeat":{"max":10000},"plan":{"steps":[{"id":"v","value":1},{"id":"w","value":2}]}}]}`, "")
	require.Equal(t, fault.LimitExceeded, o.Errors[0].Code, "%s", o.JSON())
	require.Contains(t, o.Errors[0].Message, "after 3333 iterations")
	require.Equal(t, 10_000, o.Stats.Steps)
}
