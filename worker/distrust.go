package worker

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/kv"
)

// A worker that stood still (SIGSTOP, a suspended machine), or whose connection did, finds deliveries waiting for it
// whose leases may have run out meanwhile. Their steps are in other hands or done, and no message says how old it is:
// the count of such a delivery is still 1. Two things bound its age:
//
//   - it was handed out after the request that it came of was sent (Delivery.Asked);
//   - it was handed out after the last ping that the server has answered (pulse.confirmed), for what was handed out before has come
//     before the answer.
//
// A delivery that may be older than two thirds of its lease is doubted, and neither executed nor acknowledged: the next
// delivery decides. The answer to the next ping says that all is in order again, but what came before it may still wait
// its turn within this process. So before that answer counts the feed asks anew, on a new inbox, and whatever was asked
// for earlier stays doubted.

// passed is the time between two moments, by the clock that says more: while a machine is suspended the monotonic one
// stands still.
func passed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// stale reports whether a delivery of that age is too old for the next heartbeat to be sure to keep its lease.
func (f *feed) stale(age time.Duration) bool { return age >= f.ackWait*2/3 }

// doubtful reports whether the lease of a delivery that has just come may have run out. It doesn't wait.
func (e *engine) doubtful(f *feed, d *kv.Delivery, now time.Time) bool {
	age := min(passed(d.Asked, now), passed(*e.pulse.confirmed.Load(), now))
	if f.stale(age) {
		e.distrustFeed(f, now)
		return true
	}
	if woken := f.woken.Load(); woken != nil && d.Asked.Before(*woken) {
		return true
	}
	if !d.Held.IsZero() && f.stale(passed(d.Held, now)) {
		return true
	}
	if age >= f.ackWait/2 { // the pulse may come too late for it
		if err := d.InProgress(); err != nil {
			e.log.Debug("a heartbeat could not be sent", "subject", d.Subject, "error", err)
		}
	}
	return false
}

// distrust does distrustFeed for all feeds, and returns those for which there was reason to.
func (e *engine) distrust(now time.Time) (stale []*feed) {
	for _, h := range e.tools {
		if f := h.feed.Load(); f != nil && e.distrustFeed(f, now) {
			stale = append(stale, f)
		}
	}
	return stale
}

// distrustFeed has all doubted that a feed has asked for so far, where the server has not been heard for so long that
// leases may have run out. It reports whether that is so.
func (e *engine) distrustFeed(f *feed, now time.Time) bool {
	quiet := passed(*e.pulse.confirmed.Load(), now)
	if !f.stale(quiet) {
		return false
	}
	select {
	case <-f.pulling:
	default:
		return true // what it has asked for is a moment old
	}
	since := f.puller.Since()
	if !f.stale(passed(since, now)) { // it has turned to a new inbox since: after a reconnect, for instance
		f.woken.Store(&since)
		return true
	}
	f.woken.Store(&now)
	if e.w.nc.IsConnected() { // else it asks anew when it is again
		e.log.Warn("this worker, or its connection, stood still; what was handed out to it before is not trusted", "tool",
			f.tool.def.Name,
			"wait", quiet)
		f.puller.Anew()
	}
	return true
}

// lapsed reports whether the lease has not been renewed for as long as it lasts, less a margin for the way to the
// server.
func (x *execution) lapsed(now time.Time) bool {
	since := x.taken
	if confirmed := *x.e.pulse.confirmed.Load(); confirmed.After(since) {
		since = confirmed
	}
	age := now.Sub(since) // of a handler at work: it is not cancelled because somebody has set the clock
	if x.began.Load() == 0 {
		age = passed(since, now)
	}
	return age >= x.feed.ackWait-x.feed.ackWait/12
}

// holds reports whether the server surely counts the step as this worker's still: since it was handed out its lease was
// always renewed in time.
func (x *execution) holds(now time.Time) bool {
	since := *x.e.pulse.confirmed.Load()
	if x.asked.After(since) {
		since = x.asked
	}
	return !x.doubted && !x.unheld.Load() && passed(since, now) < x.feed.ackWait-x.feed.ackWait/12
}

// leaveDoubted leaves a doubted delivery to the next one, which acknowledges it if its attempt is decided by then.
func (x *execution) leaveDoubted() {
	x.log().Info("a delivery may be older than its lease; it is not executed")
	x.drop(false)
}

// reviewing bounds how many records are read at once.
const reviewing = 16

// review cancels the executions of a feed whose attempts were decided while this worker heard nothing. A cancel is sent
// only once.
func (e *engine) review(f *feed) {
	var running []*execution
	e.mu.Lock()
	for _, x := range e.live {
		if x.feed == f && !x.decided.Load() {
			running = append(running, x)
		}
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(e.hard, f.ackWait)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(reviewing)
	for _, x := range running {
		group.Go(func() error {
			if _, err := e.store.Ledger.Read(ctx, x.step.Result); err == nil {
				x.log().Info("the attempt was decided while this worker heard nothing; its handler is cancelled")
				x.cancelled()
			}
			return nil
		})
	}
	_ = group.Wait()
}
