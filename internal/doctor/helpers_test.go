package doctor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// ctx is for all that has to succeed, however busy the machine.
func ctx(t testing.TB) context.Context { return within(t, 2*time.Minute) }

func setup(t testing.TB, cfg kv.Config) *kv.Store {
	t.Helper()
	return setupOn(t, natstest.Start(t), cfg)
}

func setupOn(t testing.TB, srv *embedded.Server, cfg kv.Config) *kv.Store {
	t.Helper()
	s, err := kv.Setup(ctx(t), natstest.Connect(t, srv), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// emptied takes a key out of the registry, as an operator of JetStream could.
func emptied(t testing.TB, js jetstream.JetStream, key string) error {
	t.Helper()
	st, err := js.Stream(ctx(t), subjects.BucketStream(subjects.ToolsBucket))
	if err != nil {
		return err
	}
	return st.Purge(ctx(t), jetstream.WithPurgeSubject(subjects.BucketSubject(subjects.ToolsBucket, key)))
}

func create(t testing.TB, s *kv.Store, subject, body string, fence *kv.Fence) (kv.Decision, uint64) {
	t.Helper()
	d, seq, err := s.Ledger.Create(ctx(t), subject, nil, []byte(body), fence)
	require.NoError(t, err)
	return d, seq
}

// submit creates a plan record and returns its generation.
func submit(t testing.TB, s *kv.Store, r subjects.Run, body string) uint64 {
	t.Helper()
	d, seq := create(t, s, s.Ledger.SubmitSubject(r), body, nil)
	require.Equal(t, kv.Written, d)
	return seq
}

func register(t testing.TB, s *kv.Store, name string, limit int) tool.Registered {
	t.Helper()
	definition, _ := json.Marshal(map[string]any{
		"name": name, "description": "a tool", "inputSchema": map[string]any{"type": "object"},
		"x-orchestration": map[string]any{"mode": "fan-out-bounded", "max_concurrency": limit},
	})
	tool, err := s.Registry.Register(ctx(t), definition)
	require.NoError(t, err)
	return tool
}

// attempt names the first attempt of a step.
func attempt(tool, step string) subjects.Attempt {
	return subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: tool, Step: step, Number: 1}
}

func dispatch(t testing.TB, s *kv.Store, d kv.Dispatch) {
	t.Helper()
	done := make(chan error, 1)
	s.Queue.DispatchAsync(ctx(t), d, func(err error) { done <- err })
	require.NoError(t, receive(t, done, "the dispatch to come back"))
}

func pull(t testing.TB, s *kv.Store, tool tool.Registered, slots int) (*kv.Puller, <-chan *kv.Delivery) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	got := make(chan *kv.Delivery, 10_000)
	p, err := s.Queue.Pull(ctx, tool, slots, func(d *kv.Delivery) { got <- d })
	require.NoError(t, err)
	return p, got
}

// consumer returns the state of a tool's consumer.
func consumer(t testing.TB, s *kv.Store, tool tool.Registered) *jetstream.ConsumerInfo {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	c, err := js.Consumer(ctx(t), subjects.StepsStream(tool.Shard), subjects.Durable(tool.Name))
	require.NoError(t, err)
	return c.CachedInfo()
}

func waitingPulls(t testing.TB, s *kv.Store, tool tool.Registered) int {
	return consumer(t, s, tool).NumWaiting
}

// join returns the lists that a member is told, one after the other.
func join(t *testing.T, s *kv.Store, id string) (told <-chan []string, leave func()) {
	t.Helper()
	lists := make(chan []string, 100)
	m, err := s.Members.Join(ctx(t), id, func(members []kv.Member) {
		var ids []string
		for _, x := range members {
			ids = append(ids, x.ID)
		}
		lists <- ids
	})
	require.NoError(t, err)
	return lists, m.Leave
}

// until waits for a list, whatever others come before.
func until(t *testing.T, told <-chan []string, want ...string) {
	t.Helper()
	for !slices.Equal(receive(t, told, "members"), want) {
	}
}

func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(2 * time.Minute):
		require.Fail(t, "waited in vain for "+what)
	}
	panic("unreachable")
}

// streams returns the settings of all streams.
func streams(t *testing.T, js jetstream.JetStream) map[string]jetstream.StreamConfig {
	t.Helper()
	all := map[string]jetstream.StreamConfig{}
	lister := js.ListStreams(ctx(t))
	for info := range lister.Info() {
		all[info.Config.Name] = info.Config
	}
	require.NoError(t, lister.Err())
	return all
}
