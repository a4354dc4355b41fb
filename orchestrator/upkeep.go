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
		mine, ok := l.ownedNow(ctx)
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

// ownedNow asks the loop which partitions are owned; false if ctx ends first.
func (l *loop) ownedNow(ctx context.Context) (owned partitions, ok bool) {
	answer := make(chan partitions, 1)
	l.post(func() {
		var mine partitions
		for p, c := range l.owned {
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
