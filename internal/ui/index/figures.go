package index

import (
	"time"

	"github.com/stepjet/stepjet/internal/ui/index/tally"
)

// sum adds what a run that is over says of its calls. The caller holds the lock.
func (rd *Reading) sum(l *Line) {
	if len(l.calls) > 0 || len(l.Tools) > 0 {
		rd.calls.Add(l.Tenant(), l.Finished, l.calls)
	}
}

// Figures sums up what the calls of a tenant's tools came to, in the runs that ended since a moment or in the same hour;
// what is older than a day is told from up to eight hours earlier (package tally).
func (ix *Index) Figures(tenant string, since time.Time) tally.Figures {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.calls.Figures(tenant, since)
}
