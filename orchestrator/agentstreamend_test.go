package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// What becomes of steps that had begun when whoever was at them, or wrote the answer, is there no more; and when the answer is
// refused.

// hurried hosts a tool in a worker that leaves what it is at to others as soon as it is to end.
func (s *system) hurried(name string, o *tool.Orchestration, fn func(context.Context, json.RawMessage) (worker.Output, error)) (stop func()) {
	s.t.Helper()
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "w-" + name, DrainTimeout: time.Millisecond, Logger: logger(s.t)})
	require.NoError(s.t, err)
	require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: name, Orchestration: o}, fn))
	return s.background(w.Run, w.Ready())
}

// toldOf is what a planner is asked, in what these tests look at.
type toldOf struct {
	Round int
	Began []struct {
		ID, Status string
		Error      struct{ Code string }
		Result     struct{ N int }
	}
}

const twice = `{"steps":[{"id":"a","tool":"find","arguments":{"n":1}},{"id":"b","tool":"find","arguments":{"n":"$ref:a.n"}}]}`

// TestAPlannerThatIsShutDown in the middle of its answer gives its call back: nobody writes that answer on, what had begun stays, and
// the next attempt is told.
func TestAPlannerThatIsShutDown(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	o := &tool.Orchestration{Request: tool.WholeRequest, Retry: &tool.Retry{MaxAttempts: 2}}
	attempts := make(chan string, 9)
	plans := func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
		var r toldOf
		if err := json.Unmarshal(sent, &r); err != nil {
			return worker.Output{}, err
		}
		info, _ := worker.InfoFrom(ctx)
		attempts <- fmt.Sprintf("round %d, attempt %d: %v", r.Round, info.Attempt, r.Began)
		if r.Round > 0 {
			return worker.Output{Body: []byte(`{"output":"$ref:r0.b.n"}`)}, nil
		}
		out := worker.NewStream(ctx)
		if info.Attempt == 1 {
			out.Step(json.RawMessage(`{"id":"a","tool":"find","arguments":{"n":1}}`))
			<-ctx.Done()
			return worker.Output{}, ctx.Err()
		}
		out.Text(twice)
		return worker.Output{Body: []byte(twice)}, nil
	}
	stop := s.hurried("planner", o, plans)
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"],"stream_plan":true}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"finder"}]}`, "shut")
	<-called
	require.Eventually(t, func() bool {
		doc, err := s.client.Get(ctx(t), "shut")
		return err == nil && doc.Stats.Succeeded > 0
	}, patience, 5*time.Millisecond, "its record is there")
	require.Equal(t, "round 0, attempt 1: []", <-attempts)
	stop()
	s.hurried("planner", o, plans)
	out := s.wait(r)
	require.JSONEq(t, `1`, result(t, out, "a"), "%s", out.JSON())
	require.Equal(t, `round 0, attempt 2: [{a succeeded {} {1}}]`, <-attempts)
	require.Equal(t, "round 1, attempt 1: []", <-attempts)
	require.EqualValues(t, 2, times.Load(), "what had begun was not made again")
}

