package worker

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type benchIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

// BenchmarkStep is the worker's own cost of a step, without network and server: from the delivery to the record being
// handed to the store. What the store adds is measured there.
func BenchmarkStep(b *testing.B) {
	w := start(b, kv.Config{})
	worker, err := New(w.nc, Config{})
	if err != nil {
		b.Fatal(err)
	}
	Handle(worker, "add", func(_ context.Context, in benchIn) (int, error) { return in.A + in.B, nil })
	tools, err := worker.begin()
	if err != nil {
		b.Fatal(err)
	}
	e := newEngine(worker, tools, w.store)
	defer e.pulse.ticker.Stop()
	f := &feed{tool: tools[0], ackWait: time.Minute, pulling: make(chan struct{})}
	a := subjects.Attempt{Run: subjects.NewRun("acme", "order-42"), Generation: 7, Tool: "add", Step: "s1", Number: 1}
	step := w.header(a)
	step.Timeout, step.Deadline = 5*time.Minute, time.Now().Add(168*time.Hour)
	h := step.Header()
	subject := subjects.Step(a, 0)
	b.ReportAllocs()
	for b.Loop() {
		d := &kv.Delivery{Subject: subject, Header: h, Data: []byte(`{"a":1,"b":2}`), Delivered: 1}
		got, parsed, err := e.read(f, d)
		if err != nil {
			b.Fatal(err)
		}
		x := e.newExecution(f, d, got, parsed)
		x.parts.Store(100) // there is no slot to give back
		e.enter(x)
		x.decided.Store(true) // the record goes nowhere
		now := time.Now()
		x.startClock(now)
		x.began.Store(now.UnixNano())
		if f := checkArguments(tools[0].schema, x.args); f != nil {
			b.Fatal(f)
		}
		x.call()
		_, _ = x.result.Message()
		x.leave()
		e.forget(x)
		e.open.done()
	}
}

// BenchmarkThroughput drives steps through a real server on disk, all in this process: server, dispatch and worker.
func BenchmarkThroughput(b *testing.B) {
	w := start(b, kv.Config{StepsAsync: true})
	w.registrar()
	w.launch(natstest.Connect(b, w.srv), Config{Slots: 256}, func(worker *Worker) {
		Handle(worker, "add", func(_ context.Context, in benchIn) (int, error) { return in.A + in.B, nil })
	}).awaitReady()
	shard := w.shard("add")
	records := make(chan struct{}, b.N)
	if _, err := w.nc.Subscribe(subjects.LedgerPrefix(0)+"*.*.*.*.step.>", func(*nats.Msg) { records <- struct{}{} }); err != nil {
		b.Fatal(err)
	}
	a := w.attempt("add", "bench", "s0")
	inflight := make(chan struct{}, 512)
	b.ResetTimer()
	began := cpu()
	go func() {
		for i := range b.N {
			inflight <- struct{}{}
			a.Step = fmt.Sprint("s", i)
			step := w.header(a)
			w.store.Queue.DispatchAsync(context.Background(), kv.Dispatch{Attempt: a, Shard: shard, Header: step.Header(), Body: []byte(`{"a":1,"b":2}`)}, func(error) {})
		}
	}()
	for range b.N {
		<-records
		<-inflight
	}
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/step")
}
