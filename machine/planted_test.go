package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// of begins a run of a plan whose every step calls a tool with this contract.
func of(t *testing.T, text string, c tool.Contract, out *machine.Effects) *machine.Run {
	t.Helper()
	p, report := plan.Parse([]byte(text), nil)
	require.NotNil(t, p, "%v", report)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: began, Started: began, Contracts: map[string]*tool.Contract{"t": &c}})
	m.Begin(out)
	return m
}

func failure(seq uint64, at time.Time, item, attempt int, message string) machine.Record {
	return machine.Record{Seq: seq, Time: at, Result: &machine.Result{
		Call: machine.Call{Step: 0, Item: item}, Attempt: attempt, Error: fault.New(fault.ToolFailed, "%s", message), Worker: "w",
	}}
}

const list = `{"steps":[{"id":"s","tool":"t","for_each":{"in":[1,2,3]},"arguments":{"x":"$ref:item"}}]}`

// TestAListFailsWithItsFirstFailedItem: the first by its place in the list, whichever failed first.
func TestAListFailsWithItsFirstFailedItem(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"in order": {1, 2, 3}, "the other way round": {3, 2, 1}} {
		var out machine.Effects
		m := of(t, list, tool.Contract{MaxAttempts: 1, Limit: 9, ErrorPropagation: tool.FailFast}, &out)
		m.Expand(0, 3, began, &out)
		for i, item := range order {
			m.Apply(failure(uint64(10+i), began, item, 1, "item "+string(rune('0'+item))), began, &out)
		}
		require.True(t, m.Finished(), name)
		err, _ := m.Failure(machine.Call{Step: 0})
		require.Equal(t, "item 0: item 1", err.Message, name)
	}
}

// TestARetryIsDueByTheLedgersTime: an owner whose clock is off, or that reads a record late, asks for the same moment.
func TestARetryIsDueByTheLedgersTime(t *testing.T) {
	t.Parallel()
	backoff := tool.Backoff{Strategy: tool.Constant, Initial: time.Minute, Max: time.Minute}
	for _, off := range []time.Duration{-time.Hour, 0, 5 * time.Second} {
		var out machine.Effects
		m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 2, Limit: 1, Backoff: backoff}, &out)
		out.Reset()
		m.Apply(failure(10, began.Add(time.Second), 0, 1, "no"), began.Add(time.Second).Add(off), &out)
		require.Len(t, out.Dispatch, 1)
		require.Equal(t, began.Add(61*time.Second), out.Dispatch[0].At)
		out.Reset()
		m.Outstanding(began.Add(time.Second).Add(off), &out)
		require.Equal(t, began.Add(61*time.Second), out.Dispatch[0].At, "the sweep asks for the same")
	}
}

