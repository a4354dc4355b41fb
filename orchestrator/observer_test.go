package orchestrator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// notes is an observer that keeps what it is told.
type notes struct {
	observe.None
	mu         sync.Mutex
	opened     []observe.Open
	dispatched []observe.Dispatch
	recorded   []observe.Record
	finished   []observe.Finish
}

func (n *notes) OnOpen(e observe.Open) { n.mu.Lock(); n.opened = append(n.opened, e); n.mu.Unlock() }
func (n *notes) OnDispatch(e observe.Dispatch) {
	n.mu.Lock()
	n.dispatched = append(n.dispatched, e)
	n.mu.Unlock()
}
func (n *notes) OnRecord(e observe.Record) {
	n.mu.Lock()
	n.recorded = append(n.recorded, e)
	n.mu.Unlock()
}
func (n *notes) OnFinish(e observe.Finish) {
	n.mu.Lock()
	n.finished = append(n.finished, e)
	n.mu.Unlock()
}

func observing(n *notes) func(*orchestrator.Config) {
	return func(c *orchestrator.Config) { c.Observer = n }
}

func TestAnObserverIsToldOfARun(t *testing.T) {
	t.Parallel()
	n := &notes{}
	s := start(t, observing(n))
	trace := wire.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	h := nats.Header{subjects.HeaderTraceparent: {trace.Parent}, subjects.HeaderTracestate: {trace.State}}
	o, err := s.client.Run(ctx(t), []byte(`{"steps":[
		{"id":"a","tool":"flaky","arguments":{}},
		{"id":"b","tool":"fail","arguments":{"v":"$ref:a"}},
		{"id":"c","tool":"echo","arguments":{"v":"$ref:a"}}]}`), client.SubmitOptions{Run: "order #42", Header: h})
	require.NoError(t, err)
	refused, err := s.client.Run(ctx(t), []byte(`{"steps":[]}`), client.SubmitOptions{Run: "refused"})
	require.NoError(t, err)
	require.Equal(t, outcome.Rejected, refused.Status)
	s.leave() // which lets the observer have everything

	run := observe.Run{
		Tenant: "default", ID: "order #42", Generation: o.Generation,
		Traceparent: trace.Parent, Tracestate: trace.State,
	}
	require.Len(t, n.opened, 1, "a run that is rejected is not opened")
	require.Equal(t, run, n.opened[0].Run)
	require.Equal(t, 3, n.opened[0].Steps)
	require.False(t, n.opened[0].Resumed)
	require.False(t, n.opened[0].Submitted.IsZero() || n.opened[0].Started.IsZero())

	attempt := func(step, tool string, number int) observe.Attempt {
		a := observe.Attempt{Run: run, Step: step, Tool: tool, Number: number}
		of := trace.Of(subjects.Attempt{
			Run: subjects.NewRun("default", "order #42"), Generation: o.Generation, Tool: tool, Step: step, Number: number,
		})
		a.Traceparent, a.Tracestate = of.Parent, of.State
		return a
	}
	all := []observe.Attempt{
		attempt("a", "flaky", 1), attempt("a", "flaky", 2), attempt("a", "flaky", 3), attempt("b", "fail", 1), attempt("c", "echo", 1),
	}
	first := map[observe.Attempt]observe.Dispatch{} // a busy machine may have some sent twice
	for _, d := range n.dispatched {
		require.NoError(t, d.Err)
		require.Positive(t, d.Bytes)
		require.False(t, d.Sent.IsZero())
		if d.Repair == 0 {
			first[d.Attempt] = d
		}
	}
	require.Len(t, first, len(all))
	records := map[observe.Attempt]observe.Record{}
	for _, r := range n.recorded {
		records[r.Attempt] = r
		require.Equal(t, "w", r.Worker)
		require.False(t, r.ByOwner)
		require.False(t, r.Ready.IsZero() || r.Started.IsZero() || r.Ended.IsZero() || r.Recorded.IsZero())
	}
	require.Len(t, n.recorded, len(all), "each record once")
	for _, a := range all {
		require.Contains(t, first, a)
		require.Contains(t, records, a)
	}
	require.True(t, records[all[0]].Again)
	require.Equal(t, fault.ToolFailed, records[all[0]].Err.Code)
	require.False(t, first[all[1]].Due.IsZero(), "after its backoff")
	require.False(t, records[all[2]].Again)
	require.Nil(t, records[all[2]].Err)
	require.EqualValues(t, len(`"at last"`), records[all[2]].Bytes)
	require.False(t, records[all[3]].Again)
	require.Equal(t, fault.ToolTerminal, records[all[3]].Err.Code)

	require.Len(t, n.finished, 2)
	end := n.finished[0]
	require.Equal(t, run, end.Run)
	require.Equal(t, outcome.Partial, end.Status)
	require.Len(t, end.Document.Steps, 3)
	require.Equal(t, 3, end.Document.Steps[0].Attempts)
	require.Empty(t, end.Document.Plan)
	require.Empty(t, end.Document.Outcome.Results)
	require.Empty(t, end.Document.Steps[2].Result)
	require.Equal(t, "refused", n.finished[1].ID)
	require.Equal(t, outcome.Rejected, n.finished[1].Status)
}

// Who takes a run over tells of what comes then, and not again of what its earlier owner has seen.
func TestAnObserverOfTheNextOwnerIsToldTheRest(t *testing.T) {
	t.Parallel()
	before, after := &notes{}, &notes{}
	s := start(t, observing(before))
	r := s.submit(`{"steps":[
		{"id":"a","tool":"echo","arguments":{}},
		{"id":"b","tool":"gate","arguments":{"v":"$ref:a"}}]}`, "handed over")
	<-s.tools.begun
	s.leave()
	s.config.Observer = after
	s.leave = s.orchestrator()
	require.Eventually(t, func() bool {
		after.mu.Lock()
		defer after.mu.Unlock()
		return len(after.opened) == 1
	}, patience, time.Millisecond)
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	s.leave()

	require.Len(t, before.opened, 1)
	require.Len(t, before.recorded, 1)
	require.Equal(t, "a", before.recorded[0].Step)
	require.Empty(t, before.finished)
	require.Len(t, after.opened, 1)
	require.True(t, after.opened[0].Resumed)
	require.Len(t, after.recorded, 1)
	require.Equal(t, "b", after.recorded[0].Step)
	require.Len(t, after.finished, 1)
}

// An observer that only panics harms nobody.
func TestAPanickingObserverHarmsNoRun(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Observer = (*broken)(nil) })
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"a","tool":"flaky","arguments":{}}]}`, "r").Status)
}

// broken is an observer without a notebook.
type broken struct{ notes }
