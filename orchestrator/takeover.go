package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Taking over is reading the records of partitions and opening the runs that are found there. Among them are all that
// finished within the grace, which may be thousands times those that go on. So the runs come in the order of their last
// records, the latest first: what goes on has one of a moment ago. And only some are opened at a time, so that what the
// first of them need done next isn't left waiting behind the last.

// openWide is how many runs of a cursor are opened at a time.
const openWide = 32

// caughtUp ends the replay of what was there: the runs found so far are opened, and what should be out is compared with
// what is.
func (ps *partitions) caughtUp(c *cursor, last uint64) {
	c.caughtUp, c.last = true, max(c.last, last)
	for _, r := range ps.runs.byID {
		if ps.cursors.owned[r.id.Partition()] == c && r.phase == replaying {
			c.closed = append(c.closed, r)
		}
	}
	slices.SortFunc(c.closed, func(a, b *run) int { return cmp.Or(cmp.Compare(b.lastSeq, a.lastSeq), older(a, b)) })
	ps.openNext(c)
}

// openNext opens as many runs as may be opened at a time. When none is left, the cursor's partitions are served.
func (ps *partitions) openNext(c *cursor) {
	for len(c.closed) > 0 && c.opening < openWide {
		r := c.closed[0]
		c.closed = c.closed[1:]
		if r.phase == replaying {
			c.opening++
			r.opener = c
			ps.lifecycle.open(r)
		}
	}
	if c.opening == 0 {
		c.closed = nil
		ps.tellServed()
	}
}

// leftOpening notes that a run is open, or forgotten before it was.
func (lc *lifecycle) leftOpening(r *run) {
	c := r.opener
	if c == nil {
		return
	}
	r.opener = nil
	c.opening--
	lc.post(c.next) // not here: other runs may be about to be forgotten
}

// tellServed tells which partitions have their runs at hand, if that has changed.
func (ps *partitions) tellServed() {
	var set uint64
	for p, c := range ps.cursors.owned {
		if c != nil && c.caughtUp && c.opening == 0 && len(c.closed) == 0 {
			set |= 1 << p
		}
	}
	if set != ps.served {
		ps.served = set
		ps.serves(set)
	}
}

// quietFor is how long a run that is taken over must have had no record to be taken for one that is over: then its history
// is looked for before anything else is done for it.
const quietFor = 2 * time.Second

// quiet reports whether nothing was recorded of a run lately.
func (r *run) quiet(now time.Time) bool {
	last := r.submitted
	if n := len(r.parked); n > 0 {
		last = r.parked[n-1].Time
	}
	return now.Sub(last) > quietFor
}

// ended gives the history of a run that is over; nil for one that goes on, as far as can be seen.
func (j *judge) ended(ctx context.Context, id subjects.Run, generation uint64) *outcome.Run {
	doc, err := j.store.History(ctx, id)
	if err != nil || doc.Generation != generation {
		return nil
	}
	return doc
}
