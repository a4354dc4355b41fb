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
	asked               bool // it ended with a question to a person
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
		all = append(all, attemptsOfCall(s)...)
	}
	return all
}

// attemptsOfCall are those of one call. The time in which a person is asked is in none of them: an attempt that asks ends with its
// question, and the next begins with the answer.
func attemptsOfCall(s *outcome.Step) (all []attempt) {
	last := attempt{step: s, number: s.Attempts, began: s.Ready, started: s.Started, end: s.Decided}
	if s.Error != nil {
		last.code = s.Error.Code
	}
	answers := s.Answers
	for _, try := range s.Tries {
		if try.Attempt == s.Attempts && !try.Asked {
			continue // it is the last
		}
		end := latest(try.Ended, last.began)
		one := attempt{step: s, number: try.Attempt, began: last.began, started: try.Started, end: end, code: try.Code, asked: try.Asked}
		last.began = end
		if try.Asked && len(answers) > 0 {
			last.began, answers = latest(answers[0].At, end), answers[1:]
		}
		if try.Attempt == s.Attempts { // nobody said what it asked, and the step failed of that
			one.code = last.code
			return append(all, one)
		}
		all = append(all, one)
	}
	if len(s.Tries) == 0 && len(s.Answers) > 0 { // a document has room for so many
		last.began = latest(s.Answers[len(s.Answers)-1].At, last.began)
	}
	return append(all, last)
}
