package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Figures are those of one side in one round, or medians over rounds.
type Figures struct {
	// RunMS is the median time of a run, in milliseconds: of Stepjet's as its client sees it, from submit to outcome.
	RunMS float64 `json:"run_ms"`
	// StepMS is the median time of a run from its plan's record to its last record, by the ledger's clock, divided by
	// its depth; of the floor RunMS divided by the depth.
	StepMS float64 `json:"step_ms"`
	// Rate is steps a second.
	Rate float64 `json:"steps_per_second"`
	// CPU is the CPU seconds for each 1,000 steps over all processes. Stepjet's hold the purge of its runs.
	CPU float64 `json:"cpu_seconds_per_1000_steps"`
}

// Timed measures what do does with runs of a shape: it returns how long each run took and each of its steps, in
// milliseconds.
func (w *World) Timed(s Shape, do func() (runs, steps []float64, err error)) (f Figures, err error) {
	cpu, start := w.Usage(), time.Now()
	runs, stepTimes, err := do()
	if err != nil {
		return f, err
	}
	took := time.Since(start)
	steps := float64(len(runs) * s.Steps)
	return Figures{
		RunMS: Quantile(runs, 0.5), StepMS: Quantile(stepTimes, 0.5), Rate: steps / took.Seconds(),
		CPU: (w.Usage() - cpu).Seconds() / steps * 1000,
	}, nil
}

// Round measures a shape once: as many runs as it says, or as fit into a time that isn't zero. CPU is counted until its
// finished runs are purged; without what is used anyway while they wait for that.
func (w *World) Round(ctx context.Context, s Shape, lasting time.Duration) (Figures, error) {
	cpu, steps := w.Usage(), 0
	got, err := w.Timed(s, func() (runs, perStep []float64, err error) {
		runs, perStep, err = w.Drive(ctx, s, lasting)
		steps = len(runs) * s.Steps
		return runs, perStep, err
	})
	if err != nil {
		return got, err
	}
	ended := time.Now()
	if err := w.Purged(3 * time.Minute); err != nil {
		return got, err
	}
	got.CPU = perThousand(w.Usage()-cpu, time.Duration(w.Idle*float64(time.Since(ended))), steps)
	return got, nil
}

// perThousand is the CPU seconds for each 1,000 steps without what is used anyway. It is never below zero, which is
// what a short round comes to where the clock of /proc ticks a hundred times a second, or where the process had more to
// do while it rested than in the round.
func perThousand(used, idle time.Duration, steps int) float64 {
	return max(0, (used-idle).Seconds()/float64(steps)*1000)
}

// Rest measures what all processes use while there is nothing to do.
func (w *World) Rest(d time.Duration) {
	cpu := w.Usage()
	time.Sleep(d)
	w.Idle = (w.Usage() - cpu).Seconds() / d.Seconds()
}

// Drive takes runs of a shape through: as many as the shape says, or as fit into a time that isn't zero. It returns how
// long each run took and each of its steps, in milliseconds.
func (w *World) Drive(ctx context.Context, s Shape, lasting time.Duration) (runs, steps []float64, err error) {
	until := time.Now().Add(lasting)
	var mu sync.Mutex
	begun := 0
	more := func() bool {
		mu.Lock()
		defer mu.Unlock()
		begun++
		return lasting > 0 && time.Now().Before(until) || lasting == 0 && begun <= s.Runs
	}
	g, ctx := errgroup.WithContext(ctx)
	for range s.InFlight {
		g.Go(func() error {
			for more() {
				start := time.Now()
				o, err := one(ctx, w.Client, s.Plan)
				if err != nil {
					return err
				}
				took := MS(time.Since(start))
				mu.Lock()
				runs, steps = append(runs, took), append(steps, o.Stats.ElapsedMS/float64(s.Depth))
				mu.Unlock()
			}
			return nil
		})
	}
	return runs, steps, g.Wait()
}

func one(ctx context.Context, c *client.Client, plan []byte) (*outcome.Outcome, error) {
	o, err := c.Run(ctx, plan, client.SubmitOptions{})
	if err == nil && o.Status != outcome.Succeeded {
		err = fault.New(fault.Internal, "a benchmark run came to %s: %.500s", o.Status, o.JSON())
	}
	return o, err
}

// MS is a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// Quantile is the value below which so much of them lies, q from 0 to 1.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// median of one figure over rounds.
func median(rounds []Figures, of func(Figures) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 && n > 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return Quantile(values, 0.5)
}

// Medians are those of each figure over rounds.
func Medians(rounds []Figures) Figures {
	return Figures{
		RunMS:  median(rounds, func(f Figures) float64 { return f.RunMS }),
		StepMS: median(rounds, func(f Figures) float64 { return f.StepMS }),
		Rate:   median(rounds, func(f Figures) float64 { return f.Rate }),
		CPU:    median(rounds, func(f Figures) float64 { return f.CPU }),
	}
}

func (f Figures) String() string {
	return fmt.Sprintf("%9.3f ms a run %8.3f ms a step %8.0f steps/s %6.3f CPU s/1,000", f.RunMS, f.StepMS, f.Rate, f.CPU)
}
