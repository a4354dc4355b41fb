package bench

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Contracts are the figures that show tool contracts at work: docs/contracts.md.
type Contracts struct {
	Time     time.Time  `json:"time"`
	Version  string     `json:"version"`
	Machine  string     `json:"machine"`
	Leases   []Leases   `json:"leases"`
	Retrying Retrying   `json:"retrying"`
	Fairness []Fairness `json:"fairness"`
	Batches  []Batches  `json:"batches"`
	// Gathering is of the same tool with several workers.
	Gathering []Gathering    `json:"gathering"`
	Registry  RegistryFigure `json:"registry"`
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

// MeasureContracts measures everything that docs/contracts.md tells, in one process.
func MeasureContracts(ctx context.Context, dir string, log *slog.Logger, progress func(string)) (*Contracts, error) {
	s, err := newStage(ctx, dir, log)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	c := &Contracts{Machine: bench.Machine()}
	for _, part := range []struct {
		name    string
		measure func(*Contracts) error
	}{
		{"fairness", s.fairness}, {"leases", s.leases}, {"retrying", s.retrying}, {"batches", s.batches},
		{"gathering", s.gathering},
		{"registry", s.registry},
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

// quick is a tool of fairness that does nothing, and quickToo another.
const (
	quick      = "does-nothing"
	quickToo   = "does-nothing-too"
	quickLimit = 4096
)

func (s *stage) fairness(c *Contracts) error {
	tools := []struct {
		name, beside string
		limit        int
		takes        time.Duration
		runs         int
	}{
		{quick, quick, quickLimit, 0, 1000}, {quick, quickToo, quickLimit, 0, 1000},
		{"takes-5ms", "takes-5ms", 64, 5 * time.Millisecond, 300},
		{"takes-50ms", "takes-50ms", 8, 50 * time.Millisecond, 100},
	}
	if err := s.worker("fair", bench.Slots, func(w *worker.Worker) error {
		err := w.HandleRaw(definition(quickToo, quickLimit), taking(0))
		for _, t := range tools {
			if t.beside != quickToo {
				err = errors.Join(err, w.HandleRaw(definition(t.name, t.limit), taking(t.takes)))
			}
		}
		return err
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
		f, err := fairness(s.ctx, small, huge, t.name, t.beside, t.runs)
		if err != nil {
			return err
		}
		f.Limit, f.TakesMS = t.limit, bench.MS(t.takes)
		c.Fairness = append(c.Fairness, f)
	}
	return nil
}