// TestAStopIsAskedForUntilItStands: the request for it may be lost, with its orchestrator.
func TestAStopIsAskedForUntilItStands(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, `{"timeout":"10s","steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
	late := began.Add(11 * time.Second)
	out.Reset()
	m.Tick(late, &out)
	require.Equal(t, &machine.Stop{Reason: outcome.Expired, By: "deadline"}, out.Stop)
	for range 2 {
		out.Reset()
		m.Outstanding(late, &out)
		require.Equal(t, &machine.Stop{Reason: outcome.Expired, By: "deadline"}, out.Stop)
	}
	m.Apply(machine.Record{Seq: 20, Time: late, Stop: out.Stop}, late, &out)
	out.Reset()
	m.Outstanding(late, &out)
	require.Nil(t, out.Stop, "it stands")
	require.Len(t, out.Decide, 1)
}

// TestNoRecordAfterTheLastAttemptCounts: a record of an attempt that the contract doesn't allow is of nothing.
func TestNoRecordAfterTheLastAttemptCounts(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 2, Limit: 1}, &out)
	require.Equal(t, 2, m.MostAttempts(0))
	m.Apply(failure(10, began, 0, 1, "one"), began, &out)
	m.Apply(failure(11, began, 0, 2, "two"), began, &out)
	require.True(t, m.Finished())
	err, attempts := m.Failure(machine.Call{Step: 0})
	require.Equal(t, "two", err.Message)
	require.Equal(t, 2, attempts)
}

// TestItemsThatWereNotSentAreNoneThatFailed: under fail-fast the others of a failed item are decided as cancelled, and
// the step fails with the one that did fail.
func TestItemsThatWereNotSentAreNoneThatFailed(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, list, tool.Contract{MaxAttempts: 3, Limit: 9, ErrorPropagation: tool.FailFast}, &out)
	m.Expand(0, 3, began, &out)
	final := failure(10, began, 2, 1, "broken")
	final.Result.Error.Retryable = false
	out.Reset()
	m.Apply(final, began, &out)
	require.Len(t, out.Decide, 2, "no further attempt of the others begins")
	require.Contains(t, out.Decide[0].Error.Message, "item 1 of the step failed")
	retryable := failure(11, began, 1, 1, "again, please")
	out.Reset()
	m.Apply(retryable, began, &out)
	require.Empty(t, out.Dispatch, "nor is one tried again")
	m.Apply(machine.Record{Seq: 12, Time: began, Result: &machine.Result{Call: machine.Call{Item: 3}, Attempt: 1, Body: []byte("1")}}, began, &out)
	require.True(t, m.Finished())
	err, _ := m.Failure(machine.Call{Step: 0})
	require.Equal(t, "item 0: again, please", err.Message)
}

// TestTheWaitOfALaterAttemptCountsFromWhenItIsDue: the time that the one before took, and the pause, are none of its
// wait.
func TestTheWaitOfALaterAttemptCountsFromWhenItIsDue(t *testing.T) {
	t.Parallel()
	backoff := tool.Backoff{Strategy: tool.Constant, Initial: time.Minute, Max: time.Minute}
	var out machine.Effects
	m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 2, Limit: 1, Backoff: backoff, WaitTimeout: 10 * time.Second}, &out)
	require.Equal(t, began.Add(10*time.Second), m.StartBy(machine.Call{}))
	m.Apply(failure(10, began.Add(time.Hour), 0, 1, "no"), began.Add(time.Hour), &out)
	due := began.Add(time.Hour + time.Minute)
	require.Equal(t, due.Add(10*time.Second), m.StartBy(machine.Call{}))
	out.Reset()
	m.Tick(due.Add(9*time.Second), &out)
	require.Empty(t, out.Late)
	m.Tick(due.Add(11*time.Second), &out)
	require.Equal(t, []machine.Dispatch{{Attempt: 2}}, out.Late)
}

// TestAToolsOwnWordWhenToTryAgain: it only makes the pause longer.
func TestAToolsOwnWordWhenToTryAgain(t *testing.T) {
	t.Parallel()
	backoff := tool.Backoff{Strategy: tool.Constant, Initial: time.Minute, Max: time.Minute}
	for asked, due := range map[time.Duration]time.Duration{0: time.Minute, time.Second: time.Minute, time.Hour: time.Hour} {
		var out machine.Effects
		m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 2, Limit: 1, Backoff: backoff}, &out)
		busy := failure(10, began, 0, 1, "busy")
		busy.Result.Error.RetryAfter = asked
		out.Reset()
		m.Apply(busy, began, &out)
		require.Equal(t, began.Add(due), out.Dispatch[0].At, "%v", asked)
	}
}

// TestRetriesAreSpread: calls that fail together, items of one list among them, are not tried again together.
func TestRetriesAreSpread(t *testing.T) {
	t.Parallel()
	backoff := tool.Backoff{Strategy: tool.Constant, Initial: time.Hour, Max: time.Hour, Jitter: 1}
	due := map[time.Time]bool{}
	for _, key := range []string{"t/r/1", "t/other/2"} {
		var out machine.Effects
		p, _ := plan.Parse([]byte(list), nil)
		m := machine.New(p, machine.Start{Key: key, Submitted: began, Started: began, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 3, Limit: 9, Backoff: backoff}}})
		m.Begin(&out)
		m.Expand(0, 3, began, &out)
		out.Reset()
		for attempt := 1; attempt <= 2; attempt++ {
			for item := 1; item <= 3; item++ {
				m.Apply(failure(uint64(10*attempt+item), began, item, attempt, "no"), began, &out)
			}
		}
		for _, d := range out.Dispatch {
			due[d.At] = true
		}
	}
	require.Len(t, due, 12)
}

// TestAListThatAnotherOwnerCouldNotReadFails: the record of that stands, however well the items did and though some may
// fail.
func TestAListThatAnotherOwnerCouldNotReadFails(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, list, tool.Contract{MaxAttempts: 1, Limit: 9, ErrorPropagation: tool.PartialSuccess}, &out)
	m.Expand(0, 3, began, &out)
	out.Reset()
	unread := failure(10, began, 0, 1, "the list lies in a blob that is gone")
	unread.Result.ByOwner = true
	m.Apply(unread, began, &out)
	require.Len(t, out.Decide, 3, "its items are given up")
	for item := 1; item <= 3; item++ {
		m.Apply(machine.Record{Seq: uint64(10 + item), Time: began, Result: &machine.Result{Call: machine.Call{Item: item}, Attempt: 1, Body: []byte("1")}}, began, &out)
	}
	require.True(t, m.Finished())
	err, _ := m.Failure(machine.Call{Step: 0})
	require.NotNil(t, err)
	require.Equal(t, "the list lies in a blob that is gone", err.Message)
}

// TestTheFirstStopCounts: what stops a run says what it came to.
func TestTheFirstStopCounts(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 1, Limit: 1}, &out)
	m.Apply(machine.Record{Seq: 10, Time: began, Stop: &machine.Stop{Reason: outcome.Cancelled, By: "ann"}}, began, &out)
	m.Apply(machine.Record{Seq: 11, Time: began, Stop: &machine.Stop{Reason: outcome.Expired, By: "deadline"}}, began, &out)
	given := failure(12, began, 0, 1, "given up")
	given.Result.Error.Code = fault.Cancelled
	m.Apply(given, began, &out)
	require.True(t, m.Finished())
	require.Equal(t, outcome.Cancelled, m.Status())
	require.Equal(t, "ann", m.StoppedBy())
}
