package model

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Rate is how much of a model's requests and tokens a minute is left, for all workers together: a token bucket of each,
// which holds a minute's worth. Whoever asks takes from it. Who finds too little goes into its debt and is told when
// that is paid off; it comes back then, and need not ask again. So calls wait in turn, and each waits once.
//
// The zero value is full. Nothing rests on it but how often a provider has to say 429.
type Rate struct {
	// Requests and Tokens are what was left at At; below zero is what has been promised to those that wait.
	Requests float64 `json:"requests"`
	Tokens   float64 `json:"tokens"`
	// At is a time of the servers, in Unix milliseconds; 0: never asked.
	At int64 `json:"at"`
	// Until is when the provider, which refused, may be asked again.
	Until int64 `json:"until,omitempty"`
	// Turns are those that wait.
	Turns []Turn `json:"turns,omitempty"`
}

// Turn is one that waits: who, and from when its turn is, in Unix milliseconds.
type Turn struct {
	Who string `json:"who"`
	At  int64  `json:"at"`
}

const (
	// maxTurns bounds how many wait in turn; those beyond are told to come again when the last of them has had its.
	maxTurns = 1000
	// turnKept is how long the turn of one that does not come back is kept.
	turnKept = 2 * time.Minute
)

// ParseRate reads a rate. What is none is a full one.
func ParseRate(raw []byte) Rate {
	var r Rate
	if json.Unmarshal(raw, &r) != nil || math.IsNaN(r.Requests+r.Tokens) || len(r.Turns) > maxTurns {
		return Rate{}
	}
	return r
}

// JSON returns the rate as it is kept.
func (r *Rate) JSON() []byte { return encode(r) }

// Take takes a request and its tokens out of a model's rate, for one that is known by a name of its own. The result is
// how long it has to wait; 0: it may go on.
func (r *Rate) Take(m Model, now time.Time, who string, tokens int64) time.Duration {
	r.fill(m, now)
	ms := now.UnixMilli()
	for i, t := range r.Turns {
		if t.Who != who {
			continue
		}
		wait := max(t.At, r.Until) - ms
		if wait <= 0 {
			r.Turns = append(r.Turns[:i], r.Turns[i+1:]...)
		}
		return milliseconds(wait)
	}
	if len(r.Turns) >= maxTurns {
		return milliseconds(max(r.Turns[len(r.Turns)-1].At-ms, 1000))
	}
	r.Requests--
	r.Tokens -= float64(atMost(tokens, m.TPM))
	due := ms + int64(max(owed(r.Requests, m.RPM), owed(r.Tokens, m.TPM)))
	if due = max(due, r.Until); due <= ms {
		return 0
	}
	r.Turns = append(r.Turns, Turn{who, due})
	return milliseconds(due - ms)
}

// fill adds what time has brought, and forgets who has not come back.
func (r *Rate) fill(m Model, now time.Time) {
	ms := now.UnixMilli()
	if r.At == 0 {
		r.Requests, r.Tokens, r.At = float64(m.RPM), float64(m.TPM), ms
	}
	if passed := float64(ms - r.At); passed > 0 { // a clock that is behind adds nothing
		r.Requests = min(r.Requests+passed*float64(m.RPM)/60_000, float64(m.RPM))
		r.Tokens = min(r.Tokens+passed*float64(m.TPM)/60_000, float64(m.TPM))
		r.At = ms
	}
	kept := r.Turns[:0]
	for _, t := range r.Turns {
		if ms-t.At < turnKept.Milliseconds() {
			kept = append(kept, t)
		}
	}
	r.Turns = kept
}

// owed returns how many milliseconds it takes until a level is back at zero; a limit of 0 is none.
func owed(level float64, aMinute int64) float64 {
	if aMinute == 0 || level >= 0 {
		return 0
	}
	return math.Ceil(-level * 60_000 / float64(aMinute))
}

// atMost bounds what one call takes: one that is larger than a minute's worth takes all of it, or it would never come.
func atMost(tokens, aMinute int64) int64 {
	if aMinute == 0 {
		return 0
	}
	return min(tokens, aMinute)
}

func milliseconds(n int64) time.Duration { return time.Duration(max(n, 0)) * time.Millisecond }

// Settle corrects what was taken by what came of it: the tokens that were used instead of those reserved, and what the
// provider says is left. A provider that refused is left alone for as long as it says.
func (r *Rate) Settle(m Model, now time.Time, reserved, used int64, header http.Header, refused time.Duration) {
	r.fill(m, now)
	if m.TPM > 0 {
		r.Tokens = min(r.Tokens+float64(atMost(reserved, m.TPM)-used), float64(m.TPM))
	}
	lower(&r.Requests, header, "X-Ratelimit-Remaining-Requests", "Anthropic-Ratelimit-Requests-Remaining")
	lower(&r.Tokens, header, "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Tokens-Remaining")
	if refused > 0 {
		r.Until = max(r.Until, now.Add(refused).UnixMilli())
	}
}

// lower takes what a provider says is left where that is less.
func lower(level *float64, h http.Header, names ...string) {
	for _, name := range names {
		if left, err := strconv.ParseFloat(h.Get(name), 64); err == nil && left >= 0 {
			*level = min(*level, left)
		}
	}
}
