package acl_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestAWildcardIsNoName: a server stores what is published on a subject with a literal "*". Whoever then reads or
// purges by that subject means every run there is; so a record with such a name is nobody's.
func TestAWildcardIsNoName(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	stars := subjects.Run{Tenant: "*", ID: "*"}
	var victim string // a run that a purge of all runs would hit
	for i := 0; victim == ""; i++ {
		if id := fmt.Sprint("victim-", i); subjects.NewRun("other", id).Partition() == stars.Partition() {
			victim = id
		}
	}
	r := s.busy(victim)

	nc := s.trespass("worker-search")
	forged := subjects.Attempt{Run: stars, Generation: 1 << 40, Tool: "search", Step: "*", Number: 1}
	m, err := nc.Request(subjects.StepRecord(forged, 1), []byte(`"x"`), 2*time.Minute)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"seq"`, "the server stores it")
	acme := s.trespass("agent-acme")
	_, err = acme.Request(subjects.Submit("acme", "*"), []byte(ownRecord), 2*time.Minute)
	require.NoError(t, err)

	// Records without a plan are purged some at a time: what was written when the first was gone is purged after all that
	// came before it.
	store, err := kv.Open(s.ctx(), nc)
	require.NoError(t, err)
	defer store.Close()
	for n := range uint64(2) {
		last := subjects.Attempt{Run: subjects.NewRun("acme", "gone"), Generation: 1<<40 + 1 + n, Tool: "search", Step: "a", Number: 1}
		_, _, err = store.Ledger.Create(s.ctx(), subjects.StepRecord(last, 1), nil, []byte(`"x"`), nil)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := store.Ledger.Read(s.ctx(), subjects.StepRecord(last, 1))
			return fault.CodeOf(err) == fault.NotFound
		}, 2*time.Minute, 20*time.Millisecond)
	}
	require.EqualValues(t, 1, s.holds()[subjects.PlanRecord(subjects.NewRun("other", victim), 1)], "the plan stands")
	close(s.let)
	o, err := r.Wait(s.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status)
}
