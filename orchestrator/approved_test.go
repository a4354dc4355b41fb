package orchestrator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// asksAbout waits until somebody is asked about a revision of a plan.
func (s *system) asksAbout(run, scope string, revision int) (q *outcome.Question) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var err error
		q, err = s.client.Question(ctx(s.t), run, scope)
		return err == nil && q.Revision == revision
	}, patience, 10*time.Millisecond)
	return q
}

// TestApprovedAmendments: an amendment of a plan that was submitted for an approval waits for its own, survives its owner,
// and is in force, or not, as a person says. Meanwhile the run goes on as it was, and nobody else amends it.
func TestApprovedAmendments(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.submit(`{"approval":{"ask":"May this run?"},"open":true,"steps":[{"id":"a","tool":"echo","arguments":{"n":1}}],"output_steps":["a"]}`, "approved")
	amend := func(a client.Amendment) (*client.Amended, error) { return s.client.Amend(ctx(t), "approved", a) }
	first := client.Amendment{Add: raws(`{"id":"b","tool":"echo","arguments":{"n":"$ref:a.n"}}`), By: "bot", Reason: "it rains"}
	whole := s.asksAbout("approved", "=", 0)
	_, err := amend(first)
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	_, err = s.client.Approve(ctx(t), whole, client.Answer{By: "ann"})
	require.NoError(t, err)

	x, err := amend(first)
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 1, Steps: 1, Waits: true}, x)
	x, err = amend(first)
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 1, Steps: 1, Waits: true, Already: true}, x, "asking twice is asking once")
	for _, revision := range []int{0, 1} {
		_, err = amend(client.Amendment{Revision: revision, Add: raws(`{"id":"c","tool":"echo"}`)})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	}
	q := s.asksAbout("approved", "=", 1)
	require.Equal(t, "May this run?", q.Text)
	require.JSONEq(t, `{"add":[{"id":"b","tool":"echo","arguments":{"n":"$ref:a.n"}}]}`, string(q.Change))
	require.Equal(t, []any{"bot", "it rains", 2}, []any{q.By, q.Reason, q.Number})
	doc, err := s.client.Get(ctx(t), "approved")
	require.NoError(t, err)
	require.Zero(t, doc.Revision)
	require.True(t, doc.Amendments[0].Waits)
	s.orchestrator() // beside the first, which ends
	s.leave()

	_, err = s.client.Approve(ctx(t), q, client.Answer{Arguments: []byte(`{"n":2}`)})
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err), "%v", err)
	_, err = s.client.Approve(ctx(t), whole, client.Answer{})
	require.NoError(t, err, "what was said of the plan stands, and is nothing said of the amendment")
	for range 2 {
		stands, err := s.client.Approve(ctx(t), q, client.Answer{By: "ann"})
		require.NoError(t, err)
		require.Equal(t, outcome.DecisionApproved, stands.Decision)
	}
	x, err = amend(first)
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 1, Steps: 2, Already: true}, x)

	second := client.Amendment{Revision: 1, Discard: []string{"a"}}
	_, err = amend(second)
	require.NoError(t, err)
	_, err = s.client.Reject(ctx(t), s.asksAbout("approved", "=", 2), client.Answer{By: "ann", Reason: "no"})
	require.NoError(t, err)
	_, err = amend(second)
	require.Equal(t, fault.Rejected, fault.CodeOf(err), "%v", err)
	require.Equal(t, 2, revisionOf(t, err))
	require.Contains(t, err.Error(), "Rejected by ann (unverified): no")

	x, err = amend(client.Amendment{Revision: 2, OutputSteps: []string{"b"}, Close: true, Approved: true, By: "ann"})
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 3, Steps: 2}, x, "who may approve asks nobody")
	o := s.wait(run)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"n":1}`, result(t, o, "b"))
	done := s.history("default", "approved")
	require.Equal(t, 3, done.Revision)
	require.Len(t, done.Amendments, 3)
	require.Equal(t, "ann", done.Amendments[0].Answer.By)
	require.Equal(t, fault.Rejected, done.Amendments[1].Error.Code)
	require.Nil(t, done.Amendments[2].Answer)
	s.noQuestions()
	stands, err := s.client.Approve(ctx(t), q, client.Answer{})
	require.NoError(t, err)
	require.Equal(t, "ann", stands.By, "also once the run is over")
	var revisions []int
	require.NoError(t, s.client.Watch(ctx(t), "approved", func(e client.Event) {
		if e.Kind == subjects.EventAmend {
			revisions = append(revisions, e.Revision)
		}
	}))
	require.Equal(t, []int{3}, revisions)
}

// TestWhatWaitsEndsWithItsRun: an amendment that waits keeps no run from its end, and nobody is asked about it any more. A
// retry asks anew about the plan, without what nobody approved of.
func TestWhatWaitsEndsWithItsRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.submit(`{"approval":true,"steps":[{"id":"a","tool":"gate"},{"id":"p","plan":{"steps":[{"id":"x","tool":"gate"}]}}]}`, "ends")
	_, err := s.client.Approve(ctx(t), s.asksAbout("ends", "=", 0), client.Answer{})
	require.NoError(t, err)
	<-s.tools.begun
	for _, scope := range []string{"=", "p"} {
		x, err := s.client.Amend(ctx(t), "ends", client.Amendment{Scope: scope, Add: raws(`{"id":"late","tool":"echo"}`)})
		require.NoError(t, err)
		require.True(t, x.Waits)
	}
	q := s.asksAbout("ends", "p", 1)
	s.asksAbout("ends", "=", 1)
	close(s.tools.gate)
	o := s.wait(run)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	s.noQuestions()
	_, err = s.client.Approve(ctx(t), q, client.Answer{})
	require.Contains(t, []fault.Code{fault.AlreadyFinished, fault.NotFound}, fault.CodeOf(err), "%v", err)
	doc := s.history("default", "ends")
	require.Len(t, doc.Steps, 2)
	for _, a := range doc.Amendments {
		require.Equal(t, fault.AlreadyFinished, a.Error.Code)
	}
	again, err := s.client.Retry(ctx(t), "ends", client.RetryOptions{Run: "again", From: "a"})
	require.NoError(t, err)
	_, err = s.client.Approve(ctx(t), s.asksAbout("again", "=", 0), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, s.wait(again).Status)
	require.Len(t, s.history("default", "again").Steps, 2)
}

// TestOwnersCloseApprovedPlans: what is open within a plan that was approved is closed by its owner, which asks nobody.
func TestOwnersCloseApprovedPlans(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.submit(`{"approval":true,"open":true,"open_for":"100ms","steps":[{"id":"p","plan":{"open":true,"open_for":"100ms","steps":[{"id":"x","tool":"echo"}]}}]}`, "closes")
	_, err := s.client.Approve(ctx(t), s.asksAbout("closes", "=", 0), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, s.wait(run).Status)
}

// TestWhatStandsOfAnAmendment: an answer is to what its digest names. Who answers what somebody else answered, or what
// nobody is asked any more because its plan is over, is told of that amendment, while the run goes on and afterwards.
func TestWhatStandsOfAnAmendment(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.submit(`{"approval":true,"open":true,"steps":[{"id":"p","plan":{"open":true,"steps":[{"id":"x","tool":"echo"}]}}]}`, "stands")
	whole := s.asksAbout("stands", "=", 0)
	_, err := s.client.Approve(ctx(t), whole, client.Answer{By: "root"})
	require.NoError(t, err)
	amend := func(a client.Amendment) {
		t.Helper()
		require.Eventually(t, func() bool { // its plan is entered
			_, err := s.client.Amend(ctx(t), "stands", a)
			return err == nil
		}, patience, 10*time.Millisecond)
	}
	amend(client.Amendment{Scope: "p", Add: raws(`{"id":"y","tool":"echo"}`)})
	first := s.asksAbout("stands", "p", 1)
	_, err = s.client.Reject(ctx(t), first, client.Answer{By: "ann"})
	require.NoError(t, err)
	amend(client.Amendment{Scope: "p", Revision: 1, Add: raws(`{"id":"y","tool":"echo"}`)})
	void := s.asksAbout("stands", "p", 2)
	amend(client.Amendment{Discard: []string{"p"}, Approved: true})
	s.noQuestions()

	told := func() {
		t.Helper()
		named := func(q *outcome.Question) *outcome.Question {
			return &outcome.Question{Run: "stands", Step: q.Step, Digest: q.Digest}
		}
		for _, q := range []*outcome.Question{first, named(first)} {
			_, err := s.client.Approve(ctx(t), q, client.Answer{By: "bob"})
			require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "rejected already by ann")
			x, err := s.client.Reject(ctx(t), q, client.Answer{By: "bob"})
			require.NoError(t, err)
			require.Equal(t, "ann", x.By)
		}
		for _, q := range []*outcome.Question{void, named(void), {Run: "stands", Step: "p"}} {
			_, err := s.client.Approve(ctx(t), q, client.Answer{By: "bob"})
			require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "revision 2")
		}
		x, err := s.client.Approve(ctx(t), named(whole), client.Answer{By: "bob"})
		require.NoError(t, err)
		require.Equal(t, "root", x.By)
		_, err = s.client.Approve(ctx(t), &outcome.Question{Run: "stands", Step: "=", Digest: first.Digest}, client.Answer{})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "something else")
	}
	told()
	amend(client.Amendment{Revision: 1, Close: true, Approved: true})
	s.wait(run)
	told()
}

// The bucket has one entry for all questions of a step. Who writes of an earlier one may come late, and somebody has to be
// asked about the one that is open all the same.
func TestTheEntryOfAnEarlierQuestionGivesWay(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.SweepEvery = 200 * time.Millisecond })
	s.submit(`{"open":true,"approval":true,"steps":[{"id":"a","tool":"echo"}]}`, "late")
	first := s.asksAbout("late", "=", 0)
	_, err := s.client.Approve(ctx(t), first, client.Answer{By: "ann"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := s.client.Amend(ctx(t), "late", client.Amendment{Add: raws(`{"id":"b","tool":"echo"}`)})
		return err == nil
	}, patience, 10*time.Millisecond)
	now := s.asksAbout("late", "=", 1)

	first.Run, first.Tenant = now.Run, now.Tenant
	require.NoError(t, s.store.Archive.PutQuestion(ctx(t), subjects.NewRun(now.Tenant, now.Run), "", first))
	require.Equal(t, now.Digest, s.asksAbout("late", "=", 1).Digest)
}

// TestAPlanIsApprovedWithEdits: an amendment by who may approve answers the question about the plan, which begins as it is
// then; one to something else, or by somebody else, is refused.
func TestAPlanIsApprovedWithEdits(t *testing.T) {
	t.Parallel()
	s := start(t)
	run := s.submit(`{"approval":true,"steps":[{"id":"a","tool":"echo","arguments":{"n":1}},{"id":"b","tool":"echo","arguments":{"n":"$ref:a.n"}}],"output_steps":["b"]}`, "edited")
	q := s.asksAbout("edited", "=", 0)
	edits := client.Amendment{
		Plan:     []byte(`{"steps":[{"id":"a","tool":"echo","arguments":{"n":2}},{"id":"b","tool":"echo","arguments":{"n":"$ref:a.n"}}],"output_steps":["b"]}`),
		Approves: q.Digest, Approved: true, By: "ann", Reason: "two is enough",
	}
	other, plain := edits, edits
	other.Approves, plain.Approved = "of another", false
	_, err := s.client.Amend(ctx(t), "edited", other)
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	_, err = s.client.Amend(ctx(t), "edited", plain)
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
	s.orchestrator()
	s.leave()
	for k := range 2 {
		x, err := s.client.Amend(ctx(t), "edited", edits)
		if k > 0 && fault.CodeOf(err) == fault.NotFound {
			break // it is over
		}
		require.NoError(t, err)
		require.Equal(t, 1, x.Revision)
	}
	o := s.wait(run)
	require.JSONEq(t, `{"n":2}`, result(t, o, "b"), "%s", o.JSON())
	s.noQuestions()
	doc := s.history("default", "edited")
	require.Equal(t, []string{outcome.DecisionApproved, "ann", "two is enough"}, []string{doc.Approval.Decision, doc.Approval.By, doc.Approval.Reason})
	stands, err := s.client.Approve(ctx(t), q, client.Answer{})
	require.NoError(t, err)
	require.Equal(t, "ann", stands.By)
	_, err = s.client.Reject(ctx(t), q, client.Answer{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
}
