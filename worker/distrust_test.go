package worker

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// slowly makes an engine whose deliveries come to the test, which hands them on when it wants to, and whose pulse
// doesn't beat.
func (w *world) slowly(name string, tools func(*Worker)) (*engine, *feed, <-chan *kv.Delivery) {
	w.t.Helper()
	w.register(tools)
	e, f := w.bare(tools)
	t, err := w.store.Registry.Tool(w.ctx(), name)
	require.NoError(w.t, err)
	got := make(chan *kv.Delivery, 16)
	f.puller, err = w.store.Queue.Pull(w.ctx(), t, 4, func(d *kv.Delivery) { got <- d })
	require.NoError(w.t, err)
	close(f.pulling)
	e.tools[0].feed.Store(f)
	return e, f, got
}

// still makes an engine one that has heard nothing of its server for longer than its leases last, nor have the
// deliveries.
func (e *engine) still(all ...*kv.Delivery) {
	long := time.Now().Add(-time.Hour)
	e.pulse.confirm(long)
	for _, d := range all {
		d.Asked = long
	}
}

// Deliveries that waited while the process stood still are left to their next delivery, also one whose attempt is
// decided: others may be at work on it. What is asked for afterwards is executed.
func TestWhatWaitedWhileTheWorkerStoodStillIsNotExecuted(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	e, f, got := w.slowly("count", counter("count", &calls))
	f.ackWait = 4 * time.Second // the server's is longer: it hands nothing out anew
	a, b, c := w.attempt("count", "r", "s1"), w.attempt("count", "r", "s2"), w.attempt("count", "r", "s3")
	w.dispatch(a, `{}`)
	first := await(w, got, "the first delivery")
	w.dispatch(b, `{}`)
	second := await(w, got, "the second delivery")
	h, body := wire.Result{Body: []byte(`"another worker's"`)}.Message()
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.StepRecord(a, 1), h, body, nil)
	require.NoError(t, err)

	before := f.puller.Since()
	require.Eventually(t, func() bool { return f.stale(time.Since(before)) }, patient, 10*time.Millisecond)
	e.still()
	e.accept(f, first)
	require.True(t, f.puller.Since().After(before), "it asks anew")
	e.pulse.confirm(time.Now()) // a ping has come back before the second was looked at
	e.accept(f, second)
	require.True(t, e.open.wait(w.ctx()))
	require.Zero(t, calls.Load())
	require.False(t, w.recorded(b))
	require.Empty(t, e.live, "a delivery that can be trusted would join it")

	w.dispatch(c, `{}`)
	e.accept(f, await(w, got, "the third delivery"))
	require.Nil(t, w.result(c).Error)
	require.EqualValues(t, 1, calls.Load())
	w.eventually(func() bool { return w.consumer("count").NumAckPending == 2 }, "the leases of the first two run out by themselves")
	e.pool.close()
}

// The ping that follows a pause must not make what came before it look fresh, where that is looked at later.
func TestThePulseDistrustsBeforeItConfirms(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	e, f, got := w.slowly("count", counter("count", &calls))
	w.dispatch(w.attempt("count", "r", "s1"), `{}`)
	d := await(w, got, "the delivery")
	e.still(d)
	e.renew(context.Background())
	require.Less(t, time.Since(*e.pulse.confirmed.Load()), time.Minute)
	e.accept(f, d)
	require.True(t, e.open.wait(w.ctx()))
	require.Zero(t, calls.Load())
	e.pool.close()
}

// A step that had to wait for a free slot here was kept alive by nobody.
func TestWhatWasHeldForLongerThanItsLeaseIsNotExecuted(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	e, f, got := w.slowly("count", counter("count", &calls))
	a := w.attempt("count", "r", "s1")
	w.dispatch(a, `{}`)
	d := await(w, got, "the delivery")
	d.Held = time.Now().Add(-f.ackWait)
	e.accept(f, d)
	require.True(t, e.open.wait(w.ctx()))
	require.Zero(t, calls.Load())
	d.Held = time.Now()
	e.accept(f, d)
	require.Nil(t, w.result(a).Error)
	e.pool.close()
}

// An at_most_once step that another worker has claimed since is not declared to be of unknown outcome.
func TestADoubtedStepIsNotClaimed(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	e, f, got := w.slowly("pay", counter("pay", &calls))
	a := w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a))
	d := await(w, got, "the delivery")
	body, err := json.Marshal(wire.Claim{Nonce: "another worker's", Seq: d.StreamSeq})
	require.NoError(t, err)
	_, _, err = w.store.Ledger.Create(w.ctx(), subjects.ClaimRecord(a, 1), nil, body, nil)
	require.NoError(t, err)
	e.still(d)
	e.accept(f, d)
	require.True(t, e.open.wait(w.ctx()))
	require.Zero(t, calls.Load())
	require.False(t, w.recorded(a))
	e.pool.close()
}

// A step that waits within the worker, for a slot or an answer, doesn't begin once its lease may be over.
func TestAnExecutionWhoseLeaseHasLapsedDoesNotBegin(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	var calls atomic.Int32
	e, f := w.bare(counter("count", &calls))
	a := w.attempt("count", "r", "s1")
	x := e.hold(f, a, w.header(a))
	e.still()
	x.taken = x.taken.Add(-f.ackWait)
	x.run()
	require.True(t, e.open.wait(w.ctx()))
	require.Zero(t, calls.Load())
	require.False(t, w.recorded(a))

	y := e.hold(f, a, w.header(a))
	y.taken = y.taken.Add(-f.ackWait)
	require.False(t, y.admitted(time.Now()), "in a batch")
	require.True(t, e.open.wait(w.ctx()))
}

// Who has missed a cancel, or a record, because nothing was heard of the server finds it when a ping has come back.
func TestExecutionsThatWereDecidedMeanwhileAreCancelled(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	e, f, got := w.slowly("slow", g.tools("slow", Contract(tool.Orchestration{})))
	a, b := w.attempt("slow", "r", "s1"), w.attempt("slow", "r", "s2")
	for _, x := range []subjects.Attempt{a, b} {
		w.dispatch(x, `{}`)
		e.accept(f, await(w, got, "the delivery"))
		await(w, g.begun, "the call")
	}
	h, body := wire.Result{Body: []byte(`"another worker's"`)}.Message()
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.StepRecord(a, 1), h, body, nil)
	require.NoError(t, err)
	e.renew(w.ctx())
	require.Empty(t, g.causes, "without a reason no record is read")
	e.still()
	e.renew(w.ctx())
	require.Equal(t, ErrCancelled, await(w, g.causes, "the cancel"))
	close(g.open)
	require.Nil(t, w.result(b).Error, "the other goes on")
	w.settled("slow")
	e.pool.close()
}
