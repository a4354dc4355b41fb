package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestRunsGoOnUnderAnotherOwner(t *testing.T) {
	t.Parallel()
	s := start(t)
	var runs []*client.Run
	for i := range 20 {
		runs = append(runs, s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"a","tool":"echo","arguments":{"x":"$ref:g"}}]}`, fmt.Sprint("r", i)))
		<-s.tools.begun
	}
	stops := []func(){s.orchestrator(), s.orchestrator()}
	stops[0]() // planned: hands over
	close(s.tools.gate)
	for _, r := range runs {
		require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	}
	require.Equal(t, 40, s.tools.total(), "no step was executed twice")
	stops[1]()
}

func TestARestartReadsTheLedgerAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := natstest.Start(t, func(o *embedded.Options) { o.Dir = dir })
	s := &system{t: t, srv: srv}
	*s = *startOn(t, srv)
	stop := s.orchestrator()
	r := s.submit(`{"steps":[{"id":"g","tool":"gate"},{"id":"f","tool":"flaky","depends_on":["g"]},{"id":"a","tool":"echo","arguments":{"x":"$ref:f"}}]}`, "r")
	<-s.tools.begun
	stop()
	close(s.tools.gate)
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status)
	got, _ := o.Results.Get("a")
	require.Equal(t, `{"x":"at last"}`, string(got))
}

func TestAPlannedStopHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	fastest := time.Hour
	for round := range 4 {
		stop := s.orchestrator()
		began := time.Now()
		stop()
		var runs []*client.Run
		for i := range 10 { // whatever partition it is, somebody owns it
			runs = append(runs, s.submit(`{"steps":[{"id":"a","tool":"echo"}]}`, fmt.Sprint("after", round, "-", i)))
		}
		for _, r := range runs {
			s.wait(r)
		}
		fastest = min(fastest, time.Since(began))
	}
	require.Less(t, fastest, 2*time.Second)
}

// A run goes on while others read its records: whoever had it lets go only when they say that they have it.
func TestAPartitionIsKeptUntilItsNextOwnerServesIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	nc := natstest.Connect(t, s.srv)
	reading, err := kv.Open(t.Context(), nc)
	require.NoError(t, err)
	t.Cleanup(reading.Close)
	other, err := reading.Members.Join(t.Context(), "slow", func([]kv.Member) {})
	require.NoError(t, err)
	t.Cleanup(other.Leave)
	for i := range 20 { // of every partition, also those that are the other's
		s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, fmt.Sprint("kept", i))
	}
}

// It waits for others to take over no longer than it must.
func TestTheLastOrchestratorStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	stop := s.orchestrator()
	began := time.Now()
	stop()
	require.Less(t, time.Since(began), 5*time.Second, "the other has nothing to read")
}

// What waits for its next attempt is in nobody's hands: an owner that takes it over counts it in no tool's limit
// either.
func TestARetryThatWaitsTakesNoPlaceAfterATakeover(t *testing.T) {
	t.Parallel()
	s := bare(t)
	stop := s.orchestrator()
	w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: "w", Logger: logger(t)})
	require.NoError(t, err)
	o := &tool.Orchestration{Mode: tool.SequentialOnly, Retry: &tool.Retry{MaxAttempts: 2}, Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 10 * time.Minute, Max: 10 * time.Minute}}
	require.NoError(t, w.HandleRaw(&tool.Definition{Name: "one", Orchestration: o}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		if info, _ := worker.InfoFrom(ctx); !strings.HasPrefix(info.Run, "after") {
			return worker.Output{}, errors.New("not now")
		}
		return worker.Output{Body: args}, nil
	}))
	s.background(w.Run, w.Ready())
	for i := range 4 {
		s.submit(`{"steps":[{"id":"a","tool":"one"}]}`, fmt.Sprint("waits", i))
	}
	steps, err := s.store.Registry.Tool(ctx(t), "one")
	require.NoError(t, err)
	pending := func() int {
		n := 0
		for i := range subjects.Partitions {
			ids, err := s.store.Queue.Pending(ctx(t), steps.Shard, i)
			require.NoError(t, err)
			for id := range ids {
				if strings.HasSuffix(id, "/2") {
					n++
				}
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return pending() == 4 }, patience, 20*time.Millisecond, "retries that wait")
	stop()
	s.orchestrator()
	for began, i := time.Now(), 0; time.Since(began) < 3*s.config.SweepEvery; i++ { // until what should be out was compared with what is
		require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"a","tool":"one"}]}`, fmt.Sprint("after", i)).Status)
	}
}

// What an earlier owner has sent is looked for, and not sent again in the hope that the server knows its message id
// still.
func TestATakeoverSendsNothingTwice(t *testing.T) {
	t.Parallel()
	s := bare(t)
	stop := s.orchestrator()
	s.tools = newTools()
	s.worker()
	var runs []*client.Run
	for i := range 10 {
		runs = append(runs, s.submit(`{"steps":[{"id":"g","tool":"gate"}]}`, fmt.Sprint("sent", i)))
		<-s.tools.begun
	}
	known, err := s.store.Registry.Tool(ctx(t), "gate")
	require.NoError(t, err)
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	last := func() uint64 {
		info, err := s.stream(subjects.StepsStream(known.Shard)).Info(ctx(t))
		require.NoError(t, err)
		return info.State.LastSeq
	}
	info, err := s.stream(subjects.StepsStream(known.Shard)).Info(ctx(t))
	require.NoError(t, err)
	info.Config.Duplicates = 100 * time.Millisecond
	_, err = js.UpdateStream(ctx(t), info.Config)
	require.NoError(t, err)
	sent := last()
	stop()
	time.Sleep(4 * info.Config.Duplicates) // the server forgets the ids in this time, and looks every so often
	s.orchestrator()
	for i := range runs {
		_, err := s.client.Get(ctx(t), fmt.Sprint("sent", i)) // its new owner has it
		require.NoError(t, err)
	}
	require.Equal(t, sent, last())
	close(s.tools.gate)
	for _, r := range runs {
		require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	}
	require.Equal(t, sent, last())
}