// TestACallAtMostOnceThatBeganEarly is made once, whoever dies: its planner, which hands it over again, or the worker that is at
// it, of which nobody knows what it has done.
func TestACallAtMostOnceThatBeganEarly(t *testing.T) {
	t.Parallel()
	const pays = `{"id":"pay","tool":"charge","arguments":{"n":5}}`
	for name, lost := range map[string]bool{"its planner dies": false, "its worker dies": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			times, atIt, again, done := atomic.Int64{}, make(chan struct{}), make(chan struct{}), make(chan struct{})
			charges := func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
				if times.Add(1) == 1 {
					close(atIt)
				}
				select {
				case <-ctx.Done():
					return worker.Output{}, ctx.Err()
				case <-done:
				}
				return worker.Output{Body: args}, nil
			}
			once := &tool.Orchestration{Delivery: tool.AtMostOnce}
			stop := s.hurried("charge", once, charges)
			var began []toldOf
			s.host("planner", &tool.Orchestration{Request: tool.WholeRequest, Retry: &tool.Retry{MaxAttempts: 2}}, func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
				var r toldOf
				if err := json.Unmarshal(sent, &r); err != nil {
					return worker.Output{}, err
				}
				began = append(began, r)
				out := worker.NewStream(ctx)
				switch len(began) {
				case 1:
					out.Step(json.RawMessage(pays))
					<-atIt
					return worker.Output{}, errors.New("the stream broke off")
				case 2: // it writes the same
					out.Step(json.RawMessage(pays))
					close(again)
					<-done
					return worker.Output{Body: []byte(`{"steps":[` + pays + `]}`)}, nil
				}
				return worker.Output{Body: []byte(`{"output":"enough"}`)}, nil
			})
			s.agent("buyer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["charge"],"stream_plan":true}`)
			r := s.submit(`{"steps":[{"id":"a","tool":"buyer"}]}`, "pays")
			<-again
			if lost {
				stop()
				s.hurried("charge", once, charges)
			}
			close(done)
			out := s.wait(r)
			require.JSONEq(t, `"enough"`, result(t, out, "a"), "%s", out.JSON())
			require.EqualValues(t, 1, times.Load())
			require.Len(t, began, 3)
			require.Len(t, began[1].Began, 1)
			require.Equal(t, "pay", began[1].Began[0].ID)
			came := map[string]string{}
			var look func(steps []outcome.Step)
			look = func(steps []outcome.Step) {
				for _, st := range steps {
					if came[st.ID] = string(st.Status); st.Error != nil {
						came[st.ID] = string(st.Error.Code)
					}
					look(st.Steps)
				}
			}
			look(s.history("default", "pays").Steps)
			want := string(outcome.StepSucceeded)
			if lost {
				want = string(fault.OutcomeUnknown)
			}
			require.Equal(t, want, came["a/=0/=stream/pay"])
			require.Equal(t, want, came["a/=0/pay"])
		})
	}
}

// TestRefusedAnswersOfWhichStepsHadBegun: three in a row end the agent, as any; what had begun of each is told to the next round.
func TestRefusedAnswersOfWhichStepsHadBegun(t *testing.T) {
	t.Parallel()
	s := start(t)
	called, times := s.tells("find", nil, false)
	w := s.writes("planner", nil, func(_ context.Context, n int, out *worker.Stream) (string, error) {
		step := fmt.Sprintf(`{"id":"a","tool":"find","arguments":{"n":%d}}`, n)
		out.Step(json.RawMessage(step))
		<-called
		if n == 2 {
			return `{"steps":[` + step + `]}`, nil
		}
		return `{"steps":[` + step + `,{"id":"b","tool":"nobody"}]}`, nil
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["find"],"stream_plan":true}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "refused")
	require.Equal(t, outcome.Failed, o.Status)
	require.Equal(t, fault.PlannerInvalid, o.Errors[0].Code, "%s", o.JSON())
	require.Equal(t, 5, w.times(), "the second answer was good, and then come three that are not")
	require.EqualValues(t, 5, times.Load())
	came := map[string]outcome.StepStatus{}
	for _, st := range s.history("default", "refused").Steps[0].Steps {
		came[st.ID] = st.Status
	}
	for n := range 5 {
		require.Equal(t, outcome.StepSucceeded, came[fmt.Sprintf("a/=%d/a", n)], "%v", came)
	}
	var said []struct {
		Problems []struct{ Code string }
		Records  []struct {
			ID, Status, Note string
			Result           struct{ N int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(w.member(4, "rounds")), &said))
	require.Len(t, said, 4)
	for n, round := range said {
		require.Len(t, round.Records, 1)
		require.Equal(t, "succeeded", round.Records[0].Status)
		require.Equal(t, n+1, round.Records[0].Result.N)
		if n == 1 {
			require.Empty(t, round.Problems)
			require.Empty(t, round.Records[0].Note)
			continue
		}
		require.Equal(t, string(fault.UnknownTool), round.Problems[0].Code)
		require.Equal(t, "It began while you were writing.", round.Records[0].Note)
	}
}
