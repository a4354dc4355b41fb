package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
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

// streams is the header of a call of a planner that may hand over steps.
func streams(a subjects.Attempt) func(*wire.Step) {
	return func(s *wire.Step) { s.Stream = subjects.ClaimRecord(a, 1) }
}

// taker is the owner of a run in what it takes of steps.
type taker struct {
	mu    sync.Mutex
	asked []wire.HandOver
	ids   chan string
}

func (k *taker) times() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.asked)
}

// takes answers what is handed over: nil is no answer, as where the owner has just gone.
func (w *world) takes(answer func(n int, h wire.HandOver) *fault.Error, silent func(n int) bool) *taker {
	w.t.Helper()
	k := &taker{ids: make(chan string, 100)}
	_, err := w.nc.Subscribe(subjects.AllStreams, func(m *nats.Msg) {
		h, err := wire.ParseHandOver(m.Data)
		k.mu.Lock()
		k.asked = append(k.asked, h)
		n := len(k.asked)
		k.mu.Unlock()
		if err != nil || silent(n) {
			return
		}
		reply := nats.NewMsg(m.Reply)
		reply.Header, reply.Data = wire.Versioned(), wire.HandedOver{}.Body()
		if f := answer(n, h); f != nil {
			reply.Header[subjects.HeaderStatus] = []string{subjects.StatusError}
			reply.Data, _ = json.Marshal(f)
		} else {
			for _, step := range h.Add {
				var s struct{ ID string }
				_ = json.Unmarshal(step, &s)
				k.ids <- s.ID
			}
		}
		_ = m.RespondMsg(reply)
	})
	require.NoError(w.t, err)
	require.NoError(w.t, w.nc.Flush())
	return k
}

func never(int) bool { return false }

// TestStepsAreHandedOverAsTheyAreWritten under a claim that is created before the first of them, which an answer without steps has none
// of. A step goes with its brace, one that refers to another once that was written; who is not answered asks again with the same.
func TestStepsAreHandedOverAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	k := w.takes(func(int, wire.HandOver) *fault.Error { return nil }, func(n int) bool { return n == 1 })
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "plan", func(ctx context.Context, in struct {
			Plain bool `json:"plain,omitempty"`
		}) (string, error) {
			s := NewStream(ctx)
			if !s.Wanted() || s.Began() || NewStream(ctx) != s {
				return "", Terminal(errors.New("it has another stream, or none"))
			}
			if in.Plain {
				s.Text("It is ")
				s.Text("sunny.")
				return "plain", nil
			}
			s.Text(`{"usage":{"input_tokens":1},"steps":[{"id":"b","tool":"find","arguments":"$ref:a"},{"id":"a","to`)
			s.Text(`ol":"find"}`)
			if got := []string{<-k.ids, <-k.ids}; !slices.Equal(got, []string{"a", "b"}) && !slices.Equal(got, []string{"b", "a"}) || !s.Began() {
				return "", Terminal(errors.New("others were handed over: " + got[0] + " " + got[1]))
			}
			s.Step(json.RawMessage(`{"id":"late","tool":"find","depends_on":["never"]}`)) // waits for what is never written
			return "done", nil
		})
	})
	plain := w.attempt("plan", "plain", "a/=0/=plan")
	w.dispatch(plain, `{"plain":true}`, streams(plain))
	require.Nil(t, w.result(plain).Error)
	_, claimed := w.claimOf(plain)
	require.False(t, claimed, "an answer of which nothing begins costs no claim")
	require.Zero(t, k.times())

	a := w.attempt("plan", "r", "a/=0/=plan")
	w.dispatch(a, `{}`, streams(a))
	require.Nil(t, w.result(a).Error)
	c, claimed := w.claimOf(a)
	require.True(t, claimed)
	k.mu.Lock()
	defer k.mu.Unlock()
	require.GreaterOrEqual(t, len(k.asked), 2)
	require.Equal(t, k.asked[0], k.asked[1], "who is not answered asks again")
	for _, h := range k.asked {
		require.Equal(t, c.Nonce, h.Nonce)
	}
}

// TestWhoIsRefusedHandsOverNothingMore, and its answer counts all the same.
func TestWhoIsRefusedHandsOverNothingMore(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	refused := make(chan struct{}, 9)
	k := w.takes(func(int, wire.HandOver) *fault.Error {
		refused <- struct{}{}
		return fault.New(fault.AlreadyFinished, "the attempt is over")
	}, never)
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "plan", func(ctx context.Context, _ empty) (string, error) {
			s := NewStream(ctx)
			s.Step(json.RawMessage(`{"id":"a","tool":"find"}`))
			<-refused
			time.Sleep(50 * time.Millisecond) // until it has heard of that
			s.Step(json.RawMessage(`{"id":"b","tool":"find"}`))
			time.Sleep(4 * handWithin)
			return "done", nil
		})
	})
	a := w.attempt("plan", "r", "a/=0/=plan")
	w.dispatch(a, `{}`, streams(a))
	require.Nil(t, w.result(a).Error)
	require.Equal(t, 1, k.times())
}

// TestAnAnswerThatALostWorkerHadBegun is written by nobody else: what it has handed over the next attempt is told. Where it had handed
// over nothing, another writes the answer, with a claim of its own before it begins.
func TestAnAnswerThatALostWorkerHadBegun(t *testing.T) {
	t.Parallel()
	for name, claimed := range map[string]bool{"it had claimed the attempt": true, "it had not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			k := w.takes(func(int, wire.HandOver) *fault.Error { return nil }, never)
			var calls atomic.Int32
			a := subjects.Attempt{}
			tools := func(worker *Worker) {
				Handle(worker, "plan", func(ctx context.Context, _ empty) (string, error) {
					calls.Add(1)
					if _, there := w.claimOf(a); !there {
						return "", Terminal(errors.New("it has begun without a claim"))
					}
					NewStream(ctx).Step(json.RawMessage(`{"id":"a","tool":"find"}`))
					<-k.ids
					return "done", nil
				})
			}
			w.register(tools)
			a = w.attempt("plan", "r", "a/=0/=plan")
			w.dispatch(a, `{}`, streams(a))
			w.loseDelivery("plan")
			if claimed {
				body, err := json.Marshal(wire.Claim{Nonce: "another", Seq: w.consumer("plan").Delivered.Stream})
				require.NoError(t, err)
				_, _, err = w.store.Ledger.Create(w.ctx(), subjects.ClaimRecord(a, 1), nats.Header{}, body, nil)
				require.NoError(t, err)
			}
			w.worker(Config{}, tools)
			r := w.result(a)
			w.settled("plan")
			if !claimed {
				require.Nil(t, r.Error)
				require.EqualValues(t, 1, calls.Load())
				return
			}
			require.Equal(t, fault.ToolFailed, r.Error.Code)
			require.Contains(t, r.Error.Message, "had begun to write this answer")
			require.Zero(t, calls.Load())
			require.Zero(t, k.times())
		})
	}
}
