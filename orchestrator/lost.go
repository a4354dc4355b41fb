package orchestrator

import (
	"context"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// A plan is rejected for good, so it must not be rejected for tools that nobody removed: where the registry was emptied, or
// tools vanished from it without a mark, plans that name an unknown tool wait. Workers register again by themselves.

// vanishedFor is how long a tool that vanished may take to be registered again. Whoever is looked after by no worker and by
// no orchestrator that remembers it until then is unknown.
const vanishedFor = time.Minute

// unknownTools reports whether a plan has problems with tools that nobody knows.
func unknownTools(problems []fault.Problem) bool {
	return slices.ContainsFunc(problems, func(p fault.Problem) bool { return p.Code == fault.UnknownTool })
}

// lost reports whether the registry may not be taken at its word when it says that it has no such tool.
func (g *registry) lost(ctx context.Context, missing []string) bool {
	g.mu.RLock()
	vanished := slices.ContainsFunc(missing, func(name string) bool {
		at, was := g.vanished[name]
		return was && time.Since(at) < vanishedFor
	})
	g.mu.RUnlock()
	if vanished {
		return true
	}
	emptied, err := g.store.RegistryEmptied(ctx)
	if err != nil {
		g.log.Warn("can't see whether the tool registry was emptied", "error", err)
	}
	return emptied
}

// sayLost tells the log, now and then, why plans wait.
func (lc *lifecycle) sayLost() {
	if now := lc.clock.Now(); now.Sub(lc.saidLost) > 10*time.Second {
		lc.saidLost = now
		lc.log.Warn("the tool registry has lost tools that were registered: plans that name them wait until workers, or stepjet tools apply, register them again")
	}
}
