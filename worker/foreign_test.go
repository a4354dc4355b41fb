package worker

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestNewerVersionIsLeft(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: time.Second})
	w.registrar()
	var calls atomic.Int32
	w.worker(Config{Slots: 1}, counter("count", &calls))
	newer, known := w.attempt("count", "r", "newer"), w.attempt("count", "r", "known")
	h := w.header(newer).Header()
	h[subjects.HeaderVersion] = []string{"9"} // that nobody knows yet
	w.send(kv.Dispatch{Attempt: newer, Shard: w.shard("count"), Header: h, Body: []byte(`{}`)})
	w.eventually(func() bool { return w.logs.count("newer version") >= 2 }, "not delivered and redelivered")
	w.dispatch(known, `{}`)
	require.Nil(t, w.result(known).Error, "it takes no slot")
	require.EqualValues(t, 1, calls.Load())
	require.False(t, w.recorded(newer))
	w.eventually(func() bool { // the other one is acknowledged after its record
		info := w.consumer("count")
		return info.NumAckPending+int(info.NumPending) == 1
	}, "it stays in the queue")
	require.Less(t, w.logs.count("newer version"), 10, "no spinning")
}

// What is not Stepjet's, or names what isn't its own, is removed: nothing is executed, nothing is published.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	w.worker(Config{}, counter("count", &calls))
	a, victim := w.attempt("count", "r", "s1"), w.attempt("count", "victim", "s1")
	stolen, err := w.store.Archive.PutBlob(w.ctx(), "", victim.BlobName("x"), []byte(`{"secret":1}`))
	require.NoError(t, err)
	edits := map[string]func(*wire.Step){
		"result of another step": func(s *wire.Step) { s.Result = subjects.StepRecord(victim, 1) },
		"result anywhere":        func(s *wire.Step) { s.Result = "$JS.API.STREAM.DELETE.KV_runs_0" },
		"result is the plan":     func(s *wire.Step) { s.Result = subjects.PlanRecord(a.Run, 1) },
		"no result":              func(s *wire.Step) { s.Result = "" },
		"claim anywhere":         func(s *wire.Step) { s.Claim = subjects.StepRecord(victim, 1) },
		"another's key":          func(s *wire.Step) { s.Key = victim.Key() },
		"another attempt":        func(s *wire.Step) { s.Attempt = 2 },
		"no attempt":             func(s *wire.Step) { s.Attempt = 0 },
		"another's blob":         func(s *wire.Step) { s.Handle = stolen },
		"a huge blob":            func(s *wire.Step) { s.Handle = &outcome.Handle{Name: a.BlobName("x"), Size: maxBlob + 1} },
	}
	n := 0
	for name, edit := range edits {
		n++
		step := w.header(a)
		edit(&step)
		w.foreign(subjects.Step(a, w.shard("count")), step.Header())
		w.eventually(func() bool { return w.logs.count("not Stepjet's") == n }, "%s: not refused", name)
	}
	w.foreign("step.0.count.just.some.words", w.header(a).Header())
	w.foreign(subjects.Step(a, 0), nats.Header{})
	w.eventually(func() bool { return w.logs.count("not Stepjet's") == n+2 }, "not refused")
	w.settled("count")
	require.Zero(t, calls.Load())
	require.False(t, w.recorded(a))
	require.False(t, w.recorded(victim))
	entry, err := w.store.Ledger.Read(w.ctx(), subjects.PlanRecord(a.Run, 1))
	require.NoError(t, err)
	require.Equal(t, a.Generation, entry.Seq)

	w.dispatch(a, `{}`)
	require.Nil(t, w.result(a).Error, "the true step is executed")
}

// foreign publishes to a step stream without its message id.
func (w *world) foreign(subject string, h nats.Header) {
	w.t.Helper()
	_, err := w.js.PublishMsg(&nats.Msg{Subject: subject, Header: h, Data: []byte(`{}`)})
	require.NoError(w.t, err)
}
