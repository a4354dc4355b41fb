package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/tool"
)

// asksOf is the record of an attempt that asks.
func asksOf(seq uint64, attempt int, question string) machine.Record {
	return machine.Record{Seq: seq, Time: began, Result: &machine.Result{
		Attempt: attempt, Worker: "w", Asks: &machine.Asks{Body: fmt.Appendf(nil, `{"question":%q}`, question)},
	}}
}

// A tool asks at most so often, each time under another number and with a digest of its own, though it asks the same.
func TestAToolAsksAtMostSoOften(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 1, Limit: 1, Asks: true}, &out)
	require.Equal(t, 1+machine.MaxAsked, m.MostAttempts(0))
	digests := map[string]bool{}
	seq := uint64(10)
	for n := 1; n <= machine.MaxAsked; n++ {
		require.Equal(t, machine.MaxAsked-n+1, machine.MayAsk(m, machine.Call{}))
		m.Apply(asksOf(seq, n, "the same"), began, &out)
		q := m.Question(machine.Call{})
		require.Equal(t, n, q.Number)
		digests[q.Digest] = true
		m.Apply(machine.Record{Seq: seq + 1, Time: began, Answer: &machine.Answer{Number: n, Digest: q.Digest, Value: []byte("1")}}, began, &out)
		seq += 2
	}
	require.Len(t, digests, machine.MaxAsked)
	m.Apply(asksOf(seq, machine.MaxAsked+1, "the same"), began, &out)
	require.True(t, m.Finished())
	err, attempts := m.Failure(machine.Call{})
	require.Equal(t, fault.ToolTerminal, err.Code)
	require.Contains(t, err.Message, "17th time")
	require.Equal(t, machine.MaxAsked+1, attempts)
	tries := machine.Tries(m)[machine.Call{}]
	require.Len(t, tries, machine.MaxAsked+1)
	for _, try := range tries[:machine.MaxAsked] {
		require.True(t, try.Asked)
		require.Empty(t, try.Code)
	}
	require.False(t, tries[machine.MaxAsked].Asked, "it may not ask any more")
	require.Equal(t, fault.ToolTerminal, tries[machine.MaxAsked].Code)
}

// TestAnOnlyTryIsListedWhereItAsked, though nobody answered: else nobody knew how long it ran, and how long a person took.
func TestAnOnlyTryIsListedWhereItAsked(t *testing.T) {
	t.Parallel()
	for _, may := range []bool{true, false} {
		var out machine.Effects
		m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 1, Limit: 1, Asks: may}, &out)
		m.Apply(asksOf(10, 1, "which?"), began, &out)
		if may {
			q := m.Question(machine.Call{})
			m.Apply(machine.Record{Seq: 11, Time: began, Answer: &machine.Answer{Number: 1, Digest: q.Digest, Error: fault.New(fault.Rejected, "no")}}, began, &out)
		}
		require.True(t, m.Finished())
		tries := machine.Tries(m)[machine.Call{}]
		if !may {
			require.Empty(t, tries, "it failed, as any")
			continue
		}
		require.Len(t, tries, 1)
		require.True(t, tries[0].Asked)
	}
}

// What is asked is named by the run, the call, the attempt and all that the record says. So an answer is to nothing else.
func TestADigestIsOfOneInquiry(t *testing.T) {
	t.Parallel()
	ask := func(attempt int, question string) string {
		var out machine.Effects
		m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 2, Limit: 1, Asks: true}, &out)
		if attempt > 1 {
			m.Apply(failure(10, began, 0, 1, "no"), began, &out)
		}
		m.Apply(asksOf(11, attempt, question), began, &out)
		return m.Question(machine.Call{}).Digest
	}
	require.Equal(t, ask(1, "a"), ask(1, "a"), "every owner comes to the same")
	require.NotEqual(t, ask(1, "a"), ask(1, "b"))
	require.NotEqual(t, ask(1, "a"), ask(2, "a"))
}

// An answer that is too long for a step's message is none.
func TestALongAnswerIsNoneToATool(t *testing.T) {
	t.Parallel()
	var out machine.Effects
	m := of(t, `{"steps":[{"id":"s","tool":"t"}]}`, tool.Contract{MaxAttempts: 1, Limit: 1, Asks: true}, &out)
	m.Apply(asksOf(10, 1, "a"), began, &out)
	q := m.Question(machine.Call{})
	long := append(append([]byte{'"'}, make([]byte, machine.MaxAnswer)...), '"')
	m.Apply(machine.Record{Seq: 11, Time: began, Answer: &machine.Answer{Number: 1, Digest: q.Digest, Value: long}}, began, &out)
	require.Equal(t, 2, m.Question(machine.Call{}).Number, "it is void, and the question is asked anew")
}
