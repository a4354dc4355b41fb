package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator/agents"
)

// sends is an agent each of whose calls of "find" leaves an object for a sink, where that is not the same as the one before.
const sends = `"tools":[{"tool":"find","artifact":{"type":"Hit","path":"n","when":"$artifact != 5 and ($blackboard.Hit == null or $artifact != $blackboard.Hit)","sink":{"subject":"hits"}}}]`

// manySends is a round of an agent that makes so many calls, of which none is over, and each of them as it comes to be over.
func manySends(t *testing.T, calls int) (l *agents.Loop, over func(i int) agents.Call) {
	t.Helper()
	steps := make([]string, calls)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"id":"s%d","tool":"find"}`, i)
	}
	l = &agents.Loop{Definition: define(t, sends), Objects: true, Rounds: []*agents.Round{{Answer: []byte(`{"steps":[` + strings.Join(steps, ",") + `]}`)}}}
	d, err := l.Decide("a/=0")
	require.Nil(t, err)
	require.Empty(t, d.Problems)
	l.Rounds[0].Record = d
	return l, func(i int) agents.Call {
		return agents.Call{Path: fmt.Sprint("s", i), Token: fmt.Sprint("a/=0/s", i), Single: true, Seq: uint64(10 + i), Status: "succeeded", Value: fmt.Appendf(nil, `{"n":%d}`, i/2%7)}
	}
}

// TestWhoSendsLooksAtWhatIsNew: of what goes to sinks each call is looked at once, and what was sent is not asked about again: of
// ten times as many calls, each takes about as many bytes. What is to be sent is what a loop says that is read anew, also where
// a sink does not answer for a while, and where a call is taken whose record stands before those of others.
func TestWhoSendsLooksAtWhatIsNew(t *testing.T) { //nolint:paralleltest // it counts bytes
	perCall := func(calls int, same bool) (bytes, asked float64) {
		l, over := manySends(t, calls)
		sent, known := map[string]bool{}, 0
		isSent := func(o *agents.Sent) bool { known++; return sent[o.Step] }
		g := &agents.Gates{}
		g.Begin(l)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range calls {
			require.True(t, g.Add(over(i), true, 0, func(context.Context, *agents.Call) *fault.Error { return nil }))
			now, _ := g.Now()
			var to []agents.Sent
			require.Nil(t, now.Ask(t.Context(), func(l *agents.Loop) *fault.Error { to = agents.SentBy(l, isSent); return nil }))
			if same {
				anew, _ := manySends(t, calls)
				for k := range i + 1 {
					anew.Rounds[0].Calls = append(anew.Rounds[0].Calls, over(k))
				}
				want := agents.SentBy(anew, isSent)
				require.Equal(t, want, to, "behind %d", i)
				if i%5 > 2 { // the sink does not answer
					continue
				}
			}
			for _, o := range to {
				sent[o.Step] = true
			}
		}
		runtime.ReadMemStats(&after)
		require.Greater(t, len(sent), calls/3)
		require.Less(t, len(sent), calls/2+1)
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(calls), float64(known) / float64(calls)
	}
	perCall(60, true)
	few, _ := perCall(100, false)
	many, asked := perCall(1_000, false)
	t.Logf("%.0f bytes a call of 100, %.0f of 1,000", few, many)
	require.Less(t, many, 2*few)
	require.Less(t, asked, 2.1)

	l, over := manySends(t, 3)
	none := func(*agents.Sent) bool { return false }
	l.Rounds[0].Calls = []agents.Call{over(2)}
	require.Len(t, agents.SentBy(l, none), 1)
	l.Rounds[0].Calls = append(l.Rounds[0].Calls, over(0))
	to := agents.SentBy(l, none)
	require.Len(t, to, 2)
	require.Equal(t, []string{"a/=0/s0", "a/=0/s2"}, []string{to[0].Step, to[1].Step}, "in the order of the ledger")
	require.Equal(t, json.RawMessage("0"), to[0].Value)
}
