package doctor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A purge of a leased step by hand makes the server forget another lease: the step of that lies there, and nobody
// gets it. The server notices a purge in two ways at once, and only one of them forgets: which comes first is its
// scheduler's choice, so this tries until it does.
func TestTheDoctorFindsStepsThatNobodyWillGet(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: time.Minute}) // no lease ends during the test
	tool := register(t, s, "tool", 100)
	_, got := pull(t, s, tool, 100)
	of := func(run string) subjects.Attempt {
		return subjects.Attempt{Run: subjects.NewRun("t", run), Generation: 1, Tool: "tool", Step: "a", Number: 1}
	}
	look := func(mend bool) doctor.Finding {
		r, err := doctor.Examine(within(t, 2*time.Minute), s.Conn(), doctor.Options{Mend: mend})
		require.NoError(t, err)
		for _, f := range r.Findings {
			if f.Check == "stuck-step" {
				return f
			}
		}
		require.Fail(t, "it did not look")
		return doctor.Finding{}
	}
	js, err := s.Conn().JetStream()
	require.NoError(t, err)
	queue := func() *nats.ConsumerInfo {
		info, err := js.ConsumerInfo(subjects.StepsStream(0), tool.Name)
		require.NoError(t, err)
		return info
	}
	var forgotten []string
	for forgot := false; !forgot; {
		require.Less(t, len(forgotten), 30, "the server forgets no more: is this check still needed?")
		n := len(forgotten)
		leased := map[string]*kv.Delivery{}
		for _, run := range []string{"forgotten", "purged", "done"} {
			run = fmt.Sprint(run, n)
			dispatch(t, s, kv.Dispatch{Attempt: of(run)})
			leased[run] = receive(t, got, run)
		}
		require.Equal(t, doctor.Healthy, look(false).Health, "what is leased is not stuck")
		require.NoError(t, js.PurgeStream(subjects.StepsStream(0), &nats.StreamPurgeRequest{Subject: subjects.Step(of(fmt.Sprint("purged", n)), 0)}))
		require.NoError(t, leased[fmt.Sprint("done", n)].Ack())
		forgotten = append(forgotten, subjects.Step(of(fmt.Sprint("forgotten", n)), 0))
		require.Eventually(t, func() bool { return queue().NumAckPending == len(forgotten) }, 2*time.Minute, 10*time.Millisecond)
		forgot = queue().AckFloor.Stream > 0
	}
	f := look(true)
	require.True(t, f.Mended, "%+v", f)
	steps := fmt.Sprintf("%d steps", len(forgotten))
	if len(forgotten) == 1 {
		steps = "1 step"
	}
	require.Contains(t, f.Found, steps+" that the consumer believes to be done, the first of them "+forgotten[0])
	require.Equal(t, doctor.Healthy, look(false).Health)
	dispatch(t, s, kv.Dispatch{Attempt: of("forgotten0"), Repair: 1}) // as the sweep does
	require.Equal(t, forgotten[0], receive(t, got, "the step that was sent again").Subject)
}
