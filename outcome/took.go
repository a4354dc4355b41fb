package outcome

import "time"

// Took splits the time from ready to decided: ran is how long the last attempt executed, as its worker measured it, and
// queued all the rest, pauses between attempts and earlier attempts included. Both are 0 where they aren't known, and
// ran is for a step that no worker executed.
func (s *Step) Took() (queued, ran time.Duration) {
	if !s.Started.IsZero() {
		ran = max(s.Ended.Sub(s.Started), 0)
	}
	if !s.Ready.IsZero() && s.Decided.After(s.Ready) {
		queued = max(s.Decided.Sub(s.Ready)-ran, 0)
	}
	return queued, ran
}

// TookMS is Took in milliseconds, as events have it.
func (s *Step) TookMS() (queued, ran float64) {
	q, r := s.Took()
	return float64(q.Microseconds()) / 1000, float64(r.Microseconds()) / 1000
}
