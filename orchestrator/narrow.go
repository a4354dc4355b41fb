package orchestrator

import (
	"context"
	"sync"

	"github.com/stepjet/stepjet/tool"
)

// What tenants override for their own runs. The registry's entries and the tools' consumers are the same for all; a run
// freezes the contract as its tenant has narrowed it.

// tenantTool names a tool of one tenant.
type tenantTool struct{ tenant, tool string }

// narrowed is what a tenant has made of a tool.
type narrowed struct {
	override *tool.Override // nil: cleared
	revision uint64
	of, as   *known // the tool as all have it, and as the tenant has it; made when it is first asked for
}

// narrow takes what a tenant overrides of a tool, unless it is older than what is known.
func (g *registry) narrow(tenant, name string, o *tool.Override, revision uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := tenantTool{tenant, name}
	if old := g.narrowed[key]; old == nil || old.revision <= revision {
		g.narrowed[key] = &narrowed{override: o, revision: revision}
	}
}

// as gives a tool as a tenant has it.
func (g *registry) as(tenant string, k *known) *known {
	if k == nil {
		return nil
	}
	key := tenantTool{tenant, k.Name}
	g.mu.RLock()
	n := g.narrowed[key]
	g.mu.RUnlock()
	if n == nil || n.override == nil {
		return k
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n.of != k {
		own := *k
		own.Contract = n.override.Narrow(k.Contract)
		own.frozen = frozen(&own.Registered)
		n.of, n.as = k, &own
	}
	return n.as
}

// followTenants follows what tenants override until ctx ends; ready is closed once what is there has been read.
func (g *registry) followTenants(ctx context.Context, ready chan<- struct{}, failed chan<- error) {
	var once sync.Once
	for ctx.Err() == nil {
		err := g.store.WatchTenantOverrides(ctx, g.narrow, func() { once.Do(func() { close(ready) }) })
		if ctx.Err() != nil {
			return
		}
		select {
		case failed <- err:
		default:
		}
		g.log.Warn("the watch of tenants' overrides ended: watching again", "error", err)
		pause(ctx, followPause)
	}
}
