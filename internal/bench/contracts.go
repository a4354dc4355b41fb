package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/leaselog"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Contracts are the figures that show tool contracts at work: docs/contracts.md.
type Contracts struct {
	Time     time.Time      `json:"time"`
	Version  string         `json:"version"`
	Machine  string         `json:"machine"`
	Leases   []Leases       `json:"leases"`
	Retrying Retrying       `json:"retrying"`
	Fairness []Fairness     `json:"fairness"`
	Batches  []Batches      `json:"batches"`
	Registry RegistryFigure `json:"registry"`
}

// Leases is how many executions of a limited tool there were at a time, from the complete log of all workers.
type Leases struct {
	Tool    string `json:"tool"`
	Limit   int    `json:"limit"`
	Workers int    `json:"workers"`
	Steps   int    `json:"steps"`
	Most    int    `json:"most_at_a_time"`
	// Seconds that all steps took, and that they would at best: steps × execution / limit.
	Seconds float64 `json:"seconds"`
	Best    float64 `json:"best_seconds"`
}

// Retrying is what happened at a tool of one slot while a step of it waited for its next attempt.
type Retrying struct {
	// Through is how many steps of other runs were executed between the two attempts.
	Through int `json:"executed_meanwhile"`
	// Pause is the time between the attempts, in milliseconds, of which AskedMS was asked for by retry_after.
	PauseMS float64 `json:"pause_ms"`
	AskedMS float64 `json:"asked_ms"`
}

// Batches is how many calls the steps of several runs made together.
type Batches struct {
	Runs  int `json:"runs"`
	Steps int `json:"steps"`
	Max   int `json:"max_items"`
	Calls int `json:"calls"`
	// Seconds for all, and for the same steps without a batch contract.
	Seconds float64 `json:"seconds"`
	Single  float64 `json:"single_seconds"`
}

// RegistryFigure is what a large registry costs.
type RegistryFigure struct {
	Tools      int     `json:"tools"`
	Streams    int     `json:"step_streams"`
	RegisterMS float64 `json:"register_ms_each"`
	ListMS     float64 `json:"list_ms"`
	ExportKB   float64 `json:"export_kb"`
	MetaKB     float64 `json:"meta_kb"`
}

// stage is a server and an orchestrator in this process.
type stage struct {
	ctx   context.Context
	srv   *embedded.Server
	log   *slog.Logger
	conns []*nats.Conn
	end   context.CancelFunc
	parts sync.WaitGroup
	ended chan error
}

func newStage(ctx context.Context, dir string, log *slog.Logger) (*stage, error) {
	srv, err := embedded.Start(embedded.Options{Dir: filepath.Join(dir, "jetstream")})
	if err != nil {
		return nil, err
	}
	s := &stage{srv: srv, log: log, ended: make(chan error, 64)}
	s.ctx, s.end = context.WithCancel(ctx)
	nc, err := s.connect()
	if err != nil {
		return s, err
	}
	orc, err := orchestrator.New(nc, orchestratorConfig(log))
	if err != nil {
		return s, err
	}
	return s, s.run(orc.Run, orc.Ready())
}

func (s *stage) connect() (*nats.Conn, error) {
	nc, err := kv.Connect(s.ctx, kv.ConnectOptions{InProcess: s.srv.InProcess(), Name: "bench", Logger: s.log})
	if err == nil {
		s.conns = append(s.conns, nc)
	}
	return nc, err
}

func (s *stage) run(part func(context.Context) error, ready <-chan struct{}) error {
	s.parts.Go(func() { s.ended <- part(s.ctx) })
	select {
	case <-ready:
		return nil
	case err := <-s.ended:
		return errors.Join(fault.New(fault.Internal, "a part ended before it was ready"), err)
	}
}

func (s *stage) worker(name string, slots int, host func(*worker.Worker) error) error {
	nc, err := s.connect()
	if err != nil {
		return err
	}
	w, err := worker.New(nc, worker.Config{Name: name, Slots: slots, Logger: s.log})
	if err != nil {
		return err
	}
	if err := host(w); err != nil {
		return err
	}
	return s.run(w.Run, w.Ready())
}

func (s *stage) client(tenant string) (*client.Client, error) {
	nc, err := s.connect()
	if err != nil {
		return nil, err
	}
	return client.New(s.ctx, nc, client.Config{Tenant: tenant})
}

func (s *stage) close() {
	s.end()
	s.parts.Wait()
	for _, nc := range s.conns {
		nc.Close()
	}
	s.srv.Shutdown()
}

