package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A purge of a leased step by hand makes the server forget another lease: the step of that lies there, and nobody gets it.
func TestTheDoctorFindsStepsThatNobodyWillGet(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: 400 * time.Millisecond})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 10)
	of := func(run string) subjects.Attempt {
		return subjects.Attempt{Run: subjects.NewRun("t", run), Generation: 1, Tool: "tool", Step: "a", Number: 1}
	}
	leased := map[string]*kv.Delivery{}
	for _, run := range []string{"forgotten", "purged", "done"} {
		dispatch(t, s, kv.Dispatch{Attempt: of(run)})
		leased[run] = receive(t, got, run)
	}
	look := func(mend bool) kv.Finding {
		r, err := kv.Examine(within(t, 20*time.Second), s.Conn(), kv.ExamineOptions{Mend: mend})
		require.NoError(t, err)
		for _, f := range r.Findings {
			if f.Check == "stuck-step" {
				return f
			}
		}
		require.Fail(t, "it did not look")
		return kv.Finding{}
	}
	require.Equal(t, kv.Healthy, look(false).Health, "what is leased is not stuck")
	js, err := s.Conn().JetStream()
	require.NoError(t, err)
	require.NoError(t, js.PurgeStream(subjects.StepsStream(0), &nats.StreamPurgeRequest{Subject: subjects.Step(of("purged"), 0)}))
	require.NoError(t, leased["done"].Ack())
	require.Eventually(t, func() bool { return look(false).Health == kv.Broken }, 10*time.Second, 50*time.Millisecond)
	f := look(true)
	require.True(t, f.Mended, "%+v", f)
	require.Contains(t, f.Found, "1 step that the consumer believes to be done, the first of them "+subjects.Step(of("forgotten"), 0))
	require.Equal(t, kv.Healthy, look(false).Health)
	dispatch(t, s, kv.Dispatch{Attempt: of("forgotten"), Repair: 1}) // as the sweep does
	require.Equal(t, subjects.Step(of("forgotten"), 0), receive(t, got, "the step that was sent again").Subject)
}
