package kv_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// Whatever the server keeps for a step it keeps for one in a scope too, by all the names that its token stands in.
func TestStepsInScopesGoWhereOthersDo(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: unhurried})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 10)
	run := subjects.NewRun("t", "r")
	g := submit(t, s, run, `{}`)
	longest := strings.Repeat(strings.Repeat("x", 62)+"/", 7) + strings.Repeat("y", 64)
	for _, token := range []string{"map=3/fetch", "poll/=2/status", "a/=2/=plan", "a/=2", "=", longest} {
		require.True(t, subjects.ValidStepToken(token), token)
		a := attempt("tool", token)
		a.Generation = g
		dispatch(t, s, kv.Dispatch{Attempt: a, At: time.Now().Add(50 * time.Millisecond)})
		d := receive(t, got, token)
		require.Equal(t, subjects.Step(a, 0), d.Subject)
		back, _, ok := subjects.ParseStep(d.Subject)
		require.True(t, ok)
		require.Equal(t, a, back)
		dispatch(t, s, kv.Dispatch{Attempt: a, Repair: 1}) // refused: it is pending
		pending, err := s.Queue.Pending(ctx(t), 0, a.Partition())
		require.NoError(t, err)
		require.Equal(t, map[string]bool{a.MessageID(): true}, pending)
		handle, err := s.Archive.PutBlob(ctx(t), "", a.BlobName("x"), []byte(token))
		require.NoError(t, err)
		raw, err := s.Archive.Blob(ctx(t), handle)
		require.NoError(t, err)
		require.Equal(t, token, string(raw))

		composite := a
		composite.Tool = subjects.CompositeTool
		for _, subject := range []string{subjects.ClaimRecord(a, 1), subjects.StepRecord(a, 1), subjects.StepRecord(composite, 1)} {
			decision, _ := create(t, s, subject, `{}`, nil)
			require.Equal(t, kv.Written, decision)
			decision, _ = create(t, s, subject, `{}`, nil)
			require.Equal(t, kv.Decided, decision)
			e, err := s.Ledger.Read(ctx(t), subject)
			require.NoError(t, err)
			require.Equal(t, subject, e.Subject)
		}
		require.NoError(t, d.Ack())
		a.Number = 2
		dispatch(t, s, kv.Dispatch{Attempt: a, At: time.Now().Add(time.Hour)})
		require.NoError(t, s.Queue.PurgeAttempt(ctx(t), a, 0))
		require.Eventually(t, func() bool {
			pending, err := s.Queue.Pending(ctx(t), 0, a.Partition())
			return err == nil && len(pending) == 0
		}, 2*time.Minute, time.Millisecond)

		letter := letterOf(run, token)
		created, err := s.Archive.CreateDead(ctx(t), run, "", letter)
		require.NoError(t, err)
		require.True(t, created)
		found, err := s.Archive.Dead(ctx(t), run, 0, token)
		require.NoError(t, err)
		require.Equal(t, letter, found)
		require.Equal(t, []string{"r " + token}, dead(t, s, run))
		require.NoError(t, s.Archive.RemoveDead(ctx(t), run, letter.Generation, token))
		_, err = s.Archive.Dead(ctx(t), run, 0, token)
		require.Equal(t, fault.NotFound, fault.CodeOf(err))
	}
}
