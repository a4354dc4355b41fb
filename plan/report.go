package plan

import (
	"fmt"

	"github.com/stepjet/stepjet/fault"
)

// Limits of a report. A plan can have more problems than anybody wants to read, and a report must not be larger than
// the plan by much.
const (
	// MaxProblems is the most problems that a report lists. Beyond it only the first problem of each further code is
	// listed, and a last entry says how many are left out; it has the code of the last of those.
	MaxProblems = 1000
	// MaxWarnings is the most warnings that a report lists.
	MaxWarnings = 100

	maxReportBytes = 1 << 20 // of all messages, paths and hints
)

// Report is what is wrong with a plan, and what is odd about it but harmless.
type Report struct {
	// Problems are why the plan is refused, in the order in which they were found: what keeps it from being read, then
	// the plan's own fields, then step by step, then what dependent tools miss, then cycles. At most MaxProblems and one of each code.
	Problems []fault.Problem
	// Warnings are fields that nobody knows; they are ignored. At most MaxWarnings and a note.
	Warnings []fault.Problem
}

// collector gathers problems and warnings. Whoever reports asks wants first, so that nothing is spent on the wording of
// what nobody will read.
type collector struct {
	Report
	listed  map[fault.Code]bool
	bytes   int
	dropped int
	last    fault.Code // of the last one dropped
	ignored int        // warnings dropped
}

// wants reports whether a further problem of this code is listed; if not, it counts as reported.
func (c *collector) wants(code fault.Code) bool {
	if len(c.Problems) < MaxProblems && c.bytes < maxReportBytes || !c.listed[code] {
		return true
	}
	c.dropped++
	c.last = code
	return false
}

func (c *collector) add(code fault.Code, path, message, hint string) {
	if c.listed == nil {
		c.listed = map[fault.Code]bool{}
	}
	c.listed[code] = true
	c.bytes += len(path) + len(message) + len(hint)
	c.Problems = append(c.Problems, fault.Problem{Code: code, Path: path, Message: message, Hint: hint})
}

// addf adds a problem whose wording is cheap.
func (c *collector) addf(code fault.Code, path, hint, format string, args ...any) {
	if c.wants(code) {
		c.add(code, path, fmt.Sprintf(format, args...), hint)
	}
}

func (c *collector) failed() bool { return len(c.Problems) > 0 }

// wantsWarning reports whether a further warning is listed; if not, it is counted.
func (c *collector) wantsWarning() bool {
	if len(c.Warnings) < MaxWarnings {
		return true
	}
	c.ignored++
	return false
}

func (c *collector) warn(path, message string) {
	c.Warnings = append(c.Warnings, fault.Problem{Code: fault.UnknownField, Path: path, Message: message})
}

// report closes the report.
func (c *collector) report() Report {
	if c.dropped > 0 {
		c.Problems = append(c.Problems, fault.Problem{Code: c.last, Message: fmt.Sprintf("%d more problems are not listed", c.dropped),
			Hint: "mend the ones listed first; most of the others are of the same kind"})
		c.dropped = 0
	}
	if c.ignored > 0 {
		c.Warnings = append(c.Warnings, fault.Problem{Code: fault.UnknownField, Message: fmt.Sprintf("%d more unknown fields are not listed", c.ignored)})
		c.ignored = 0
	}
	return c.Report
}
