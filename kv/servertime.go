package kv

import (
	"time"
)

// Deadlines, retries and ages count from the times that servers put on what they store. A process has no right to
// compare them with its own clock, which may be wrong by minutes, or jump. So it takes a time that a server has told,
// and adds what has passed since by the monotonic clock, which nobody sets.
//
// Whatever a server has told was told before it came here, and what it stored may have lain there, so the servers'
// time is at least that: the highest counts. A process is never ahead of the servers by this, and behind them by no
// more than the latest that it heard of took to come.

// ServerTime is the servers' time, by what was heard of it. It never goes back.
type ServerTime struct {
	zero int64 // the servers' time, in Unix nanoseconds, at which the monotonic clock was 0; 0: not known
}

// Heard takes a time that a server told, and when it came by the monotonic clock.
func (t *ServerTime) Heard(told time.Time, came time.Duration) {
	t.zero = max(t.zero, told.UnixNano()-int64(came))
}

// Known reports whether anything was heard.
func (t ServerTime) Known() bool { return t.zero != 0 }

// At returns the servers' time when the monotonic clock shows mono.
func (t ServerTime) At(mono time.Duration) time.Time { return time.Unix(0, t.zero+int64(mono)).UTC() }

// When returns what the monotonic clock shows at a time of the servers.
func (t ServerTime) When(at time.Time) time.Duration { return time.Duration(at.UnixNano() - t.zero) }

// RecentTime is the servers' time by what was heard lately. What was heard more than two minutes ago counts no more:
// it may have been of a server whose clock was ahead, and another one leads by now.
type RecentTime struct {
	now, before ServerTime
	since       time.Duration // when now was begun
}

const recently = time.Minute

// Heard takes a time that a server told, and when it came by the monotonic clock.
func (t *RecentTime) Heard(told time.Time, came time.Duration) {
	if came-t.since > recently {
		t.before, t.now, t.since = t.now, ServerTime{}, came
	}
	t.now.Heard(told, came)
}

// Best returns what is known.
func (t *RecentTime) Best() ServerTime { return ServerTime{max(t.now.zero, t.before.zero)} }
