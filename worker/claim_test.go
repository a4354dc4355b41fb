package worker

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func (w *world) claimOf(a subjects.Attempt) (wire.Claim, bool) {
	entry, err := w.store.Ledger.Read(context.Background(), subjects.ClaimRecord(a, 1))
	if err != nil {
		return wire.Claim{}, false
	}
	c := wire.ParseClaim(entry.Data)
	return c, c != wire.Claim{}
}

// claims is the header of a step of an at_most_once tool.
func claims(a subjects.Attempt) func(*wire.Step) {
	return func(s *wire.Step) { s.Claim = subjects.ClaimRecord(a, 1) }
}

func TestAtMostOnceClaimsFirst(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	a := subjects.Attempt{}
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "pay", func(context.Context, empty) (string, error) {
			if _, there := w.claimOf(a); !there {
				return "", errors.New("executed without a claim")
			}
			return "paid", nil
		})
	})
	a = w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a))
	r := w.result(a)
	require.Nil(t, r.Error)
	c, _ := w.claimOf(a)
	require.NotEmpty(t, c.Nonce)
	require.Equal(t, w.consumer("pay").Delivered.Stream, c.Seq, "the step's sequence")
	w.settled("pay")
}

func TestAtMostOnceAfterALostWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claim      func(seq uint64) any
		deliveries int        // at most
		code       fault.Code // of the record; empty for none
	}{
		"executed, perhaps":              {func(seq uint64) any { return wire.Claim{Nonce: "another", Seq: seq} }, 5, fault.OutcomeUnknown},
		"claimed for another message":    {func(seq uint64) any { return wire.Claim{Nonce: "another", Seq: seq + 1000} }, 5, ""},
		"claimed by who knows what":      {func(uint64) any { return "?" }, 5, ""},
		"died before it could claim":     {nil, 1, fault.WorkerLost},
		"died often, after it had begun": {func(seq uint64) any { return wire.Claim{Nonce: "another", Seq: seq} }, 1, fault.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			var calls atomic.Int32
			tools := counter("pay", &calls)
			w.register(tools)
			a := w.attempt("pay", "r", "s1")
			w.dispatch(a, `{}`, claims(a))
			w.loseDelivery("pay")
			if c.claim != nil {
				body, err := json.Marshal(c.claim(w.consumer("pay").Delivered.Stream))
				require.NoError(t, err)
				_, _, err = w.store.Ledger.Create(w.ctx(), subjects.ClaimRecord(a, 1), nats.Header{}, body, nil)
				require.NoError(t, err)
			}
			w.worker(Config{MaxDeliveries: c.deliveries}, tools)
			w.settled("pay")
			require.Zero(t, calls.Load())
			if c.code == "" {
				require.False(t, w.recorded(a))
				return
			}
			require.Equal(t, c.code, w.result(a).Error.Code)
		})
	}
}

func TestAtMostOnceIsExecutedIfNobodyBegan(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("pay", &calls)
	w.register(tools)
	a := w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a))
	w.loseDelivery("pay")
	w.worker(Config{}, tools)
	require.Nil(t, w.result(a).Error)
	require.EqualValues(t, 1, calls.Load())
}

func TestAtMostOnceOfAFinishedRun(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	w.worker(Config{}, counter("pay", &calls))
	a := w.attempt("pay", "r", "s1")
	a.Generation++ // a zombie: the plan that stands is another's
	w.dispatch(a, `{}`, claims(a))
	w.eventually(func() bool { return w.consumer("pay").Delivered.Consumer == 1 }, "not delivered")
	w.settled("pay")
	require.Zero(t, calls.Load())
	require.False(t, w.recorded(a))
	_, there := w.claimOf(a)
	require.False(t, there, "the claim is taken away again")
}

func TestAtMostOnceTimeoutIsUnknown(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	w.worker(Config{}, g.tools("pay"))
	a := w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a), func(s *wire.Step) { s.Timeout = 300 * time.Millisecond })
	r := w.result(a)
	require.Equal(t, fault.OutcomeUnknown, r.Error.Code)
	require.False(t, r.Error.Retryable)
	require.Equal(t, ErrTimeout, await(w, g.causes, "the cause"))
}

// The acknowledgement of an execution's own claim may get lost; then the claim is found, and is its own.
func TestOwnClaim(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	a := w.attempt("pay", "r", "s1")
	e, f := w.bare(counter("pay", new(atomic.Int32)))
	mine := wire.Claim{Nonce: "mine", Seq: 7}
	claimed := func(a subjects.Attempt) (*execution, bool) {
		step := w.header(a)
		step.Claim = subjects.ClaimRecord(a, 1)
		body, err := json.Marshal(mine)
		require.NoError(t, err)
		_, _, err = w.store.Ledger.Create(w.ctx(), step.Claim, nats.Header{}, body, nil)
		require.NoError(t, err)
		x := e.hold(f, a, step)
		return x, x.claimed(mine)
	}
	x, ok := claimed(a)
	require.True(t, ok)
	require.False(t, x.decided.Load())
	zombie := a
	zombie.Generation++
	x, ok = claimed(zombie)
	require.False(t, ok, "its run is over")
	require.True(t, x.decided.Load())
}
