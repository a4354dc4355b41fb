package client_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func TestSubmitMakesThePlanDurable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "order/42 é", Header: nats.Header{
		"traceparent":   {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"Nats-Msg-Id":   {"mine"},
		"nats-rollup":   {"all"},
		"Stepjet-Claim": {"elsewhere"},
	}})
	require.NoError(t, err)
	require.Equal(t, "order/42 é", r.ID())
	require.False(t, r.Attached())

	e := w.record("order/42 é")
	require.Equal(t, planA, string(e.Data))
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", e.Header["traceparent"][0])
	require.Equal(t, "1", e.Header.Get(subjects.HeaderVersion))
	for name := range e.Header {
		require.NotEqual(t, "mine", e.Header[name][0])
		require.NotContains(t, []string{"nats-msg-id", "nats-rollup", "stepjet-claim"}, strings.ToLower(name))
	}
}

// A trace that is not valid would be dropped by whoever reads the plan: it need not lie in the ledger.
func TestSubmitLeavesOutWhatIsNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r", Header: nats.Header{
		"traceparent": {strings.Repeat("x", 60_000)}, "tracestate": {"a=b"}, "other": {"stays"},
	}})
	require.NoError(t, err)
	h := w.record("r").Header
	require.NotContains(t, h, "traceparent")
	require.NotContains(t, h, "tracestate")
	require.Equal(t, []string{"stays"}, h["other"])
}

func TestSubmitGeneratesRunIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := map[string]bool{}
	for range 3 {
		r, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{})
		require.NoError(t, err)
		require.False(t, r.Attached())
		require.Equal(t, planA, string(w.record(r.ID()).Data))
		seen[r.ID()] = true
	}
	require.Len(t, seen, 3)
}

func TestSubmitIsIdempotent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r"})
	require.NoError(t, err)
	generation := w.record("r").Seq

	for _, cl := range []*client.Client{w.client, w.newClient(client.Config{})} {
		again, err := cl.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r"})
		require.NoError(t, err)
		require.True(t, again.Attached())
		require.Equal(t, generation, w.record("r").Seq)

		_, err = cl.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "r"})
		require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
		require.Equal(t, planA, string(w.record("r").Data))
	}
	other := w.newClient(client.Config{Tenant: "acme"})
	r, err := other.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "r"}) // another tenant's ids are its own
	require.NoError(t, err)
	require.False(t, r.Attached())
}

// The plan record of a run that is over is purged after a while. Its id still is used.
func TestSubmitFindsFinishedRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("done", planA, resultA)

	r, err := w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "done"})
	require.NoError(t, err)
	require.True(t, r.Attached())
	out, err := r.Wait(w.ctx())
	require.NoError(t, err)
	require.Equal(t, `{"x":1.0}`, string(out.Results[0].JSON))

	_, err = w.client.Submit(w.ctx(), []byte(planB), client.SubmitOptions{Run: "done"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	_, err = w.store.Ledger.Read(w.ctx(), subjects.PlanRecord(subjects.NewRun("default", "done"), 1))
	require.Equal(t, fault.NotFound, fault.CodeOf(err), "nothing was sent")
}

func TestSubmitRefusesWhatCantBeSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := bytes.Repeat([]byte("x"), 1<<20)
	_, err := w.client.Submit(w.ctx(), large, client.SubmitOptions{})
	require.Equal(t, fault.MessageTooLarge, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "1048576")

	for _, id := range []string{strings.Repeat("x", 129)} {
		_, err = w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: id})
		require.Equal(t, fault.InvalidID, fault.CodeOf(err))
	}
	// The connection is as good as before.
	_, err = w.client.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: strings.Repeat("é", 64)})
	require.NoError(t, err)
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := client.New(ctx, nc, client.Config{})
	require.Equal(t, fault.NotReady, fault.CodeOf(err), "%v", err)
	_, err = client.New(ctx, nc, client.Config{Tenant: "a.b"})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

// While nothing can be stored, a submit keeps trying until its context ends, and says why it could not.
func TestSubmitSaysWhenTheStoreIsFull(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store, err := kv.Setup(ctx, nc, kv.Config{LedgerMaxBytes: 64 << 10})
	require.NoError(t, err)
	defer store.Close()
	cl, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	defer cl.Close()

	plan := append([]byte(planA), bytes.Repeat([]byte(" "), 40<<10)...)
	_, err = cl.Submit(ctx, plan, client.SubmitOptions{Run: "first"})
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = cl.Submit(short, plan, client.SubmitOptions{Run: "second"})
	require.Equal(t, fault.StoreFull, fault.CodeOf(err), "%v", err)

	submitted := make(chan error, 1)
	go func() {
		_, err := cl.Submit(ctx, plan, client.SubmitOptions{Run: "third"})
		submitted <- err
	}()
	require.NoError(t, store.Ledger.PurgeSubject(ctx, subjects.PlanRecord(subjects.NewRun("default", "first"), 1)))
	require.NoError(t, <-submitted, "it goes on when there is room")
}

func TestClientHasNoRightToSubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, permissions(t, `publish: {deny: ["plan.submit.default.>"]}`))
	cl, err := client.New(w.ctx(), limited(t, w.srv), client.Config{})
	require.NoError(t, err)
	defer cl.Close()
	_, err = cl.Submit(w.ctx(), []byte(planA), client.SubmitOptions{Run: "r"})
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "plan.submit.default.r")
}
