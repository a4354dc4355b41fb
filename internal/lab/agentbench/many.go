package agentbench

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/bench"
)

// Waiting is what agents cost that wait: a file of bench/.
type Waiting struct {
	bench.Stamp
	Agents int `json:"agents"`
	// Before and With are the resident memory of each process, in MiB, before them and with all of them there.
	Before map[string]float64 `json:"memory_before_mib"`
	With   map[string]float64 `json:"memory_with_mib"`
	// Each is the orchestrator's for one of them, in bytes: with what it has not given back after reading them.
	Each float64 `json:"orchestrator_bytes_each"`
	// Live is what the orchestrator's heap keeps of each, and Again what that of another keeps which has read them anew.
	Live  float64 `json:"live_bytes_each"`
	Again float64 `json:"live_bytes_each_read_anew"`
	// Drained is how many came to their end a second, once the gate was opened.
	Drained float64 `json:"drained_per_second"`
}

// herd runs so many agents, 64 at a time.
func (w *world) herd(ctx context.Context, l loop, agents int) error {
	if _, err := w.play(ctx, loop{Rounds: l.Rounds, Calls: l.Calls, Bytes: l.Bytes}); err != nil { // registers it
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for range agents {
		g.Go(func() error {
			_, err := w.play(ctx, l)
			return err
		})
	}
	return g.Wait()
}

func measureWaiting(ctx context.Context, env Env, scale float64, s bench.Stamp) (any, error) {
	w, err := newWorld(ctx, env, bench.Separate)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	f := &Waiting{Stamp: s, Agents: atLeast(10_000*scale, 100)}
	if err := w.herd(ctx, loop{Rounds: 5, Calls: 1, Bytes: 16}, 200); err != nil { // warm up
		return nil, err
	}
	if err := w.Purged(time.Minute); err != nil {
		return nil, err
	}
	f.Before = w.Resident()
	before, err := w.Heap(ctx, bench.RoleOrchestrator)
	if err != nil {
		return nil, err
	}
	l := loop{Rounds: 1, Calls: 1, Bytes: 16, Waits: true}
	runs := make([]*client.Run, f.Agents)
	for i := range runs {
		if runs[i], err = w.begin(ctx, l); err != nil {
			return nil, err
		}
	}
	// Each leaves a plan, a start, the planner's record and the round.
	if err := w.records(ctx, uint64(4*f.Agents)); err != nil {
		return nil, err
	}
	f.With = w.Resident()
	f.Each = (f.With[bench.RoleOrchestrator] - f.Before[bench.RoleOrchestrator]) * (1 << 20) / float64(f.Agents)
	w.progress(fmt.Sprintf("%d agents wait: %s, before %s; %.0f bytes of the orchestrator each", f.Agents, bench.MiB(f.With), bench.MiB(f.Before), f.Each))
	each := func(name string) (float64, error) {
		now, err := w.Heap(ctx, name)
		return (float64(now) - float64(before)) / float64(f.Agents), err
	}
	if f.Live, err = each(bench.RoleOrchestrator); err != nil {
		return nil, err
	}
	w.Kill(bench.RoleOrchestrator)
	if err := w.StartOrchestrator(successor); err != nil {
		return nil, err
	}
	if err := w.answered(ctx, runs); err != nil {
		return nil, err
	}
	if f.Again, err = each(successor); err != nil {
		return nil, err
	}
	w.progress(fmt.Sprintf("%.0f bytes of its heap each, %.0f of that of another that has read them anew", f.Live, f.Again))
	start := time.Now()
	if err := w.Conn().Publish(gate, nil); err != nil {
		return nil, err
	}
	for _, r := range runs {
		if _, err := came(ctx, r); err != nil {
			return nil, err
		}
	}
	f.Drained = float64(f.Agents) / time.Since(start).Seconds()
	w.progress(fmt.Sprintf("drained: %.0f agents/s", f.Drained))
	return f, nil
}

// successor is the orchestrator that reads anew what waits.
const successor = "successor"

// answered waits until each run is answered for by who has read it.
func (w *world) answered(ctx context.Context, runs []*client.Run) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for _, r := range runs {
		g.Go(func() error {
			for { // until then nobody answers for it
				if _, err := w.Client.Get(ctx, r.ID()); err == nil {
					return nil
				}
				select {
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
	}
	return g.Wait()
}

// records waits until the ledger holds so many.
func (w *world) records(ctx context.Context, want uint64) error {
	for {
		n, err := w.Records()
		if err != nil || n >= want {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the ledger holds %d of %d records: %w", n, want, context.Cause(ctx))
		}
	}
}

func atLeast(n float64, least int) int { return max(int(n), least) }

// Load is how many processes wanted a processor in the last minute; 0 where that can't be known.
func Load() (one float64) {
	raw, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(raw), &one) // 0 then
	}
	return one
}
