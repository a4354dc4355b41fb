package doctor

import (
	"context"
	"fmt"
	"time"
)

// Clocks that are this far apart are a matter of note, or a problem: deadlines count from times that servers put on
// records, and workers in other languages may act on them by their own clock. Orchestrators and workers of ours go by
// what servers say alone, so theirs matter to people who read their logs.
const noteSkew, problemSkew = 500 * time.Millisecond, 2 * time.Second

// sawTime notes a time that somebody's clock showed between two moments of ours.
func (d *doctor) sawTime(whose string, t, sent, received time.Time) {
	if !t.IsZero() && whose != "" {
		d.skews = append(d.skews, skew{whose, t.Sub(sent.Add(received.Sub(sent) / 2))})
	}
}

func (d *doctor) clocks(context.Context) error {
	worst := time.Duration(0)
	seen := map[string]bool{}
	for _, k := range d.skews {
		worst = max(worst, k.ahead.Abs())
		f := Finding{
			About: k.whose, Health: Notable, Expected: "clocks within " + noteSkew.String(),
			Found: fmt.Sprintf("the clock of %s is %v %s this machine's", k.whose, k.ahead.Abs().Round(time.Millisecond),
				beforeOrBehind(k.ahead)),
			Means: "timeouts, retries and deadlines come that much too early or too late",
			Fix:   "have NTP or chrony run on every machine",
		}
		if k.ahead.Abs() >= problemSkew {
			f.Health = Broken
		}
		if k.ahead.Abs() >= noteSkew && !seen[k.whose] {
			seen[k.whose] = true
			d.add(f, nil)
		}
	}
	d.fine(fmt.Sprintf("within %v of this machine's", worst.Round(time.Millisecond)))
	return nil
}

func beforeOrBehind(ahead time.Duration) string {
	if ahead > 0 {
		return "before"
	}
	return "behind"
}
