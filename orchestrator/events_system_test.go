package orchestrator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// What is told of a step while its run goes on is told again, to the last field, to who looks at the run later.
func TestEventsAreTheSameLiveAndLater(t *testing.T) {
	t.Parallel()
	s := start(t)
	const plan = `{"steps":[{"id":"o","tool":"echo"},{"id":"f","tool":"flaky"},{"id":"x","tool":"fail"},{"id":"skip","tool":"echo","depends_on":["x"]},
		{"id":"each","tool":"echo","for_each":{"in":[1,2,3]},"arguments":{"n":"$ref:item"}}]}`
	watcher, err := s.client.NewWatcher(ctx(t), "r")
	require.NoError(t, err)
	defer watcher.Close()
	collect := func(told map[string]client.Event) func(client.Event) {
		return func(e client.Event) {
			if e.Kind == subjects.EventStep && e.Status.Terminal() {
				told[e.Step] = e
			}
		}
	}
	live, later := map[string]client.Event{}, map[string]client.Event{}
	s.submit(plan, "r")
	require.NoError(t, watcher.Follow(ctx(t), collect(live)))
	require.NoError(t, s.client.Watch(ctx(t), "r", collect(later)))
	require.Len(t, later, 8)
	require.Equal(t, later, live)
	ran := live["o"]
	require.Positive(t, ran.MS)
	require.Positive(t, ran.QueuedMS, "what was no execution")
	require.Zero(t, live["skip"].MS)
	require.Zero(t, live["each"].Attempt, "its items have attempts")
	require.Equal(t, 1, live["each=2"].Attempt)
}

// How far a step is, its worker says and the owner passes on, to who watches; what is said of a step that is not out,
// or of another attempt, is not.
func TestProgressIsPassedOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	w, err := worker.New(s.nc, worker.Config{Name: "reader"})
	require.NoError(t, err)
	let := make(chan struct{})
	worker.Handle(w, "read", func(ctx context.Context, _ struct{}) (string, error) {
		worker.Report(ctx, worker.Progress{Done: 1, Total: 3, Message: "page one"})
		worker.Report(ctx, worker.Progress{Done: 2, Total: 3, Message: "page two"})
		<-let
		return "", nil
	})
	run, end := context.WithCancel(ctx(t))
	over := make(chan error, 1)
	go func() { over <- w.Run(run) }()
	<-w.Ready()
	watcher, err := s.client.NewWatcher(ctx(t), "r")
	require.NoError(t, err)
	defer watcher.Close()
	r := s.submit(`{"steps":[{"id":"a","tool":"read"},{"id":"b","tool":"echo","depends_on":["a"]}]}`, "r")
	id, flood := subjects.NewRun(s.client.Tenant(), "r"), 0
	var told []client.Event
	require.NoError(t, watcher.Follow(ctx(t), func(e client.Event) {
		if e.Kind != subjects.EventProgress {
			return
		}
		if e.Progress.Message == "flood" {
			flood++
			return
		}
		told = append(told, e)
		if e.Progress.Message == "page two" {
			for _, of := range []subjects.Attempt{
				{Run: id, Generation: r.Generation(), Tool: "read", Step: "a", Number: 2},
				{Run: id, Generation: r.Generation() + 1, Tool: "read", Step: "a", Number: 1},
				{Run: id, Generation: r.Generation(), Tool: "echo", Step: "a", Number: 1},
				{Run: id, Generation: r.Generation(), Tool: "echo", Step: "b", Number: 1},
			} {
				require.NoError(t, s.nc.Publish(subjects.Progress(of), wire.ProgressBody(outcome.Progress{Done: 9, Message: "forged"})))
			}
			for range 100 {
				of := subjects.Attempt{Run: id, Generation: r.Generation(), Tool: "read", Step: "a", Number: 1}
				require.NoError(t, s.nc.Publish(subjects.Progress(of), wire.ProgressBody(outcome.Progress{Done: 3, Message: "flood"})))
			}
			close(let)
		}
	}))
	require.Less(t, flood, 50, "a worker can't flood those who watch")
	require.Len(t, told, 2)
	require.Equal(t, client.Event{
		Kind: subjects.EventProgress, Run: "r", Step: "a", Tool: "read", Attempt: 1, Progress: &outcome.Progress{Done: 1, Total: 3, Message: "page one"},
	}, told[0])
	require.Equal(t, outcome.Progress{Done: 2, Total: 3, Message: "page two"}, *told[1].Progress)
	end()
	require.NoError(t, <-over)
}
