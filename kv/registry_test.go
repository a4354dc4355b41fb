package kv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

func consumer(t testing.TB, s *kv.Store, tool tool.Registered) *jetstream.ConsumerInfo {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	c, err := js.Consumer(within(t, 2*time.Minute), subjects.StepsStream(tool.Shard), subjects.Durable(tool.Name))
	require.NoError(t, err)
	return c.CachedInfo()
}

func TestARegisteredToolCanBeRead(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: 7 * time.Second})
	got := register(t, s, "math.add", 5)
	require.Equal(t, "math.add", got.Name)
	require.Equal(t, 5, got.Contract.Limit)
	require.Equal(t, 7*time.Second, got.AckWait)
	require.Equal(t, got.Definition.Digest(), got.Digest)
	require.NotZero(t, got.Revision)

	read, err := s.Registry.Tool(within(t, 2*time.Minute), "math.add")
	require.NoError(t, err)
	require.Equal(t, got, read)
	all, err := s.Registry.Tools(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Equal(t, []tool.Registered{got}, all)
	def, err := s.Registry.Definition(within(t, 2*time.Minute), got.Digest)
	require.NoError(t, err)
	require.Equal(t, got.Digest, def.Digest())
	cfg := consumer(t, s, got).Config
	require.Equal(t, 5, cfg.MaxAckPending)
	require.Equal(t, 7*time.Second, cfg.AckWait)
	require.Equal(t, -1, cfg.MaxDeliver)
	require.Equal(t, "step.0.math=2Eadd.>", cfg.FilterSubject)

	_, err = s.Registry.Tool(within(t, 2*time.Minute), "none")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = s.Registry.Definition(within(t, 2*time.Minute), "none")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = s.Registry.Register(within(t, 2*time.Minute), []byte(`{"name":"bad name"}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = s.Registry.Register(within(t, 2*time.Minute), []byte(`nonsense`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
}

func TestRegisteringTheSameWritesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	one := register(t, s, "tool", 5)
	last := lastSequence(t, s, "KV_tools")
	require.Equal(t, one, register(t, s, "tool", 5))
	require.Equal(t, last, lastSequence(t, s, "KV_tools"))

	two := register(t, s, "tool", 6)
	require.Greater(t, two.Revision, one.Revision)
	require.Equal(t, 6, consumer(t, s, two).Config.MaxAckPending)
	old, err := s.Registry.Definition(within(t, 2*time.Minute), one.Digest) // for runs that started with it
	require.NoError(t, err)
	require.Equal(t, one.Digest, old.Digest())
}

func lastSequence(t testing.TB, s *kv.Store, stream string) uint64 {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	st, err := js.Stream(within(t, 2*time.Minute), stream)
	require.NoError(t, err)
	return st.CachedInfo().State.LastSeq
}

func TestRegistrarsAtOnceEndConsistent(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var stores []*kv.Store
	for range 4 {
		stores = append(stores, setupOn(t, srv, kv.Config{}))
	}
	for round := range 5 {
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				if _, err := s.Registry.Register(within(t, 2*time.Minute), definition("tool", 1+(round+i)%4)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		stands, err := stores[0].Registry.Tool(within(t, 2*time.Minute), "tool")
		require.NoError(t, err)
		require.Equal(t, stands.Contract.Limit, consumer(t, stores[0], stands).Config.MaxAckPending)
	}
}

func TestARemovedOrSpoiltEntryCanBeRegisteredAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	register(t, s, "tool", 5)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	bucket, err := js.KeyValue(within(t, 2*time.Minute), subjects.ToolsBucket)
	require.NoError(t, err)
	for what, spoil := range map[string]func() error{
		"deleted":  func() error { return bucket.Delete(within(t, 2*time.Minute), "tool") },
		"purged":   func() error { return emptied(t, js, "tool") },
		"nonsense": func() error { return second(bucket.PutString(within(t, 2*time.Minute), "tool", "nonsense")) },
		"empty":    func() error { return second(bucket.PutString(within(t, 2*time.Minute), "tool", "{}")) },
		"another":  func() error { return second(bucket.PutString(within(t, 2*time.Minute), "tool", `{"name":"x"}`)) },
	} {
		require.NoError(t, spoil(), what)
		_, err := s.Registry.Tool(within(t, 2*time.Minute), "tool")
		require.Error(t, err, what)
		all, err := s.Registry.Tools(within(t, 2*time.Minute))
		require.NoError(t, err, what)
		require.Empty(t, all, what)
		require.Equal(t, 5, register(t, s, "tool", 5).Contract.Limit, what)
	}
}

func TestToolsSpreadOverStepStreams(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	shards := map[int]int{}
	for i := range 103 {
		shards[register(t, s, fmt.Sprint("tool", i), 1).Shard]++
	}
	require.Equal(t, map[int]int{0: 100, 1: 3}, shards)
	require.Equal(t, 1, register(t, s, "tool101", 9).Shard, "a tool stays where it is")
	late := register(t, s, "late", 3)
	_, got := pull(t, s, late, 1)
	a := attempt("late", "x")
	dispatch(t, s, kv.Dispatch{Attempt: a, Shard: late.Shard})
	require.Equal(t, subjects.Step(a, 1), receive(t, got, "a step of the second stream").Subject)
}

type change struct {
	name    string
	limit   int
	deleted bool
}

func TestWatchingToolsOutlivesTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *embedded.Server {
		srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen})
		require.NoError(t, err)
		t.Cleanup(srv.Shutdown)
		return srv
	}
	srv := start("127.0.0.1:0")
	s := setupOn(t, srv, kv.Config{})
	register(t, s, "a", 1)
	changes, ready, ended := make(chan change, 100), make(chan int, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		ended <- s.Registry.WatchTools(ctx, func(t tool.Registered, deleted bool) { changes <- change{t.Name, t.Contract.Limit, deleted} },
			func() { ready <- len(changes) })
	}()
	require.Equal(t, 1, receive(t, ready, "ready"))
	require.Equal(t, change{"a", 1, false}, receive(t, changes, "a"))
	register(t, s, "b.c", 2)
	require.Equal(t, change{"b.c", 2, false}, receive(t, changes, "b.c"))
	require.NoError(t, s.Ledger.PurgeSubject(within(t, 2*time.Minute), "$KV.tools.x"))
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	bucket, err := js.KeyValue(within(t, 2*time.Minute), subjects.ToolsBucket)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(within(t, 2*time.Minute), subjects.ToolKey("b.c")))
	require.Equal(t, change{"b.c", 0, true}, receive(t, changes, "the removal"))

	srv.Shutdown()
	start(srv.URL()[len("nats://"):])
	register(t, s, "d", 4)
	for receive(t, changes, "what was registered after the restart") != (change{"d", 4, false}) {
	}
	cancel()
	require.Error(t, receive(t, ended, "the end"))
}

// Of a tool that is registered and removed in a moment, a watch may see the mark alone; who registered it knows it.
func TestARemovalIsToldAlsoWhereTheToolWasNotSeen(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	register(t, s, "a", 1)
	register(t, s, "b", 2)
	removed, err := s.Registry.Tool(within(t, 2*time.Minute), "b")
	require.NoError(t, err)
	_, err = s.Registry.RemoveTool(within(t, 2*time.Minute), "b", false)
	require.NoError(t, err)
	told := map[string]tool.Registered{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := map[string]bool{}
	require.Error(t, s.Registry.WatchTools(ctx, func(t tool.Registered, deleted bool) { told[t.Name], gone[t.Name] = t, deleted }, cancel))
	require.Equal(t, map[string]bool{"a": false, "b": true}, gone)
	require.Greater(t, told["b"].Revision, removed.Revision)
}

// Tools that are registered again one after the other don't make a registry whole that somebody purged; tools that are
// registered anew, or removed, don't make it one that was.
func TestARegistryThatFillsAgainWasEmptied(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	is := func(emptied bool, why string) {
		t.Helper()
		now, err := s.Registry.RegistryEmptied(within(t, 2*time.Minute))
		require.NoError(t, err)
		require.Equal(t, emptied, now, why)
	}
	is(false, "nothing was ever registered")
	for limit := range 3 {
		register(t, s, "a", limit+1)
		is(false, "it is registered, again and again")
	}
	register(t, s, "b", 1)
	_, err := s.Registry.RemoveTool(within(t, 2*time.Minute), "a", true)
	require.NoError(t, err)
	_, err = s.Registry.RemoveTool(within(t, 2*time.Minute), "b", true)
	require.NoError(t, err)
	is(false, "all are removed, on purpose")
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	stream, err := js.Stream(within(t, 2*time.Minute), subjects.BucketStream(subjects.ToolsBucket))
	require.NoError(t, err)
	require.NoError(t, stream.Purge(within(t, 2*time.Minute)))
	is(true, "it is empty")
	register(t, s, "b", 1)
	is(true, "one tool is there again, and others may come")
}

func TestAnOrchestratorAnswersRegistrations(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	asker, err := kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv))
	require.NoError(t, err)
	defer asker.Close()
	_, err = asker.Requests.RequestRegister(within(t, 100*time.Millisecond), definition("tool", 5))
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "nobody answers")

	asked := make(chan tool.Registered, 1)
	go func() { // asks before there is somebody who answers
		tool, err := asker.Requests.RequestRegister(within(t, 2*time.Minute), definition("tool", 5))
		if err != nil {
			t.Error(err)
		}
		asked <- tool
	}()
	_, err = s.Conn().Subscribe(subjects.RegisterFilter, func(m *nats.Msg) {
		tool, err := s.Registry.Register(within(t, 2*time.Minute), m.Data)
		if err == nil && tool.Contract.Limit == 6 {
			err = fault.New(fault.InvalidTool, "not this one")
		}
		if err != nil {
			h, body := wire.Result{Error: fault.As(err)}.Message()
			_ = m.RespondMsg(&nats.Msg{Header: h, Data: body})
			return
		}
		body, _ := json.Marshal(tool)
		_ = m.Respond(body)
	})
	require.NoError(t, err)
	got := receive(t, asked, "the answer")
	stored, err := s.Registry.Tool(within(t, 2*time.Minute), "tool")
	require.NoError(t, err)
	require.Equal(t, stored, got)
	_, err = asker.Requests.RequestRegister(within(t, 2*time.Minute), definition("tool", 6))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	_, err = asker.Requests.RequestRegister(within(t, 2*time.Minute), []byte(`{}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
}

// What is missing of a tool is made as the registry has it, whoever asks.
func TestARestoredToolKeepsItsDefinition(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	_, err := s.Registry.RestoreTool(within(t, 2*time.Minute), "tool")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	put, err := s.Registry.Register(within(t, 2*time.Minute), []byte(`{"name":"tool","description":"newer","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	require.NoError(t, js.DeleteConsumer(within(t, 2*time.Minute), subjects.StepsStream(put.Shard), subjects.Durable("tool")))
	again, err := s.Registry.RestoreTool(within(t, 2*time.Minute), "tool")
	require.NoError(t, err)
	require.Equal(t, put.Digest, again.Digest)
	consumer(t, s, again)
}

// An output schema that can't be used keeps no tool out: whoever registers it is told, and the registry keeps no word
// of it.
func TestABrokenOutputSchemaIsAWarningOfTheRegistration(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	raw := []byte(`{"name":"odd","outputSchema":{"properties":{"n":{"type":"any"}}}}`)
	for range 2 { // the second finds all as it should be
		got, err := s.Registry.Register(within(t, time.Minute), raw)
		require.NoError(t, err)
		require.Len(t, got.Warnings, 1)
		require.Equal(t, "/outputSchema/properties/n/type", got.Warnings[0].Path)
		read, err := s.Registry.Tool(within(t, time.Minute), "odd")
		require.NoError(t, err)
		require.Empty(t, read.Warnings)
		require.Equal(t, got.Revision, read.Revision)
		_, err = s.Registry.Definition(within(t, time.Minute), got.Digest)
		require.NoError(t, err, "runs that froze it have to read it")
	}
}
