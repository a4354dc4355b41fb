package tool

import (
	"encoding/json"
	"math"
	"math/bits"
	"time"
)

// Strategy is how the delay between attempts grows.
type Strategy = string

// The strategies of a backoff. The empty strategy is exponential.
const (
	Exponential Strategy = "exponential" // initial, 2 × initial, 4 × initial, …
	Linear      Strategy = "linear"      // initial, 2 × initial, 3 × initial, …
	Constant    Strategy = "constant"    // always initial
	None        Strategy = "none"        // as soon as possible: MinDelay
)

// Bounds of delays (plan language: "Default backoff").
const (
	// MinDelay is the least delay before a further attempt; a shorter one becomes this.
	MinDelay = 250 * time.Millisecond
	// DefaultInitial is the delay before the second attempt where a backoff names none.
	DefaultInitial = 250 * time.Millisecond
	// DefaultMaxDelay caps the delay where a backoff names no maximum (or Initial, where that is longer).
	DefaultMaxDelay = 30 * time.Second
	// MaxDuration is the longest time that a contract or a plan may name: a run's longest time.
	MaxDuration = 168 * time.Hour
)

// Backoff is how long to wait between attempts. Its JSON form is {"strategy","initial_ms","max_ms","jitter"}, in
// milliseconds. Zero fields take the defaults, so that the zero Backoff is the default one: exponential from 250 ms to
// 30 s, without jitter.
type Backoff struct {
	// Strategy is one of Exponential, Linear, Constant and None.
	Strategy Strategy
	// Initial is the delay after the first attempt.
	Initial time.Duration
	// Max caps the delay.
	Max time.Duration
	// Jitter, 0 to 1, is by what share of itself a delay may be shorter: 0.2 gives 80 to 100 % of it, 1 anything from
	// nothing to all of it ("full jitter").
	Jitter float64
}

// Delay returns the time to wait after the given attempt (from 1) failed, before the next one. The jitter is drawn from
// seed alone, so every owner of a run computes the same delay. It is never under MinDelay.
func (b Backoff) Delay(attempt int, seed uint64) time.Duration {
	b = b.filled()
	n := int64(max(attempt, 1))
	var d time.Duration
	switch b.Strategy {
	case None:
		return MinDelay
	case Constant:
		d = b.Initial
	case Linear:
		d = scale(b.Initial, n, b.Max)
	default:
		d = scale(b.Initial, 1<<min(n-1, 62), b.Max)
	}
	d = min(d, b.Max)
	if b.Jitter > 0 {
		u := float64(mix(seed)>>11) / (1 << 53) // from 0, less than 1
		d = time.Duration(float64(d) * (1 - b.Jitter*u))
	}
	return max(d, MinDelay)
}

// scale returns d × factor, or limit where that is less.
func scale(d time.Duration, factor int64, limit time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(max(d, 0)), uint64(factor))
	if hi != 0 || lo > uint64(limit) {
		return limit
	}
	return time.Duration(lo)
}

// mix spreads a seed over all 64 bits (the finaliser of SplitMix64), so that neighbouring seeds give unlike jitters.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// filled returns the backoff with the defaults in place of its zero fields.
func (b Backoff) filled() Backoff {
	if b.Strategy == "" {
		b.Strategy = Exponential
	}
	if b.Max == 0 {
		b.Max = max(DefaultMaxDelay, b.Initial)
	}
	if b.Initial == 0 {
		b.Initial = min(DefaultInitial, b.Max)
	}
	return b
}

// Validate reports, as a plain error, what in the backoff is out of range or contradicts itself.
func (b Backoff) Validate() error {
	switch b.Strategy {
	case "", Exponential, Linear, Constant, None:
	default:
		return badField("strategy", "%q is none of exponential, linear, constant and none", b.Strategy)
	}
	if b.Initial < 0 || b.Initial > MaxDuration {
		return badField("initial_ms", "must be 0 to %d (168 h)", MaxDuration.Milliseconds())
	}
	if b.Max < 0 || b.Max > MaxDuration {
		return badField("max_ms", "must be 1 to %d (168 h)", MaxDuration.Milliseconds())
	}
	if b.Max > 0 && b.Initial > b.Max {
		return badField("max_ms", "%d is less than initial_ms %d", b.Max.Milliseconds(), b.Initial.Milliseconds())
	}
	if math.IsNaN(b.Jitter) || b.Jitter < 0 || b.Jitter > 1 {
		return badField("jitter", "must be 0 to 1")
	}
	return nil
}

type backoffJSON struct {
	Strategy string  `json:"strategy,omitempty"`
	Initial  int64   `json:"initial_ms,omitempty"`
	Max      int64   `json:"max_ms,omitempty"`
	Jitter   float64 `json:"jitter,omitempty"`
}

// MarshalJSON writes the JSON form; zero fields are left out. What is finer than a millisecond is cut off.
func (b Backoff) MarshalJSON() ([]byte, error) {
	return json.Marshal(backoffJSON{b.Strategy, b.Initial.Milliseconds(), b.Max.Milliseconds(), b.Jitter})
}

// UnmarshalJSON reads the JSON form. Fields out of range, contradictions and near misses of field names are errors,
// other unknown fields are left alone.
func (b *Backoff) UnmarshalJSON(raw []byte) error {
	f, err := readFields(raw, backoffFields...)
	if err != nil {
		return err
	}
	*b = Backoff{
		Strategy: f.str("strategy"),
		Initial:  f.millis("initial_ms", 0),
		Max:      f.millis("max_ms", 1),
		Jitter:   f.number("jitter"),
	}
	if err := f.err(); err != nil {
		return err
	}
	return b.Validate()
}

var backoffFields = []string{"strategy", "initial_ms", "max_ms", "jitter"}
