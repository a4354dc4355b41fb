package kv_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// purgeFilters returns what purges of a ledger shard are asked for from now on, in their order.
func purgeFilters(t *testing.T, nc *nats.Conn) func() []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	_, err := nc.Subscribe(subjects.StreamRequest("PURGE", subjects.LedgerStream(0)), func(m *nats.Msg) {
		var p struct{ Filter string }
		_ = json.Unmarshal(m.Data, &p)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p.Filter)
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// began writes a run's plan, its start and some of its records, and returns its generation.
func began(t *testing.T, s *kv.Store, id string, steps int) kv.Generation {
	t.Helper()
	g := kv.Generation{Run: subjects.NewRun("t", id)}
	g.Number = submit(t, s, g.Run, "{}")
	create(t, s, subjects.StartRecord(g.Run, g.Number, 1), "{}", nil)
	for i := range steps {
		create(t, s, stepRecord(g, i), "1", nil)
	}
	return g
}

func stepRecord(g kv.Generation, i int) string {
	a := subjects.Attempt{Run: g.Run, Generation: g.Number, Tool: "x", Step: fmt.Sprint("s", i), Number: 1}
	return subjects.StepRecord(a, 1)
}

// below returns what all records of a generation but the plan begin with.
func below(g kv.Generation) string {
	return strings.TrimSuffix(subjects.GenerationFilter(g.Run, g.Number, 1), ">")
}

func stored(t *testing.T, s *kv.Store) (subjectsThere []string) {
	t.Helper()
	all, err := s.Ledger.Stored(ctx(t), 0, subjects.LedgerFilter(0))
	require.NoError(t, err)
	for subject := range all {
		subjectsThere = append(subjectsThere, subject)
	}
	slices.Sort(subjectsThere)
	return subjectsThere
}

// Each record goes by its own name, the plan before all others; other runs, and a later plan of the id, stay.
func TestRunsArePurgedByTheNamesOfTheirRecords(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s := setupOn(t, srv, kv.Config{})
	stays := began(t, s, "stays", 3)
	before := stored(t, s)
	one, two := began(t, s, "one", 3), began(t, s, "two", 0)
	f, _ := follow(t, s)
	filters := purgeFilters(t, natstest.Connect(t, srv))
	require.NoError(t, s.Ledger.PurgeRuns(ctx(t), 0, []kv.Generation{one, two}, f.Life()))
	require.Equal(t, before, stored(t, s))
	require.Eventually(t, func() bool { return len(filters()) >= 5+2 }, time.Minute, time.Millisecond)
	asked := filters()
	require.Len(t, asked, 5+2)
	for _, filter := range asked {
		require.True(t, subjects.Literal(filter), filter)
	}
	plan := slices.Index(asked, subjects.PlanRecord(one.Run, 1))
	require.NotEqual(t, -1, plan)
	for i, filter := range asked {
		if rec, _ := subjects.ParseRecord(filter); rec.Run == one.Run {
			require.GreaterOrEqual(t, i, plan, "nothing before the plan")
		}
	}

	again := began(t, s, "one", 1)
	zombie := subjects.StepRecord(subjects.Attempt{Run: one.Run, Generation: one.Number, Tool: "x", Step: "late", Number: 1}, 1)
	create(t, s, zombie, "1", nil)
	require.NoError(t, s.Ledger.PurgeRuns(ctx(t), 0, []kv.Generation{one}, ""))
	left := stored(t, s)
	require.NotContains(t, left, zombie)
	require.Len(t, left, len(before)+3, "a later run of the id is not touched")
	require.NoError(t, s.Ledger.PurgeRuns(ctx(t), 0, []kv.Generation{again, stays}, f.Life()))
	require.Empty(t, stored(t, s))
}

// A huge generation, and one with a record that can't be named alone, go in one request.
func TestARunWithoutNamesIsPurgedWhole(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]func(s *kv.Store, g kv.Generation){
		"a wildcard": func(s *kv.Store, g kv.Generation) {
			create(t, s, below(g)+"step.x.*.1", "1", nil)
		},
		"very many": func(s *kv.Store, g kv.Generation) {
			for i := range 1001 {
				s.Ledger.CreateAsync(ctx(t), stepRecord(g, i), nil, []byte("1"), nil, func(kv.Decision, uint64, error) {})
			}
			require.Eventually(t, func() bool { return len(stored(t, s)) == 2+2+1001 }, time.Minute, 10*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, kv.Config{})
			began(t, s, "stays", 0)
			before := stored(t, s)
			g := began(t, s, "odd", 0)
			record(s, g)
			require.Greater(t, len(stored(t, s)), len(before)+2)
			require.NoError(t, s.Ledger.PurgeRuns(ctx(t), 0, []kv.Generation{g}, ""))
			require.Equal(t, before, stored(t, s))
		})
	}
}

// What was known of runs before the ledger's server was started anew removes nothing.
func TestRunsArePurgedInOneLifeOfTheLedger(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	g := began(t, s, "r", 1)
	err := s.Ledger.PurgeRuns(ctx(t), 0, []kv.Generation{g}, "another")
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "%v", err)
	require.Len(t, stored(t, s), 3)
}

// On three replicas the life is that of the stream's leader, whichever server one is connected to.
func TestRunsArePurgedFromThreeReplicas(t *testing.T) {
	t.Parallel()
	for _, srv := range natstest.StartCluster(t, 3) {
		s := setupOn(t, srv, kv.Config{Replicas: 3})
		f, _ := follow(t, s)
		runs := []kv.Generation{began(t, s, "one", 2), began(t, s, "two", 2)}
		require.NoError(t, s.Ledger.PurgeRuns(ctx(t), 0, runs, f.Life()))
		require.Empty(t, stored(t, s))
		f.Stop()
	}
}
