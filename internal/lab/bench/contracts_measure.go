package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/leaselog"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func (s *stage) leases(c *Contracts) error {
	const workers, steps = 10, 1000
	const takes = 2 * time.Millisecond
	var log leaselog.Log
	limits := map[string]int{"limit-8": 8, "one-at-a-time": 1}
	agent, err := s.staff(workers, "w", 64, func(w *worker.Worker) error {
		w.Use(logged(&log))
		for name, limit := range limits {
			if err := w.HandleRaw(definition(name, limit), taking(takes)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer agent.Close()
	for _, name := range []string{"limit-8", "one-at-a-time"} {
		began := time.Now()
		g, ctx := errgroup.WithContext(s.ctx)
		for range 4 { // several runs at a time
			g.Go(func() error { return succeed(ctx, agent, wideOf(name, steps/4)) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		c.Leases = append(c.Leases, Leases{
			Tool: name, Limit: limits[name], Workers: workers, Steps: steps, Most: leaselog.Max(log.Entries(name)),
			Seconds: time.Since(began).Seconds(), Best: (steps * takes / time.Duration(limits[name])).Seconds(),
		})
	}
	return nil
}

func logged(log *leaselog.Log) func(worker.Handler) worker.Handler {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			info, _ := worker.InfoFrom(ctx)
			defer log.Begin(leaselog.Entry{Tool: info.Tool, Worker: info.Worker, Key: info.Key})()
			return next(ctx, args)
		}
	}
}

// retrying lets a step fail once at a tool with one slot, and sees what that tool does until the second attempt.
func (s *stage) retrying(c *Contracts) error {
	const asked = 500 * time.Millisecond
	var mu sync.Mutex
	var first, second time.Time
	var through int
	if err := s.worker("retrying", 4, func(w *worker.Worker) error {
		d := definition("one-slot", 1)
		d.Orchestration.Retry = &tool.Retry{MaxAttempts: 2}
		return w.HandleRaw(d, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			info, _ := worker.InfoFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case info.Step == "fails" && info.Attempt == 1:
				first = time.Now()
				return worker.Output{}, worker.RetryAfter(errors.New("later, please"), asked)
			case info.Step == "fails":
				second = time.Now()
			case !first.IsZero() && second.IsZero():
				through++
			}
			return worker.Output{Body: args}, nil
		})
	}); err != nil {
		return err
	}
	agent, err := s.client("")
	if err != nil {
		return err
	}
	defer agent.Close()
	r, err := agent.Submit(s.ctx, []byte(`{"steps":[{"id":"fails","tool":"one-slot"}]}`), client.SubmitOptions{})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := succeed(s.ctx, agent, wideOf("one-slot", 1)); err != nil {
			return err
		}
		mu.Lock()
		over := !second.IsZero()
		mu.Unlock()
		if over {
			break
		}
	}
	if _, err := r.Wait(s.ctx); err != nil {
		return err
	}
	c.Retrying = Retrying{Through: through, PauseMS: bench.MS(second.Sub(first)), AskedMS: bench.MS(asked)}
	return nil
}

func (s *stage) batches(c *Contracts) error {
	type row struct {
		N int `json:"n"`
	}
	const call = 2 * time.Millisecond // what one call costs, however many items it has
	var calls atomic.Int64
	if err := s.worker("batches", 8, func(w *worker.Worker) error {
		worker.HandleBatch(w, "write-rows", func(_ context.Context, rows []row) ([]worker.ItemResult[row], error) {
			calls.Add(1)
			time.Sleep(call)
			out := make([]worker.ItemResult[row], len(rows))
			for i := range rows {
				out[i].Value = rows[i]
			}
			return out, nil
		}, worker.Contract(tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 512,
			Batch: &tool.Batch{Argument: "rows", MaxItems: 50}}))
		return w.HandleRaw(definition("write-row", 512), taking(call))
	}); err != nil {
		return err
	}
	agent, err := s.client("")
	if err != nil {
		return err
	}
	defer agent.Close()
	for _, runs := range []int{1, 20} {
		const width = 100
		measure := func(name string) (float64, error) {
			began := time.Now()
			g, ctx := errgroup.WithContext(s.ctx)
			for range runs {
				g.Go(func() error { return succeed(ctx, agent, rowsPlan(name, width)) })
			}
			err := g.Wait()
			return time.Since(began).Seconds(), err
		}
		calls.Store(0)
		together, err := measure("write-rows")
		if err != nil {
			return err
		}
		made := int(calls.Load())
		single, err := measure("write-row")
		if err != nil {
			return err
		}
		c.Batches = append(c.Batches, Batches{Runs: runs, Steps: runs * width, Max: 50, Calls: made, Seconds: together,
			Single: single})
	}
	return nil
}

// rowsPlan runs a tool once for each of many rows.
func rowsPlan(name string, width int) []byte {
	rows := make([]int, width)
	for i := range rows {
		rows[i] = i
	}
	list, _ := json.Marshal(rows) // numbers can't fail
	return fmt.Appendf(nil, `{"steps":[{"id":"rows","tool":"%s","for_each":{"in":%s},"arguments":{"n":"$ref:item"}}]}`,
		name, list)
}

func (s *stage) registry(c *Contracts) error {
	const count = 300
	nc, err := s.connect()
	if err != nil {
		return err
	}
	store, err := kv.Open(s.ctx, nc)
	if err != nil {
		return err
	}
	defer store.Close()
	began := time.Now()
	for i := range count {
		d := &tool.Definition{
			Name: fmt.Sprintf("crm.tool_%03d", i), Description: "Looks one record up by its id and gives its fields.",
			InputSchema: json.RawMessage(
				`{"type":"object","properties":{"id":{"type":"string","description":"the record's id"}},"required":["id"]}`),
		}
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		if _, err := store.Requests.RequestRegister(s.ctx, raw); err != nil {
			return err
		}
	}
	each := bench.MS(time.Since(began)) / count
	began = time.Now()
	tools, err := store.Registry.Tools(s.ctx)
	if err != nil {
		return err
	}
	list := bench.MS(time.Since(began))
	streams := map[int]bool{}
	defs := make([]*tool.Definition, len(tools))
	for i := range tools {
		streams[tools[i].Shard] = true
		defs[i] = tools[i].Definition
	}
	export, meta, err := exportSizes(defs)
	c.Registry = RegistryFigure{Tools: len(tools), Streams: len(streams), RegisterMS: each, ListMS: list, ExportKB: export,
		MetaKB: meta}
	return err
}

// exportSizes returns the sizes of both exports in OpenAI's form, in kB.
func exportSizes(defs []*tool.Definition) (export, meta float64, err error) {
	all, err := catalog.Export(catalog.OpenAI, defs, catalog.Options{})
	if err != nil {
		return 0, 0, err
	}
	plans, err := catalog.Meta(catalog.OpenAI, defs, catalog.Options{})
	return float64(len(all)) / 1000, float64(len(plans)) / 1000, err
}
