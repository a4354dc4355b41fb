package orchestrator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/subjects"
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
