package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// An owner that was late must not write what was asked before over what is asked now: the sweep of the next owner would
// see an entry, and nobody would ever be asked.
func TestAQuestionIsNeverOverwrittenByAnEarlierOne(t *testing.T) {
	s := newShelf(t)
	run := subjects.NewRun("t", "r")
	put := func(number int, text string) {
		t.Helper()
		require.NoError(t, s.Archive.PutQuestion(t.Context(), run, "", &outcome.Question{
			Run: "r", Tenant: "t", Generation: 7, Step: "=", Number: number, Kind: outcome.Approval, Text: text, Digest: text,
		}))
	}
	shown := func() string {
		t.Helper()
		q, err := s.Archive.Question(t.Context(), run, 7, "=")
		require.NoError(t, err)
		return q.Text
	}
	put(1, "first")
	put(3, "third")
	require.Equal(t, "third", shown())
	put(1, "first, late")
	require.Equal(t, "third", shown())
	put(3, "third, again")
	require.Equal(t, "third, again", shown())

	key := subjects.QuestionKey(run, 7, "=")
	require.NoError(t, s.Archive.PurgeQuestion(t.Context(), key, 0))
	put(2, "after it was removed")
	require.Equal(t, "after it was removed", shown())

	h := wire.Versioned() // what nobody can read stands in nobody's way
	require.NoError(t, s.publish(questionsPrefix+key, []byte("{"), h))
	put(1, "over what can't be read")
	require.Equal(t, "over what can't be read", shown())
}
