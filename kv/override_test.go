package kv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

func override(t testing.TB, s *kv.Store, name, raw string) kv.Overridden {
	t.Helper()
	o, err := s.Registry.Override(within(t, 2*time.Minute), name, []byte(raw))
	require.NoError(t, err)
	return o
}

func TestAnOverrideBeatsTheDefinitionAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	declared := register(t, s, "math.add", 16)
	o := override(t, s, "math.add", `{"x-orchestration":{"max_concurrency":8},"context":{"filter":"none"},"tenants":["acme"],"by":"ann"}`)
	require.Equal(t, 8, o.Tool.Contract.Limit)
	require.Equal(t, tool.ContextFilter{Filter: tool.PassNone}, o.Tool.Contract.Context)
	require.Equal(t, []string{"acme"}, o.Tool.Tenants)
	require.Equal(t, "ann", o.Tool.Override.By)
	require.Equal(t, declared.Digest, o.Tool.Digest, "the definition stays what the worker declared")
	require.Equal(t, 16, o.Tool.Definition.Orchestration.MaxConcurrency)
	require.Equal(t, 8, o.Tool.Effective().Orchestration.MaxConcurrency)
	require.Equal(t, 8, consumer(t, s, *o.Tool).Config.MaxAckPending)

	stored, err := s.Registry.Tool(within(t, 2*time.Minute), "math.add")
	require.NoError(t, err)
	require.Equal(t, *o.Tool, stored)
	set, err := s.Registry.OverrideOf(within(t, 2*time.Minute), "math.add")
	require.NoError(t, err)
	require.Equal(t, o.Override, set)

	last := lastSequence(t, s, "KV_tools")
	require.Equal(t, 8, register(t, s, "math.add", 16).Contract.Limit, "a worker that registers again changes nothing")
	require.Equal(t, last, lastSequence(t, s, "KV_tools"))
	require.Equal(t, 8, register(t, s, "math.add", 32).Contract.Limit, "nor one that declares something else")

	cleared := override(t, s, "math.add", "")
	require.Nil(t, cleared.Override)
	require.Equal(t, 32, cleared.Tool.Contract.Limit, "what the worker declared counts again")
	require.Empty(t, cleared.Tool.Tenants)
	require.Equal(t, 32, consumer(t, s, *cleared.Tool).Config.MaxAckPending)
	all, err := s.Registry.Tools(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Equal(t, []tool.Registered{*cleared.Tool}, all, "overrides are no tools")
}

