package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// TestRunsGoOnAfterTheirStepsWerePurged: nobody waits for the sweep, which here never comes. What waits for a worker
// and what waits for its time are gone with the stream; what a worker is at is not repeated.
func TestRunsGoOnAfterTheirStepsWerePurged(t *testing.T) {
	t.Parallel()
	losses := map[string]func(s *system, js jetstream.JetStream){
		"purged": func(s *system, js jetstream.JetStream) {
			stream, err := js.Stream(ctx(s.t), subjects.StepsStream(0))
			require.NoError(s.t, err)
			require.NoError(s.t, stream.Purge(ctx(s.t)))
		},
		"purged, and set up again at once": func(s *system, js jetstream.JetStream) {
			stream, err := js.Stream(ctx(s.t), subjects.StepsStream(0))
			require.NoError(s.t, err)
			require.NoError(s.t, stream.Purge(ctx(s.t)))
			again, err := kv.Setup(ctx(s.t), s.nc, s.config.Store) // as an orchestrator does that starts
			require.NoError(s.t, err)
			again.Close()
		},
		"deleted": func(s *system, js jetstream.JetStream) {
			require.NoError(s.t, js.DeleteStream(ctx(s.t), subjects.StepsStream(0)))
		},
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *orchestrator.Config) { c.SweepEvery, c.Store.AckWait = time.Hour, 30*time.Second })
			w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: "narrow", Logger: logger(t)})
			require.NoError(t, err)
			begun, gate := make(chan struct{}, 1), make(chan struct{})
			var first, failures, shy atomic.Int32
			one := &tool.Orchestration{Mode: tool.SequentialOnly}
			require.NoError(t, w.HandleRaw(&tool.Definition{Name: "one", Orchestration: one}, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
				if first.Add(1) == 1 {
					begun <- struct{}{}
					<-gate
				}
				return worker.Output{Body: args}, nil
			}))
			again := &tool.Orchestration{Mode: tool.SequentialOnly, Retry: retrying.Retry, Backoff: retrying.Backoff}
			require.NoError(t, w.HandleRaw(&tool.Definition{Name: "shy", Orchestration: again}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
				info, _ := worker.InfoFrom(ctx)
				switch shy.Add(1); {
				case info.Step == "e" && info.Attempt == 1:
					return worker.Output{}, errors.New("not yet")
				case info.Step == "f":
					<-gate
				}
				return worker.Output{Body: args}, nil
			}))
			later := &tool.Orchestration{Retry: &tool.Retry{MaxAttempts: 2}, Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 3 * time.Second}}
			require.NoError(t, w.HandleRaw(&tool.Definition{Name: "later", Orchestration: later}, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
				if failures.Add(1) == 1 {
					return worker.Output{}, errors.New("not yet")
				}
				return worker.Output{Body: args}, nil
			}))
			s.background(w.Run, w.Ready())
			// Of one sequential tool a step is at work and two wait, of the other a retry whose time has come; another
			// one waits for its time.
			r := s.submit(`{"steps":[{"id":"a","tool":"one"},{"id":"b","tool":"one"},{"id":"c","tool":"one"},{"id":"d","tool":"later"},{"id":"e","tool":"shy"},{"id":"f","tool":"shy"}]}`, "purged")
			<-begun
			require.Eventually(t, func() bool {
				return failures.Load() == 1 && s.lies(subjects.Scheduled(s.attemptOf(r.ID(), r.Generation(), "later", "d", 2), 0))
			}, time.Minute, 5*time.Millisecond)
			require.Eventually(t, func() bool { return s.lies(subjects.Step(s.attemptOf(r.ID(), r.Generation(), "shy", "e", 2), 0)) }, time.Minute, 5*time.Millisecond)
			js, err := jetstream.New(s.nc)
			require.NoError(t, err)
			lose(s, js)
			close(gate)
			o := s.wait(r)
			require.Equal(t, outcome.Succeeded, o.Status, string(o.JSON()))
			require.EqualValues(t, 2, failures.Load())
			require.LessOrEqual(t, shy.Load(), int32(4))
			require.LessOrEqual(t, first.Load(), int32(4), "at most what was at work is repeated")
		})
	}
}

// TestWhatTheStreamHadBeforeIsLookedFor: a step that the stream takes for one that it has, since it had one of that id, and
// which is gone, is sent again soon. Nobody waits for the sweep, which here never comes; a program that does is found out
// in half a minute.
func TestWhatTheStreamHadBeforeIsLookedFor(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.SweepEvery = time.Hour })
	r := s.submit(`{"steps":[{"id":"a","tool":"gate"},{"id":"b","tool":"echo","depends_on":["a"]}]}`, "had")
	<-s.tools.begun
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	b := s.attemptOf(r.ID(), r.Generation(), "echo", "b", 1)
	was := &nats.Msg{Subject: subjects.Scheduled(b, 0), Header: nats.Header{jetstream.MsgIDHeader: {b.MessageID()}}}
	ack, err := js.PublishMsg(ctx(t), was)
	require.NoError(t, err)
	stream, err := js.Stream(ctx(t), ack.Stream)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(ctx(t), ack.Sequence))
	close(s.tools.gate)
	soon, cancel := context.WithTimeout(ctx(t), 30*time.Second)
	defer cancel()
	o, err := r.Wait(soon)
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, string(o.JSON()))
}

// TestLookingAfterStepsIsCheap: however many steps there are, they cost one request a second.
func TestLookingAfterStepsIsCheap(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.SweepEvery = time.Hour }) // nothing else reads there
	var asked atomic.Int32
	_, err := s.nc.Subscribe("$JS.API.STREAM.MSG.GET.STEPS_0", func(*nats.Msg) { asked.Add(1) })
	require.NoError(t, err)
	require.NoError(t, s.nc.Flush())
	began := time.Now()
	for i := 0; asked.Load() < 3; i++ {
		s.run(`{"steps":[{"id":"a","tool":"echo"},{"id":"b","tool":"echo","depends_on":["a"]}]}`, fmt.Sprint("run-", i))
	}
	require.LessOrEqual(t, float64(asked.Load()), time.Since(began).Seconds()+2)
}

func (s *system) attemptOf(run string, generation uint64, tool, step string, number int) subjects.Attempt {
	return subjects.Attempt{Run: subjects.NewRun("default", run), Generation: generation, Tool: tool, Step: step, Number: number}
}

// lies reports whether a message lies on a subject.
func (s *system) lies(subject string) bool {
	_, err := s.store.Ledger.Read(ctx(s.t), subject)
	return err == nil
}