// MeasureContracts measures everything that docs/contracts.md tells, in one process.
func MeasureContracts(ctx context.Context, dir string, log *slog.Logger, progress func(string)) (*Contracts, error) {
	s, err := newStage(ctx, dir, log)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	c := &Contracts{Machine: Machine()}
	for _, part := range []struct {
		name    string
		measure func(*Contracts) error
	}{
		{"fairness", s.fairness}, {"leases", s.leases}, {"retrying", s.retrying}, {"batches", s.batches}, {"registry", s.registry},
	} {
		progress(part.name)
		if err := part.measure(c); err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), err, "measuring "+part.name)
		}
	}
	return c, nil
}

func definition(name string, limit int) *tool.Definition {
	o := &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: limit}
	if limit == 1 {
		o = &tool.Orchestration{Mode: tool.SequentialOnly}
	}
	return &tool.Definition{Name: name, Orchestration: o}
}

// taking is a tool that does nothing for some time.
func taking(d time.Duration) worker.Handler {
	return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		if d > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return worker.Output{}, context.Cause(ctx)
			}
		}
		return worker.Output{Body: args}, nil
	}
}

func (s *stage) fairness(c *Contracts) error {
	tools := []struct {
		name  string
		limit int
		takes time.Duration
		runs  int
	}{
		{"does-nothing", 4096, 0, 1000}, {"takes-5ms", 64, 5 * time.Millisecond, 300}, {"takes-50ms", 8, 50 * time.Millisecond, 100},
	}
	if err := s.worker("fair", Slots, func(w *worker.Worker) error {
		for _, t := range tools {
			if err := w.HandleRaw(definition(t.name, t.limit), taking(t.takes)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	small, err := s.client("small")
	if err != nil {
		return err
	}
	defer small.Close()
	huge, err := s.client("huge")
	if err != nil {
		return err
	}
	defer huge.Close()
	for _, t := range tools {
		f, err := fairness(s.ctx, small, huge, t.name, t.runs)
		if err != nil {
			return err
		}
		f.Limit, f.TakesMS = t.limit, ms(t.takes)
		c.Fairness = append(c.Fairness, f)
	}
	return nil
}

func (s *stage) leases(c *Contracts) error {
	const workers, steps = 10, 1000
	const takes = 2 * time.Millisecond
	var log leaselog.Log
	limits := map[string]int{"limit-8": 8, "one-at-a-time": 1}
	for i := range workers {
		if err := s.worker(fmt.Sprintf("w%d", i), 64, func(w *worker.Worker) error {
			w.Use(logged(&log))
			for name, limit := range limits {
				if err := w.HandleRaw(definition(name, limit), taking(takes)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	agent, err := s.client("")
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
	c.Retrying = Retrying{Through: through, PauseMS: ms(second.Sub(first)), AskedMS: ms(asked)}
	return nil
}

func (s *stage) batches(c *Contracts) error {
	type row struct {
		N int `json:"n"`
	}
	const call = 2 * time.Millisecond // what one call costs, however many items it has
	var calls atomic.Int64
	if err := s.worker("batches", 8, func(w *worker.Worker) error {
		worker.HandleBatch(w, "write-rows", func(ctx context.Context, rows []row) ([]worker.ItemResult[row], error) {
			calls.Add(1)
			time.Sleep(call)
			out := make([]worker.ItemResult[row], len(rows))
			for i := range rows {
				out[i].Value = rows[i]
			}
			return out, nil
		}, worker.Contract(tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 512, Batch: &tool.Batch{Argument: "rows", MaxItems: 50}}))
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
		c.Batches = append(c.Batches, Batches{Runs: runs, Steps: runs * width, Max: 50, Calls: made, Seconds: together, Single: single})
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
	return fmt.Appendf(nil, `{"steps":[{"id":"rows","tool":"%s","for_each":{"in":%s},"arguments":{"n":"$ref:item"}}]}`, name, list)
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
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"the record's id"}},"required":["id"]}`),
		}
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		if _, err := store.RequestRegister(s.ctx, raw); err != nil {
			return err
		}
	}
	each := ms(time.Since(began)) / count
	began = time.Now()
	tools, err := store.Tools(s.ctx)
	if err != nil {
		return err
	}
	list := ms(time.Since(began))
	streams := map[int]bool{}
	defs := make([]*tool.Definition, len(tools))
	for i := range tools {
		streams[tools[i].Shard] = true
		defs[i] = tools[i].Definition
	}
	export, meta, err := exportSizes(defs)
	c.Registry = RegistryFigure{Tools: len(tools), Streams: len(streams), RegisterMS: each, ListMS: list, ExportKB: export, MetaKB: meta}
	return err
}

// exportSizes gives the sizes of both exports in OpenAI's form, in kB.
func exportSizes(defs []*tool.Definition) (export, meta float64, err error) {
	all, err := catalog.Export(catalog.OpenAI, defs, catalog.Options{})
	if err != nil {
		return 0, 0, err
	}
	plans, err := catalog.Meta(catalog.OpenAI, defs, catalog.Options{})
	return float64(len(all)) / 1000, float64(len(plans)) / 1000, err
}
