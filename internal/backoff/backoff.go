// Package backoff paces how a program tries again what NATS or an orchestrator did not do just now. How long a step
// waits for its next attempt is another matter, which its contract decides: tool.Backoff.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a pause that doubles from one attempt to the next up to a bound. Each is shortened by up to a half, at
// random, so that those that failed together do not come again together. It is not safe for concurrent use.
type Backoff struct{ next, most time.Duration }

// Between returns a Backoff whose first pause is first, and whose longest is most; both are positive.
func Between(first, most time.Duration) Backoff { return Backoff{min(first, most), most} }

// Next returns how long to pause now: from half of the pause that it is the turn of to all of it.
func (b *Backoff) Next() time.Duration {
	d := b.next
	b.next = min(2*b.next, b.most)
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

// Spent reports whether the pauses are as long as they get.
func (b *Backoff) Spent() bool { return b.next == b.most }

// Pause waits for d; it reports false if ctx ended before.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Pace keeps to so many of something in a time, with a few at once where there were none for a while. The zero Pace has
// seen none. It is not safe for concurrent use.
type Pace struct{ due time.Time }

// Take takes the next if it may be at a moment, and returns 0; else it returns for how long to wait. One may be each
// every, and atOnce where there were none for long enough.
func (p *Pace) Take(now time.Time, every time.Duration, atOnce int) (wait time.Duration) {
	due := p.due
	if due.Before(now) {
		due = now
	}
	if wait := due.Sub(now) - time.Duration(atOnce-1)*every; wait > 0 {
		return wait
	}
	p.due = due.Add(every)
	return 0
}
