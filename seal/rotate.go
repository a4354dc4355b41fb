package seal

import "time"

// Keep is how long an old key opens what was sealed to it, unless the user says otherwise: a run lasts 168 h at most, and
// a finished one is kept for 168 h.
const Keep = 2 * 168 * time.Hour

// Rotate gives the keys with a new one behind them, and without those that had been replaced for longer than keep.
func Rotate(keys []Key, now time.Time, keep time.Duration) ([]Key, error) {
	var kept []Key
	for i, k := range keys {
		if i == len(keys)-1 || now.Sub(keys[i+1].Created) <= keep {
			kept = append(kept, k)
		}
	}
	fresh, err := NewKey(now)
	if err != nil {
		return nil, err
	}
	return append(kept, fresh), nil
}
