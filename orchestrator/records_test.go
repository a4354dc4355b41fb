package orchestrator

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestOwnersShareThePartitions(t *testing.T) {
	members := []string{"a1", "b2", "c3"}
	count := map[string]int{}
	for p := range 64 {
		o := owner(p, members)
		count[o]++
		// A member that goes moves its own share only.
		if o != "c3" {
			require.Equal(t, o, owner(p, members[:2]))
		}
		require.Equal(t, o, owner(p, []string{"c3", "a1", "b2"}))
	}
	for _, m := range members {
		require.Greater(t, count[m], 10, "%v", count)
	}
	require.Empty(t, owner(0, nil))
}

func TestMailboxHoldsRecordsBackButNoCompletions(t *testing.T) {
	m := newMailbox()
	for range mailboxItems + 1 {
		m.post(func() {})
	}
	entered := make(chan struct{})
	go func() {
		m.record(entryOf(1), nil)
		close(entered)
	}()
	select {
	case <-entered:
		require.Fail(t, "a record went into a full mailbox")
	case <-time.After(20 * time.Millisecond):
	}
	require.Len(t, m.take(nil), mailboxItems+1)
	<-entered
	require.Len(t, m.take(nil), 1)
}

func entryOf(n int) kv.Entry { return kv.Entry{Data: make([]byte, n)} }

func TestStepEventsSayWhatBecameOfACall(t *testing.T) {
	p, _ := plan.Parse([]byte(`{"steps":[{"id":"a","tool":"crm/get"},{"id":"b","tool":"t"}]}`), nil)
	at := time.Date(2026, 11, 20, 12, 0, 0, 1000, time.UTC)
	m := machine.New(p, machine.Start{Submitted: at, Started: at})
	var e machine.Effects
	m.Apply(machine.Record{Seq: 1, Time: at.Add(1500 * time.Microsecond), Result: &machine.Result{Call: machine.Call{Step: 0}, Attempt: 1, Body: []byte(`1`), Worker: `w "1"`, Started: at, Ended: at.Add(time.Millisecond)}}, at, &e)
	m.Apply(machine.Record{Seq: 2, Time: at.Add(2 * time.Millisecond), Result: &machine.Result{Call: machine.Call{Step: 1}, Attempt: 1, Error: fault.New(fault.ToolTerminal, "x < y"), Worker: "w"}}, at, &e)
	r := &run{identity: identity{id: subjects.NewRun("acme", "é #1")}, progress: progress{plan: p, machine: m}}
	read := func(i int) wire.StepEvent { return stepEvent(r, machine.Call{Step: i}) }
	require.Equal(t, wire.StepEvent{Run: "é #1", Step: "a", Tool: "crm/get", Status: outcome.StepSucceeded, Attempt: 1, Time: at.Add(1500 * time.Microsecond), MS: 1, QueuedMS: 0.5, Worker: `w "1"`}, read(0))
	require.Equal(t, wire.StepEvent{Run: "é #1", Step: "b", Tool: "t", Status: outcome.StepFailed, Attempt: 1, Time: at.Add(2 * time.Millisecond), QueuedMS: 2, Worker: "w", Error: fault.New(fault.ToolTerminal, "x < y")}, read(1))
}
