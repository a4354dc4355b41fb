package seal

import "time"

// Keep is how long an old key opens what was sealed to it, unless the user says otherwise: a run lasts 168 h at most,
// and a finished one is kept for 168 h.
const Keep = 2 * 168 * time.Hour

// Rotate returns the keys with a new one behind them, and without those that have been replaced for as long as keep:
// with 0 the new one alone is left.
func Rotate(keys []Key, now time.Time, keep time.Duration) ([]Key, error) {
	fresh, err := NewKey(now)
	if err != nil {
		return nil, err
	}
	var left []Key
	for i, k := range keys {
		replaced := now // the last one is, by fresh
		if i < len(keys)-1 {
			replaced = keys[i+1].Created
		}
		if max(0, now.Sub(replaced)) < keep { // another machine's clock may be ahead
			left = append(left, k)
		}
	}
	return append(left, fresh), nil
}
