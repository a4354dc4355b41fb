package plan

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
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
	maxWorded      = 30_000  // problems that are put into words to see whether they are the same as one before
)

// Report is what is wrong with a plan, and what is odd about it but harmless.
type Report struct {
	// Problems are why the plan is refused, in the order in which they were found: what keeps it from being read, then
	// the plan's own fields, then step by step, then what dependent tools miss, then cycles. Those that differ only in
	// their place are one, with its paths. At most MaxProblems and one of each code.
	Problems []fault.Problem
	// Warnings are fields that nobody knows, which are ignored, and what only looks like a reference. At most
	// MaxWarnings and a note.
	Warnings []fault.Problem
}

// collector gathers problems and warnings. Whoever reports asks wants first, so that nothing is spent on the wording of
// what nobody will read.
type collector struct {
	Report
	listed  map[fault.Code]bool
	same    map[wording]int // where in Problems what was worded so stands
	worded  int
	bytes   int
	dropped int
	blamed  map[int]bool // warnings that are part of a problem now
	last    fault.Code   // of the last one dropped
	ignored int          // warnings dropped
}

// wording is a problem without its place.
type wording struct {
	code          fault.Code
	message, hint string
}

// wants reports whether a further problem of this code is listed; if not, it counts as reported.
func (c *collector) wants(code fault.Code) bool {
	if len(c.Problems) < MaxProblems && c.bytes < maxReportBytes && c.worded < maxWorded || !c.listed[code] {
		return true
	}
	c.dropped++
	c.last = code
	return false
}

func (c *collector) add(code fault.Code, path, message, hint string) {
	if c.listed == nil {
		c.listed, c.same = map[fault.Code]bool{}, map[wording]int{}
	}
	c.worded++
	c.bytes += len(path) // also of one that is not kept: it was put together
	w := wording{code, message, hint}
	if i, twice := c.same[w]; twice {
		c.Problems[i].Again(path)
		return
	}
	c.listed[code], c.same[w] = true, len(c.Problems)
	c.bytes += len(message) + len(hint)
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

func (c *collector) warn(code fault.Code, path, message, hint string) {
	c.Warnings = append(c.Warnings, fault.Problem{Code: code, Path: path, Message: message, Hint: hint})
}

// report closes the report.
func (p *parser) report() Report {
	r := p.col.report()
	for i := range r.Problems {
		r.Problems[i].Step = p.stepOf(r.Problems[i].Path)
	}
	for i := range r.Warnings {
		r.Warnings[i].Step = p.stepOf(r.Warnings[i].Path)
	}
	return r
}

// stepOf returns the id of the step that a pointer leads into, if it has a valid one.
func (p *parser) stepOf(path string) string {
	for i := range p.frames { // the innermost come first
		if token := p.frames[i].stepOf(path); token != "" {
			return token
		}
	}
	return p.frame.stepOf(path)
}

// stepOf returns the token of the plan's step that a pointer leads into.
func (f *frame) stepOf(path string) string {
	rest, in := strings.CutPrefix(path, f.stepsAt+"/")
	if !in || f.stepsAt == "" {
		return ""
	}
	number, _, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if f.order != nil && i < len(f.order) {
		i = f.order[i]
	}
	if err != nil || i >= len(f.plan.Steps) || !subjects.ValidStepID(f.plan.Steps[i].ID) {
		return ""
	}
	return subjects.InScope(f.within, f.plan.Steps[i].ID)
}

// blame takes a warning away: what it tells of is the cause of a problem, whose hint says so.
func (c *collector) blame(warning int) {
	if warning < 0 {
		return
	}
	if c.blamed == nil {
		c.blamed = map[int]bool{}
	}
	c.blamed[warning] = true
}

// blameAt takes the warnings of a place away, and gives the hint of the first.
func (c *collector) blameAt(path string) (hint string) {
	for i, w := range c.Warnings {
		if w.Path == path {
			c.blame(i)
			hint = cmp.Or(hint, w.Hint)
		}
	}
	return hint
}

func (c *collector) report() Report {
	if len(c.blamed) > 0 {
		kept := c.Warnings[:0]
		for i, w := range c.Warnings {
			if !c.blamed[i] {
				kept = append(kept, w)
			}
		}
		c.Warnings, c.blamed = kept, nil
	}
	if c.dropped > 0 {
		c.Problems = append(c.Problems, fault.Problem{Code: c.last, Message: fmt.Sprintf("%d more problems are not listed", c.dropped),
			Hint: "mend the ones listed first; most of the others are of the same kind", Count: c.dropped})
		c.dropped = 0
	}
	if c.ignored > 0 {
		c.Warnings = append(c.Warnings, fault.Problem{Code: fault.UnknownField, Message: fmt.Sprintf("%d more warnings are not listed", c.ignored)})
		c.ignored = 0
	}
	return c.Report
}

// place is a JSON pointer that is put together only when somebody asks for it.
type place struct {
	plan   string // pointer of the plan, where the place is none of a step
	steps  string // pointer of the array of steps; empty for a plan itself
	step   int
	fields [3]string
}

// stepAt returns the place of a step, or that of the plan whose output is read as a step's.
func (p *parser) stepAt(i int) place {
	if p.shape == i+1 {
		return p.here()
	}
	if p.order != nil {
		if i = p.added(i); i < 0 { // it was there before
			return p.here()
		}
	}
	return place{steps: p.stepsAt, step: i}
}

// in returns the place of a field, at most three deep.
func (a place) in(field string) place {
	for i := range a.fields {
		if a.fields[i] == "" {
			a.fields[i] = field
			break
		}
	}
	return a
}

// below returns the place of a field's value, under the name that the plan gives it.
func (p *parser) below(a place, n int32) place {
	if object := p.inside[n]; object != "" {
		a = a.in(object)
	}
	return a.in(p.keyName(n - 1))
}

func (a place) String() string {
	b := []byte(a.plan)
	if a.steps != "" {
		b = jsontape.AppendIndex([]byte(a.steps), a.step)
	}
	for _, f := range a.fields {
		if f != "" {
			b = jsontape.AppendToken(b, f)
		}
	}
	return string(b)
}
