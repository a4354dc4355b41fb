package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stepjet/stepjet/internal/lab/journal"
)

// moment is where the number of a tool's leases changes.
type moment struct {
	at    int64
	delta int
	key   string
}

// checkLimits is I4. A lease lasts at least as long as an execution that ends in order; where a fault may have cost the
// lease, it counts up to the fault only. Several executions of one attempt hold one lease.
func (c *checker) checkLimits() {
	for name, changes := range c.leases() {
		slices.SortFunc(changes, func(a, b moment) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta))
		})
		held := map[string]int{}
		most := 0
		for _, m := range changes {
			if held[m.key] += m.delta; held[m.key] == 0 {
				delete(held, m.key)
			}
			most = max(most, len(held))
		}
		if limit := c.ev.Limits[name]; limit > 0 && most > limit {
			c.violation("I4", nil, "%d leases of %s at a time, and its limit is %d", most, name, limit)
		}
		c.report.Counts["most leases of "+name] = most
	}
}

func (c *checker) leases() map[string][]moment {
	type execution struct {
		who, key          string
		attempt, delivery int
	}
	open := map[execution]journal.Event{}
	all := map[string][]moment{}
	for _, e := range slices.SortedFunc(slices.Values(c.ev.Events), func(a, b journal.Event) int {
		return cmp.Compare(a.At, b.At)
	}) {
		x := execution{e.Who, e.Key, e.Attempt, e.Delivery}
		switch e.Kind {
		case journal.Begin:
			open[x] = e
		case journal.End:
			b, ok := open[x]
			if !ok {
				continue
			}
			delete(open, x)
			key := fmt.Sprint(e.Key, " ", e.Attempt)
			all[e.Tool] = append(all[e.Tool], moment{b.At, 1, key}, moment{max(b.At, c.leasedUntil(b, e.At)), -1, key})
		}
	}
	return all
}

// settling is how long after a fault a worker may still begin what had been handed to it before.
const settling = time.Second

// leasedUntil returns the time up to which an execution surely held its lease.
func (c *checker) leasedUntil(begin journal.Event, end int64) int64 {
	for _, f := range c.ev.Faults {
		at := f.At.UnixNano()
		switch hit := slices.Contains(f.Workers, "*") || slices.Contains(f.Workers, begin.Who); {
		case !hit || at >= end:
		case at >= begin.At:
			end = at
		case begin.At < at+int64(settling):
			return begin.At
		}
	}
	return end
}