func TestAnOverrideMayComeBeforeItsTool(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	o := override(t, s, "tool", `{"x-orchestration":{"max_concurrency":3}}`)
	require.Nil(t, o.Tool)
	all, err := s.Registry.Tools(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Empty(t, all)
	got := register(t, s, "tool", 16)
	require.Equal(t, 3, got.Contract.Limit)
	require.Equal(t, 3, consumer(t, s, got).Config.MaxAckPending)
	none, err := s.Registry.OverrideOf(within(t, 2*time.Minute), "other")
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestAnOverrideThatContradictsChangesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	before := override(t, s, "tool", `{"x-orchestration":{"timeout_ms":1000}}`)
	registered := register(t, s, "tool", 16)
	last := lastSequence(t, s, "KV_tools")
	for raw, code := range map[string]fault.Code{
		`{"x-orchestration":{"mode":"sequential-only"}}`: fault.InvalidTool, // beside max_concurrency 16
		`{"x-orchestration":{"mode":"dependent"}}`:       fault.InvalidTool,
		`{"max_concurrency":1}`:                          fault.InvalidTool,
		`nonsense`:                                       fault.InvalidTool,
	} {
		_, err := s.Registry.Override(within(t, 2*time.Minute), "tool", []byte(raw))
		require.Equal(t, code, fault.CodeOf(err), raw)
	}
	_, err := s.Registry.Override(within(t, 2*time.Minute), "no tool", nil)
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
	require.Equal(t, last, lastSequence(t, s, "KV_tools"))
	stored, err := s.Registry.Tool(within(t, 2*time.Minute), "tool")
	require.NoError(t, err)
	require.Equal(t, registered, stored)
	require.Equal(t, before.Override, stored.Override)

	// The other way round: a definition that contradicts what an operator has set.
	_, err = s.Registry.Register(within(t, 2*time.Minute), []byte(`{"name":"late","x-orchestration":{"mode":"sequential-only"}}`))
	require.NoError(t, err)
	override(t, s, "late2", `{"x-orchestration":{"max_concurrency":8}}`)
	_, err = s.Registry.Register(within(t, 2*time.Minute), []byte(`{"name":"late2","x-orchestration":{"mode":"sequential-only"}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	require.ErrorContains(t, err, "with the operator's override")
	_, err = s.Registry.Tool(within(t, 2*time.Minute), "late2")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

// An override that can't be read must not let a tool have more than the operator allowed.
func TestASpoiltOverrideIsNoneThatMayBeIgnored(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	_, err := s.Conn().Request(subjects.BucketSubject(subjects.ToolsBucket, subjects.OverrideKey("tool")), []byte("nonsense"), 2*time.Minute)
	require.NoError(t, err)
	_, err = s.Registry.Register(within(t, 2*time.Minute), definition("tool", 5))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	require.Contains(t, fault.As(err).Hint, "--clear")
	override(t, s, "tool", "")
	require.Equal(t, 5, register(t, s, "tool", 5).Contract.Limit)
}

// Whoever registers and whoever overrides at once: in the end the entry is what the last definition and the last
// override come to, and so is the consumer.
func TestOverridesAndRegistrationsAtOnceEndConsistent(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var stores []*kv.Store
	for range 4 {
		stores = append(stores, setupOn(t, srv, kv.Config{}))
	}
	for round := range 20 {
		name := fmt.Sprint("tool", round)
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				if i%2 == 0 {
					if _, err := s.Registry.Register(within(t, 2*time.Minute), definition(name, 10+i)); err != nil {
						t.Error(err)
					}
					return
				}
				if _, err := s.Registry.Override(within(t, 2*time.Minute), name, fmt.Appendf(nil, `{"x-orchestration":{"max_concurrency":%d}}`, i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		o, err := stores[0].Registry.OverrideOf(within(t, 2*time.Minute), name)
		require.NoError(t, err)
		stands, err := stores[0].Registry.Tool(within(t, 2*time.Minute), name)
		require.NoError(t, err)
		require.Equal(t, o, stands.Override)
		var want struct {
			Limit int `json:"max_concurrency"`
		}
		require.NoError(t, json.Unmarshal(o.Orchestration, &want))
		require.Equal(t, want.Limit, stands.Contract.Limit)
		require.Equal(t, want.Limit, consumer(t, stores[0], stands).Config.MaxAckPending)
	}
}

// Overrides and kept definitions don't disturb who watches the registry.
func TestWatchersOfTheRegistryHearOfEntriesOnly(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	register(t, s, "tool", 16)
	changes := make(chan change, 100)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- s.Registry.WatchTools(ctx, func(t tool.Registered, deleted bool) { changes <- change{t.Name, t.Contract.Limit, deleted} }, func() { close(ready) })
	}()
	receive(t, ready, "ready")
	require.Equal(t, change{"tool", 16, false}, receive(t, changes, "tool"))
	override(t, s, "other", `{"x-orchestration":{"max_concurrency":3}}`)
	override(t, s, "tool", `{"x-orchestration":{"max_concurrency":2}}`)
	require.Equal(t, change{"tool", 2, false}, receive(t, changes, "the overridden entry"))
	override(t, s, "tool", "")
	require.Equal(t, change{"tool", 16, false}, receive(t, changes, "the cleared entry"))
	_, err := s.Registry.RemoveTool(within(t, 2*time.Minute), "tool", false)
	require.NoError(t, err)
	require.Equal(t, change{"tool", 0, true}, receive(t, changes, "the removal"))
	cancel()
	require.Error(t, receive(t, ended, "the end"))
	require.Empty(t, changes)
}

func TestARemovedToolIsGoneAndComesBackToItsShard(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	for i := range 101 {
		register(t, s, fmt.Sprint("tool", i), 1)
	}
	last := register(t, s, "tool100", 1)
	require.Equal(t, 1, last.Shard)
	a := attempt("tool100", "x")
	dispatch(t, s, kv.Dispatch{Attempt: a, Shard: last.Shard})
	b := attempt("tool100", "y")
	dispatch(t, s, kv.Dispatch{Attempt: b, Shard: last.Shard, At: time.Now().Add(time.Hour)})

	_, err := s.Registry.RemoveTool(within(t, 2*time.Minute), "tool100", false)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.ErrorContains(t, err, "2 steps of tool100 are pending")
	_, err = s.Registry.Tool(within(t, 2*time.Minute), "tool100")
	require.NoError(t, err)

	r, err := s.Registry.RemoveTool(within(t, 2*time.Minute), "tool100", true)
	require.NoError(t, err)
	require.Equal(t, kv.Removed{Name: "tool100", Pending: 2}, r)
	_, err = s.Registry.Tool(within(t, 2*time.Minute), "tool100")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = s.Registry.RemoveTool(within(t, 2*time.Minute), "tool100", true)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = s.Registry.RemoveTool(within(t, 2*time.Minute), "tool0", false)
	require.NoError(t, err)

	// There is room in the first stream, but it comes back to where its steps are.
	back := register(t, s, "tool100", 1)
	require.Equal(t, 1, back.Shard)
	_, got := pull(t, s, back, 1)
	require.Equal(t, subjects.Step(a, 1), receive(t, got, "the step that waited").Subject)
	require.Equal(t, 0, register(t, s, "another", 1).Shard)
}

func TestAnOrchestratorAnswersOverridesAndRemovals(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	asker, err := kv.Open(within(t, 2*time.Minute), natstest.Connect(t, srv))
	require.NoError(t, err)
	defer asker.Close()
	_, err = asker.Requests.RequestOverride(within(t, 100*time.Millisecond), "tool", nil)
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "nobody answers")
	answer := func(m *nats.Msg, v any, err error) {
		if err != nil {
			b, _ := json.Marshal(fault.As(err))
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{subjects.HeaderStatus: {subjects.StatusError}}, Data: b})
			return
		}
		b, _ := json.Marshal(v)
		_ = m.Respond(b)
	}
	_, err = s.Conn().Subscribe(subjects.OverrideFilter, func(m *nats.Msg) {
		o, err := s.Registry.Override(within(t, 2*time.Minute), "tool", m.Data)
		answer(m, o, err)
	})
	require.NoError(t, err)
	_, err = s.Conn().Subscribe(subjects.RemoveFilter, func(m *nats.Msg) {
		var req kv.RemoveRequest
		_ = json.Unmarshal(m.Data, &req)
		r, err := s.Registry.RemoveTool(within(t, 2*time.Minute), "tool", req.Force)
		answer(m, r, err)
	})
	require.NoError(t, err)
	register(t, s, "tool", 5)
	o, err := asker.Requests.RequestOverride(within(t, 2*time.Minute), "tool", []byte(`{"x-orchestration":{"max_concurrency":2}}`))
	require.NoError(t, err)
	require.Equal(t, 2, o.Tool.Contract.Limit)
	_, err = asker.Requests.RequestOverride(within(t, 2*time.Minute), "tool", []byte(`{"x-orchestration":{"mode":"x"}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "x")})
	_, err = asker.Requests.RequestRemove(within(t, 2*time.Minute), "tool", false)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	r, err := asker.Requests.RequestRemove(within(t, 2*time.Minute), "tool", true)
	require.NoError(t, err)
	require.Equal(t, 1, r.Pending)
}
