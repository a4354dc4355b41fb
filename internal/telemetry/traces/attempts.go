package traces

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// attempt is one of a step, or of an item of one.
type attempt struct {
	step                *outcome.Step
	number              int
	began, started, end time.Time
	code                fault.Code
}

func rank(a attempt) int {
	if a.code != "" {
		return 0
	}
	return 1
}

// attemptsOf appends what was sent to workers: of the steps, of their items, and of what stands below both. A step that
// was decided before it was ready has no attempt, nor has one whose result another run had.
func attemptsOf(steps []outcome.Step, all []attempt) []attempt {
	for i := range steps {
		s := &steps[i]
		all = attemptsOf(s.Items, all)
		all = attemptsOf(s.Steps, all)
		if len(s.Items) > 0 || s.Attempts == 0 || s.Ready.IsZero() || s.Reused {
			continue
		}
		began := s.Ready
		for _, try := range s.Tries {
			if try.Attempt < s.Attempts {
				end := latest(try.Ended, began)
				all = append(all, attempt{step: s, number: try.Attempt, began: began, started: try.Started, end: end, code: try.Code})
				began = end
			}
		}
		last := attempt{step: s, number: s.Attempts, began: began, started: s.Started, end: s.Decided}
		if s.Error != nil {
			last.code = s.Error.Code
		}
		all = append(all, last)
	}
	return all
}
