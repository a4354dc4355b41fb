package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/subjects"
)

// Backlog is a million steps that wait while no worker is there, an orchestrator that is killed and started again on
// them, and how they are drained: a file of bench/.
type Backlog struct {
	Stamp
	Runs  int `json:"runs"`
	Steps int `json:"steps"`
	// SubmitPerSecond is how fast the plans were accepted, StartedIn how long after the last all had been started.
	SubmitPerSecond float64 `json:"plans_per_second"`
	StartedIn       float64 `json:"all_started_after_seconds"`
	// FirstDispatch is how long after the killed orchestrator's successor was started it dispatched a step, AllAnswered
	// how long until it answered for runs of every partition. In seconds; the first holds the process's own start.
	FirstDispatch float64 `json:"restart_first_dispatch_seconds"`
	AllAnswered   float64 `json:"restart_all_partitions_seconds"`
	// Drained is steps a second from the restart to the last outcome.
	Drained float64 `json:"drained_steps_per_second"`
	CPU     float64 `json:"drained_cpu_seconds_per_1000_steps"`
	// Failed is why it did not come to its end.
	Failed string `json:"failed,omitempty"`
	// PeakMB is the most resident memory, in MiB, by process; of the orchestrator before its restart and after it.
	PeakMB map[string]float64 `json:"peak_memory_mib"`
}

const (
	backlogRuns  = 100_000
	backlogWidth = 10
	successor    = "orchestrator, restarted"
)

func measureBacklog(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
	w, err := newWorld(ctx, env, scaleLayout("backlog"), true)
	if err != nil {
		return nil, err
	}
	defer w.close()
	b := &Backlog{Stamp: s, Runs: max(int(backlogRuns*cfg.Scale), 100)}
	b.Steps = b.Runs * backlogWidth
	if b.Failed, err = w.attempt(ctx, b.measure(ctx, w)); err != nil {
		return nil, err
	}
	b.PeakMB = w.Memory()
	w.Progress("peak: " + bench.MiB(b.PeakMB))
	return b, nil
}

func (b *Backlog) measure(ctx context.Context, w *world) error {
	w.Stop(bench.RoleWorker)
	start := time.Now()
	runs, err := w.submitted(ctx, wideOf(bench.Tool, backlogWidth), b.Runs)
	if err != nil {
		return err
	}
	b.SubmitPerSecond = float64(b.Runs) / time.Since(start).Seconds()
	start = time.Now()
	if err := w.records(ctx, uint64(2*b.Runs), 5*time.Minute); err != nil {
		return err
	}
	b.StartedIn = time.Since(start).Seconds()
	w.Progress(fmt.Sprintf("%d runs of %d steps: %.0f plans/s, all started %.1f s later; memory %s", b.Runs, backlogWidth,
		b.SubmitPerSecond, b.StartedIn, bench.MiB(w.Memory())))
	cpu := w.Usage()
	if start, err = b.restart(ctx, w, runs); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "the restart on the backlog")
	}
	if err := succeeded(ctx, runs); err != nil {
		return err
	}
	b.Drained = float64(b.Steps) / time.Since(start).Seconds()
	b.CPU = (w.Usage() - cpu).Seconds() / float64(b.Steps) * 1000
	w.Progress(fmt.Sprintf("drained: %.0f steps/s, %.3f CPU s/1,000", b.Drained, b.CPU))
	return nil
}

// restart kills the orchestrator and starts another, and the worker. It returns once every partition is answered for,
// and says when the new one was started.
func (b *Backlog) restart(ctx context.Context, w *world, runs []*client.Run) (start time.Time, err error) {
	w.Kill(bench.RoleOrchestrator)
	before, err := w.dispatched()
	if err != nil {
		return start, err
	}
	if err := w.StartWorker(); err != nil {
		return start, err
	}
	start = time.Now()
	if err := w.StartOrchestrator(successor); err != nil {
		return start, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			now, err := w.dispatched()
			if err != nil {
				return err
			}
			if now > before {
				b.FirstDispatch = time.Since(start).Seconds()
				return nil
			}
			if err := wait(gctx, 20*time.Millisecond, start.Add(5*time.Minute)); err != nil {
				return err
			}
		}
	})
	g.Go(func() error {
		if err := w.answersForAll(gctx, runs, start.Add(5*time.Minute)); err != nil {
			return err
		}
		b.AllAnswered = time.Since(start).Seconds()
		return nil
	})
	err = g.Wait()
	w.Progress(fmt.Sprintf("restarted: first dispatch after %.2f s, all partitions after %.2f s", b.FirstDispatch,
		b.AllAnswered))
	return start, err
}

// oneOfEach returns the last run of each partition.
func oneOfEach(runs []*client.Run) map[int]*client.Run {
	all := map[int]*client.Run{}
	for _, r := range runs {
		all[subjects.NewRun(subjects.DefaultTenant, r.ID()).Partition()] = r
	}
	return all
}

// dispatched counts what was ever sent to workers.
func (w *world) dispatched() (uint64, error) {
	s, err := w.JS.Stream(w.Context(), subjects.StepsStream(0))
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().State.LastSeq, nil
}

// records waits until the ledger holds so many.
func (w *world) records(ctx context.Context, want uint64, within time.Duration) error {
	for until := time.Now().Add(within); ; {
		n, err := w.Records()
		if err != nil || n >= want {
			return err
		}
		if err := wait(ctx, 50*time.Millisecond, until); err != nil {
			return errors.Join(fault.New(fault.Internal, "the ledger holds %d of %d records", n, want), err)
		}
	}
}

// attempt tells why something did not come to its end: that it doesn't is a figure too, unless somebody ended it.
func (w *world) attempt(ctx context.Context, err error) (failed string, ended error) {
	if err == nil {
		return "", nil
	}
	if ctx.Err() != nil && fault.CodeOf(context.Cause(ctx)) != fault.Timeout {
		return "", err
	}
	w.Progress(err.Error())
	return err.Error(), nil
}

func wait(ctx context.Context, d time.Duration, until time.Time) error {
	if time.Now().After(until) {
		return fault.New(fault.Timeout, "it took longer than it may")
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// forgetHistory removes all finished runs.
func (w *world) forgetHistory() error {
	s, err := w.JS.Stream(w.Context(), subjects.BucketStream(subjects.HistoryBucket))
	if err != nil {
		return err
	}
	return s.Purge(w.Context())
}
