package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/internal/bench"
)

// InFlight is what many runs that wait cost: a file of bench/.
type InFlight struct {
	Stamp
	// Runs wait for a tool that has 64 leases and gives none back.
	Runs int `json:"runs_waiting"`
	// SubmitPerSecond is how fast their plans were accepted.
	SubmitPerSecond float64 `json:"plans_per_second"`
	// MemoryMB is the resident memory of each process, in MiB, before them and with all of them there.
	Before map[string]float64 `json:"memory_before_mib"`
	With   map[string]float64 `json:"memory_with_mib"`
	// Idle and Beside are diamonds, 64 in flight, before them and beside them.
	Idle   Figures `json:"idle"`
	Beside Figures `json:"beside"`
	// Drained is how many of their steps were done a second, once the tool let them go, and what each 1,000 cost.
	Drained    float64            `json:"drained_steps_per_second"`
	DrainedCPU float64            `json:"drained_cpu_seconds_per_1000_steps"`
	PeakMB     map[string]float64 `json:"peak_memory_mib"`
	// Failed is why it did not come to its end.
	Failed string `json:"failed,omitempty"`
}

const waitingRuns = 100_000

// waitingPlan has a step before the one that waits, and one after it.
var waitingPlan = []byte(
	`{"steps":[{"id":"a","tool":"noop","arguments":{"x":1}},{"id":"b","tool":"gated","arguments":{"x":"$ref:a.x"}},{"id":"c","tool":"noop","arguments":{"x":"$ref:b.x"}}],"output_steps":["c"]}`)

func measureInFlight(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("inflight"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	f := &InFlight{Stamp: s, Runs: max(int(waitingRuns*cfg.Scale), 100)}
	if f.Failed, err = w.attempt(ctx, f.measure(ctx, w)); err != nil {
		return nil, err
	}
	f.PeakMB = w.Memory()
	w.Progress("peak: " + bench.MiB(f.PeakMB))
	return f, nil
}

func (f *InFlight) measure(ctx context.Context, w *world) (err error) {
	load := diamondShape(64, 3000)
	if _, err := w.Round(ctx, bench.Diamonds(64, 500), 0); err != nil {
		return err
	}
	if f.Idle, err = w.beside(ctx, load); err != nil {
		return err
	}
	w.Progress(fmt.Sprintf("idle:   %s", f.Idle))
	if err := w.Purged(time.Minute); err != nil {
		return err
	}
	f.Before = w.Resident()
	start := time.Now()
	runs, err := w.submitted(ctx, waitingPlan, f.Runs)
	if err != nil {
		return err
	}
	f.SubmitPerSecond = float64(f.Runs) / time.Since(start).Seconds()
	// Each leaves a plan, a start and the record of its first step.
	if err := w.records(ctx, uint64(3*f.Runs), 5*time.Minute); err != nil {
		return err
	}
	f.With = w.Resident()
	w.Progress(fmt.Sprintf("%d runs wait; %.0f plans/s; memory %s", f.Runs, f.SubmitPerSecond, bench.MiB(f.With)))
	if f.Beside, err = w.beside(ctx, load); err != nil {
		return err
	}
	w.Progress(fmt.Sprintf("beside: %s", f.Beside))
	cpu, start := w.Usage(), time.Now()
	if err := w.Conn().Publish(gate, nil); err != nil {
		return err
	}
	if err := succeeded(ctx, runs); err != nil {
		return err
	}
	f.Drained = 2 * float64(f.Runs) / time.Since(start).Seconds()
	f.DrainedCPU = (w.Usage() - cpu).Seconds() / float64(2*f.Runs) * 1000
	w.Progress(fmt.Sprintf("drained: %.0f steps/s, %.3f CPU s/1,000", f.Drained, f.DrainedCPU))
	return nil
}

// beside measures a load whose runs can't be waited for to be purged: others stay.
func (w *world) beside(ctx context.Context, s Shape) (Figures, error) {
	return w.Timed(s.Shape, func() ([]float64, []float64, error) { return w.Drive(ctx, s.Shape, 0) })
}
