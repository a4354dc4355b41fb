package subjects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestNamesOfQuestions(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "order #42")
	for _, step := range []string{"pay", "pay=3", subjects.RootScope, "map=3/=2/fetch"} {
		subject := subjects.AnswerRecord(r, 17, step, 2, 1)
		rec, ok := subjects.ParseRecord(subject)
		require.True(t, ok, subject)
		require.Equal(t, subjects.Record{Kind: subjects.AnswerKind, Run: r, Generation: 17, Step: step, Number: 2}, rec)
		run, generation, back, ok := subjects.ParseQuestionKey(subjects.QuestionKey(r, 17, step))
		require.True(t, ok)
		require.Equal(t, r, run)
		require.Equal(t, uint64(17), generation)
		require.Equal(t, step, back)
		rec, ok = subjects.ParseRecord(subjects.ToldRecord(r, 17, step, subjects.ToldApproval, 1))
		require.True(t, ok)
		require.Equal(t, subjects.Record{Kind: subjects.ToldKind, Run: r, Generation: 17, Step: step, What: "approval"}, rec)
	}
	require.Equal(t, "$KV.runs_0.10.acme.order=20=2342.17.answer.pay.1", subjects.AnswerRecord(r, 17, "pay", 1, 1))
	require.Equal(t, "$KV.runs_0.10.acme.order=20=2342.17.amend.day=2/plan.3", subjects.AmendRecord(r, 17, "day=2/plan", 3, 1))
	amend, ok := subjects.ParseRecord(subjects.AmendRecord(r, 17, "day=2/plan", 3, 1))
	require.True(t, ok)
	require.Equal(t, subjects.Record{Kind: subjects.AmendKind, Run: r, Generation: 17, Step: "day=2/plan", Number: 3}, amend)
	require.Equal(t, "$KV.runs_0.10.acme.order=20=2342.17.amend.=.1", subjects.AmendRecord(r, 17, subjects.RootScope, 1, 1))
	require.Equal(t, "$KV.runs_0.10.acme.order=20=2342.17.say.a/=2/b.m-1_x", subjects.SayRecord(r, 17, "a/=2/b", "m-1_x", 1))
	say, ok := subjects.ParseRecord(subjects.SayRecord(r, 17, "a/=2/b", "m-1_x", 1))
	require.True(t, ok)
	require.Equal(t, subjects.Record{Kind: subjects.SayKind, Run: r, Generation: 17, Step: "a/=2/b", What: "m-1_x"}, say)
	require.Equal(t, "acme.order=20=2342.17.pay", subjects.QuestionKey(r, 17, "pay"))
	for _, end := range []string{"answer.pay", "answer.pay.0", "answer.pay.01", "answer.pay.-1", "answer.pay.x", "answer..1", "answer.pay.1.2",
		"amend.=", "amend.=.0", "amend.=.01", "amend.=.x", "amend..1", "amend.=.1.2", "say.a", "say.a.", "say..m", "say.a.m.n", "say.a.m=1"} {
		rec, ok := subjects.ParseRecord("$KV.runs_0.10.acme.order=20=2342.17." + end)
		require.True(t, ok && rec.Kind == subjects.UnknownRecord || !ok, end)
	}
	for _, key := range []string{"", "a.b", "a.b.1", "a.b.x.s", "a.b.01.s", "a.b.1.s.t", ".b.1.s", "a.b.1.*"} {
		_, _, _, ok := subjects.ParseQuestionKey(key)
		require.False(t, ok, key)
	}
}

// TestOnlyAServerNamesTheReplyOfAnImport: what comes through an import says so by its reply.
func TestOnlyAServerNamesTheReplyOfAnImport(t *testing.T) {
	t.Parallel()
	require.True(t, subjects.Imported("_R_.abc.def"))
	require.False(t, subjects.Imported("_INBOX.abc"))
	require.False(t, subjects.Imported(""))
}
