package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/kv"
)

// defaultAckWait is assumed of a tool whose registration doesn't say how long its leases last.
const defaultAckWait = 30 * time.Second

// pulse keeps the leases of all running steps: one ticker for the whole worker. A lease counts as kept once the server
// has answered a ping that was sent after the heartbeats, which a half-dead connection doesn't.
type pulse struct {
	ticker    *time.Ticker
	shortest  atomic.Int64 // the shortest lease of any tool, as a time.Duration
	confirmed atomic.Pointer[time.Time]
	leases    []*kv.Delivery
	late      []*execution
}

func newPulse() *pulse {
	p := &pulse{ticker: time.NewTicker(defaultAckWait / 3)}
	p.confirm(time.Now())
	p.shortest.Store(int64(defaultAckWait))
	return p
}

// confirm notes that the server has answered a ping that was sent after at.
func (p *pulse) confirm(at time.Time) { p.confirmed.Store(&at) }

// serve makes the pulse quick enough for a tool's lease.
func (p *pulse) serve(ackWait time.Duration) {
	for {
		old := p.shortest.Load()
		if int64(ackWait) >= old {
			return
		}
		if p.shortest.CompareAndSwap(old, int64(ackWait)) {
			p.ticker.Reset(ackWait / 3)
			return
		}
	}
}

// beat runs until ctx ends.
func (e *engine) beat(ctx context.Context) {
	defer e.pulse.ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.pulse.ticker.C:
			e.loseLate()
			e.renew(ctx)
			e.loseLate()
		}
	}
}

// renew sends a heartbeat for each lease and waits for the server's answer, for one interval at most.
func (e *engine) renew(ctx context.Context) {
	p := e.pulse
	e.mu.Lock()
	for _, x := range e.live {
		p.leases = append(p.leases, x.leases...)
	}
	e.mu.Unlock()
	now := time.Now()
	for _, d := range p.leases {
		if err := d.InProgress(); err != nil {
			e.log.Debug("a heartbeat could not be sent", "subject", d.Subject, "error", err)
		}
	}
	clear(p.leases)
	p.leases = p.leases[:0]
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.shortest.Load())/3)
	defer cancel()
	if e.w.nc.FlushWithContext(ctx) == nil {
		stale := e.distrust(time.Now()) // before this answer makes what came earlier look fresh
		p.confirm(now)
		for _, f := range stale {
			e.spawn(func() {
				e.tellTime(e.hard, f) // the monotonic clock stands still while a machine is suspended
				e.review(f)
			})
		}
	}
}

// loseLate cancels the handlers of steps whose lease has not been renewed for as long as it lasts, less a margin for
// the way to the server. It runs before each heartbeat counts: one for a lease that had run out renews the next
// worker's.
func (e *engine) loseLate() {
	p, now := e.pulse, time.Now()
	e.mu.Lock()
	for a, x := range e.live {
		if !x.holds(now) {
			x.unheld.Store(true)
		}
		if x.decided.Load() {
			continue // what is left is to record it; a redelivery joins in that
		}
		if !x.lapsed(now) {
			continue
		}
		delete(e.live, a) // a redelivery begins anew
		p.late = append(p.late, x)
	}
	e.mu.Unlock()
	for _, x := range p.late {
		x.leaseLost()
	}
	clear(p.late)
	p.late = p.late[:0]
}
