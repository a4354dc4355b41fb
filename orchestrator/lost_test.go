package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// bare is a server and an orchestrator without a worker, with one tool registered.
func bare(t *testing.T) *system {
	s := &system{t: t, srv: natstest.Start(t), config: orchestrator.Config{Name: "test", Logger: logger(t), SweepEvery: 300 * time.Millisecond}}
	s.nc = natstest.Connect(t, s.srv)
	store, err := kv.Setup(ctx(t), s.nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	s.store = store
	s.client, err = client.New(context.Background(), s.nc, client.Config{Logger: logger(t)})
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	s.known("echo")
	return s
}

func (s *system) known(name string) {
	raw, err := json.Marshal(&tool.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	require.NoError(s.t, err)
	_, err = s.store.Registry.Register(ctx(s.t), raw)
	require.NoError(s.t, err)
}

func (s *system) stream(name string) jetstream.Stream {
	js, err := jetstream.New(s.nc)
	require.NoError(s.t, err)
	stream, err := js.Stream(ctx(s.t), name)
	require.NoError(s.t, err)
	return stream
}

// A plan is judged once and for all, so it is not judged by a registry that somebody emptied.
func TestAPlanWaitsForARegistryThatWasEmptied(t *testing.T) {
	t.Parallel()
	s := bare(t)
	require.NoError(t, s.stream("KV_tools").Purge(ctx(t)))
	s.orchestrator() // it has never seen the tool
	r := s.submit(`{"steps":[{"id":"a","tool":"echo"}]}`, "r")
	emptied, err := s.store.Registry.RegistryEmptied(ctx(t))
	require.NoError(t, err)
	require.True(t, emptied)
	waits, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	_, err = r.Wait(waits)
	require.Error(t, err, "there is no verdict yet")
	s.known("other") // workers register their tools one after the other
	waits, cancel = context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	_, err = r.Wait(waits)
	require.Error(t, err, "a tool is there again, and this one not yet")
	s.tools = newTools()
	s.worker()
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
}

// A registry that is empty because nothing was ever registered is taken at its word, as is one from which tools were
// removed.
func TestAnEmptyRegistryIsTakenAtItsWord(t *testing.T) {
	t.Parallel()
	s := bare(t)
	s.orchestrator()
	_, err := s.store.Registry.RemoveTool(ctx(t), "echo", true)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		all, err := s.store.Registry.Tools(ctx(t))
		return err == nil && len(all) == 0
	}, patience, 10*time.Millisecond)
	o := s.run(`{"steps":[{"id":"a","tool":"never"}]}`, "r")
	require.Equal(t, []fault.Code{fault.UnknownTool}, codes(o.Problems))
}

// Whoever deletes a tool's consumer is noticed by the workers that ask it, long before anybody looks after it.
func TestAConsumerThatIsDeletedIsBackAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.SweepEvery = 10 * time.Minute })
	s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, "before")
	for i := range 3 {
		require.NoError(t, s.stream("STEPS_0").DeleteConsumer(ctx(t), subjects.Durable("echo")))
		o := s.run(`{"steps":[{"id":"a","tool":"echo"}]}`, fmt.Sprint("after", i)) // the worker's own look comes after 30 s
		require.Equal(t, outcome.Succeeded, o.Status)
	}
}
