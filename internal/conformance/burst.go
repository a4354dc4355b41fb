package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stepjet/stepjet/subjects"
)

const (
	burstSteps = 200
	burstSleep = 100 * time.Millisecond
)

func burst(ctx context.Context, s *stage, v *verdict) {
	limit, n := s.limit(ctx), burstSteps
	if limit < 8 {
		n = 20 * limit
	}
	r := s.newRun(ctx, "burst")
	all, heard := make([]*probe, n), make([]*ear, n)
	for i := range all {
		heard[i] = s.told()
		all[i] = s.stepOf(ctx, r, subjects.ItemToken("loop", i),
			heard[i].tell(fmt.Sprintf(`{"sleep_ms":%d,"echo":%d}`, burstSleep.Milliseconds(), i)))
	}
	leases := 0
	done := until(ctx, s.o.Patience+time.Duration(n)*burstSleep, func() bool {
		c := s.consumer(ctx)
		if c == nil {
			return false
		}
		leases = max(leases, c.NumAckPending)
		return c.NumAckPending == 0 && c.NumPending == 0
	})
	s.burstResults(ctx, v, all, heard)
	if !done {
		v.must("take the next step as soon as a slot is free, whatever became of the last one",
			"after %v not all of %d steps were acknowledged%s",
			s.o.Patience+time.Duration(n)*burstSleep, n, s.ended())
		return
	}
	if busy := s.atOnce(all); leases > 2*busy+4 {
		v.must("ask for no more messages than you have free slots: what waits in the worker counts against the tool's limit over all workers, and its lease runs",
			"it held the leases of %d steps while it worked on %d", leases, busy)
	}
}

// limit returns the tool's fan-out limit, as the worker registered it.
func (s *stage) limit(ctx context.Context) int {
	if t, err := s.store.Registry.Tool(ctx, s.tool.Name); err == nil {
		return t.Contract.Limit
	}
	return s.tool.Contract.Limit
}

// burstResults looks for steps that were lost, done twice, or mixed up.
func (s *stage) burstResults(ctx context.Context, v *verdict, all []*probe, heard []*ear) {
	missing, twice, wrong := 0, 0, 0
	for i, p := range all {
		r, ok := p.result(ctx)
		switch {
		case !ok:
			missing++
		case r.Error != nil || !sameJSON(r.Body, fmt.Append(nil, i)):
			wrong++
		}
		if s.executions(p, heard[i].count()) > 1 {
			twice++
		}
	}
	if missing > 0 {
		v.must("every step that you acknowledge needs its record", "%d of %d steps have no record", missing, len(all))
	}
	if wrong > 0 {
		v.must("keep what belongs to one step apart from the others: no state that executions share",
			"%d of %d steps have another step's result, or an error", wrong, len(all))
	}
	if twice > 0 {
		v.must("take no more than you can begin at once, and send +WPI for all that you have taken",
			"%d of %d steps were executed twice", twice, len(all))
	}
}

// atOnce returns the most executions that overlapped: each ended with its record and began so long before.
func (s *stage) atOnce(all []*probe) int {
	type edge struct {
		at    time.Time
		delta int
	}
	var edges []edge
	for _, p := range all {
		if offers := s.witness.offered(p.record()); len(offers) > 0 {
			end := offers[0].at
			edges = append(edges, edge{end.Add(-burstSleep), 1}, edge{end, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	most, now := 0, 0
	for _, e := range edges {
		now += e.delta
		most = max(most, now)
	}
	return most
}
