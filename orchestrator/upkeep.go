package orchestrator

import (
	"context"
	"time"

	"github.com/stepjet/stepjet/kv"
)

// upkeep lets package kv mend, at every sweep's interval, what somebody took from under the running system: streams,
// consumers of tools, registrations. Of several orchestrators each looks after the tools whose names lie in its
// partitions, so that the work is shared out and passes on with them.
func (o *Orchestrator) upkeep(ctx context.Context, l *loop, u *kv.Upkeep) {
	ticker := time.NewTicker(o.cfg.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		mine, ok := l.partitions.snapshot(ctx)
		if !ok {
			return
		}
		mended, err := u.Check(ctx, func(p int) bool { return mine[p] })
		for _, what := range mended {
			o.cfg.Logger.Warn("mended", "what", what)
		}
		if err != nil && ctx.Err() == nil {
			o.cfg.Logger.Error("something that is missing could not be mended; it is tried again", "error", err)
		}
	}
}

// lookAtSteps lets the loop know when a step stream lost what lay in it.
func (o *Orchestrator) lookAtSteps(ctx context.Context, l *loop, u *kv.Upkeep) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		lost, err := u.Look(ctx)
		if len(lost) > 0 {
			o.cfg.Logger.Warn("step streams lost what lay in them: it is compared with what should be out", "shards", lost)
			l.post(l.reconciler.stepsLost)
		}
		if err != nil && ctx.Err() == nil {
			o.cfg.Logger.Warn("can't see whether step streams lost what lay in them", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// ownedNow asks the loop which partitions are owned; false if ctx ends first.
func (ps *partitions) snapshot(ctx context.Context) (owned partitionSet, ok bool) {
	answer := make(chan partitionSet, 1)
	ps.post(func() {
		var mine partitionSet
		for p, c := range ps.cursors.owned {
			mine[p] = c != nil
		}
		answer <- mine
	})
	select {
	case owned = <-answer:
		return owned, true
	case <-ctx.Done():
		return owned, false
	}
}
