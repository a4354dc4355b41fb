package agentbench

import (
	"context"
	"fmt"
	"os"
	"runtime"
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
	// Live is what the heap of one process with a server, an orchestrator, a worker and a client in it keeps for each.
	Live float64 `json:"live_bytes_each"`
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
	f.Live, err = live(ctx, env, f.Agents)
	w.progress(fmt.Sprintf("%.0f bytes of the heap each, all in one process", f.Live))
	return f, err
}

// live measures what is kept of agents that wait in a process that has all parts.
func live(ctx context.Context, env Env, agents int) (float64, error) {
	w, err := newWorld(ctx, env, bench.Embedded)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if err := w.herd(ctx, loop{Rounds: 5, Calls: 1, Bytes: 16}, 200); err != nil { // warm up
		return 0, err
	}
	if err := w.Purged(time.Minute); err != nil {
		return 0, err
	}
	before := heap()
	for range agents {
		if _, err := w.begin(ctx, loop{Rounds: 1, Calls: 1, Bytes: 16, Waits: true}); err != nil {
			return 0, err
		}
	}
	if err := w.records(ctx, uint64(4*agents)); err != nil {
		return 0, err
	}
	return (heap() - before) / float64(agents), nil
}

// heap is what is reachable.
func heap() float64 {
	var m runtime.MemStats
	for range 2 { // what has a finalizer or lies in a pool takes two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
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
