package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// Floor measures what JetStream alone takes for one step, in this process: publish to the work queue, pull, create the
// record, notice it through an ordered consumer. Nothing is orchestrated, parsed, purged or announced.
func Floor(ctx context.Context, dir string, syncAlways bool, rounds int) ([]Result, error) {
	f, stop, err := newFloor(ctx, dir, syncAlways)
	if err != nil {
		return nil, err
	}
	defer stop()
	const alone, many = 2_000, 10_000
	if err := f.run(ctx, alone, 1); err != nil { // warm up
		return nil, err
	}
	one, err := f.measure(ctx, "floor: JetStream alone, one at a time", rounds, alone, 1)
	if err != nil {
		return nil, err
	}
	more, err := f.measure(ctx, "floor: JetStream alone, 64 in flight", rounds, many, 64)
	return []Result{one, more}, err
}

type floor struct {
	store *kv.Store
	tool  kv.Tool
	seen  chan struct{}
	next  int
}

func newFloor(ctx context.Context, dir string, syncAlways bool) (f *floor, stop func(), err error) {
	srv, err := embedded.Start(embedded.Options{Dir: dir, SyncAlways: syncAlways})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var closers []func()
	stop = func() {
		cancel() // first: the puller lives as long as its context
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
		srv.Shutdown()
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	stores := [2]*kv.Store{}
	for i := range stores {
		nc, err := kv.Connect(ctx, kv.ConnectOptions{InProcess: srv.InProcess(), Name: "floor"})
		if err != nil {
			return nil, nil, err
		}
		closers = append(closers, nc.Close)
		if stores[i], err = kv.Setup(ctx, nc, kv.Config{StepsAsync: true}); err != nil {
			return nil, nil, err
		}
		closers = append(closers, stores[i].Close)
	}
	f = &floor{store: stores[0], seen: make(chan struct{}, 1024)}
	if f.tool, err = f.store.Register(ctx, []byte(`{"name":"noop","x-orchestration":{"mode":"fan-out-bounded","max_concurrency":4096}}`)); err != nil {
		return nil, nil, err
	}
	if err = f.work(ctx, stores[1]); err != nil {
		return nil, nil, err
	}
	all := make([]int, subjects.Partitions)
	for i := range all {
		all[i] = i
	}
	end, err := f.store.Follow(ctx, 0, all, func(kv.Entry) { f.seen <- struct{}{} }, func(uint64) {}, func(error) {})
	if err == nil {
		closers = append(closers, end)
	}
	return f, stop, err
}

// work takes steps and records them, as a worker does, without running anything.
func (f *floor) work(ctx context.Context, s *kv.Store) error {
	started := make(chan struct{})
	var p *kv.Puller
	p, err := s.Pull(ctx, f.tool, Slots, func(d *kv.Delivery) {
		<-started
		h := nats.Header{subjects.HeaderVersion: {subjects.Version}, subjects.HeaderStatus: {subjects.StatusOK}}
		s.CreateAsync(ctx, d.Header.Get(subjects.HeaderResult), h, d.Data, nil, func(kv.Decision, uint64, error) {
			_ = d.Ack()
			p.Release()
		})
	})
	close(started)
	return err
}

// run takes so many steps through, so many at a time.
func (f *floor) run(ctx context.Context, steps, inFlight int) error {
	out := 0
	for done := 0; done < steps; {
		for ; out < inFlight && done+out < steps; out++ {
			f.next++
			a := subjects.Attempt{Run: subjects.NewRun("floor", fmt.Sprint(f.next/20)), Generation: 1, Tool: f.tool.Name, Step: fmt.Sprint("s", f.next%20), Number: 1}
			h := nats.Header{subjects.HeaderVersion: {subjects.Version}, subjects.HeaderResult: {subjects.StepRecord(a, 1)}}
			f.store.DispatchAsync(ctx, kv.Dispatch{Attempt: a, Header: h, Body: []byte(`{"x":1}`)}, func(error) {})
		}
		select {
		case <-f.seen:
			done++
			out--
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (f *floor) measure(ctx context.Context, name string, rounds, steps, inFlight int) (Result, error) {
	var times []float64
	self := os.Getpid()
	cpu := CPU(self)
	for range rounds {
		start := time.Now()
		if err := f.run(ctx, steps, inFlight); err != nil {
			return Result{}, err
		}
		times = append(times, ms(time.Since(start)))
	}
	r := Result{Shape: name, Rounds: rounds, MS: quantile(times, 0.5), CPU: (CPU(self) - cpu).Seconds() / float64(rounds*steps) * 1000}
	r.PerSecond = float64(steps) / r.MS * 1000
	if inFlight == 1 {
		r.StepP50 = r.MS / float64(steps)
		r.StepP99 = quantile(times, 0.99) / float64(steps)
	}
	return r, nil
}
