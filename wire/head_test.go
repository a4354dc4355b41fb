package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// TestAHeadWithCallsIsGolden: what it says of a call that succeeded, one that failed after another attempt, and one that asked.
func TestAHeadWithCallsIsGolden(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	d := &outcome.Run{Version: 1, Run: "r", Tenant: "acme", Generation: 7, Status: outcome.Partial, Submitted: t0, Started: at(1), Finished: at(900), Steps: []outcome.Step{
		{ID: "a", Tool: "search", Status: outcome.StepSucceeded, Attempts: 1, Ready: at(1), Started: at(4), Ended: at(104)},
		{ID: "b", Tool: "search", Status: outcome.StepFailed, Attempts: 2, Ready: at(1), Started: at(300), Ended: at(340), Error: fault.New(fault.Timeout, "late"), Tries: []outcome.Try{
			{Attempt: 1, Started: at(2), Ended: at(50), Code: fault.ToolFailed}, {Attempt: 2, Started: at(300), Ended: at(340), Code: fault.Timeout}}},
		{ID: "c", Tool: "book", Status: outcome.StepSucceeded, Attempts: 2, Ready: at(1), Started: at(800), Ended: at(801), Tries: []outcome.Try{
			{Attempt: 1, Started: at(9), Ended: at(12), Asked: true}, {Attempt: 2, Started: at(800), Ended: at(801)}}},
	}}
	h := wire.Documented(d, nil)
	head, ok := wire.ParseHead(h)
	require.True(t, ok)
	require.Equal(t, outcome.HeadOf(d), head)
	wiretest.Golden(t, *update, "history_calls", nats.Msg{Header: h})
}

// TestAHeadSaysWhatCallsCameTo, as long as it is short: a record has room for so many bytes of headers.
func TestAHeadSaysWhatCallsCameTo(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	doc := func(tools, calls int, name string) *outcome.Run {
		d := &outcome.Run{Run: "r", Tenant: "acme", Status: outcome.Succeeded, Submitted: t0, Finished: t0.Add(time.Hour)}
		for i := range tools {
			for k := range calls {
				d.Steps = append(d.Steps, outcome.Step{ID: fmt.Sprintf("s%d_%d", i, k), Tool: fmt.Sprint(name, i), Attempts: 1, Ready: t0,
					Started: t0.Add(1 << k * time.Microsecond), Ended: t0.Add(1 << (k + 1) * time.Microsecond)})
			}
		}
		return d
	}
	h := wire.Documented(doc(3, 2, "t"), nil)
	require.Contains(t, h.Get(subjects.HeaderHead), `"calls":{"t0":{"calls":2,"ran":{"0":2},"waited":{"0":2}},`)
	head, ok := wire.ParseHead(h)
	require.True(t, ok)
	require.Equal(t, 2, head.Calls["t2"].Calls)
	h = wire.Documented(doc(16, 33, strings.Repeat("x", 100)), nil)
	require.Less(t, len(h.Get(subjects.HeaderHead)), 8<<10)
	head, ok = wire.ParseHead(h)
	require.True(t, ok)
	require.Len(t, head.Tools, 16, "a list has what it shows")
	require.Empty(t, head.Calls)
	going := doc(1, 1, "t")
	going.Status, going.Finished = outcome.Running, time.Time{}
	require.Empty(t, outcome.HeadOf(going).Calls, "it is not over")
}
