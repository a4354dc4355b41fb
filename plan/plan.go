// Package plan reads a plan: parses it, reports every problem at once, builds the graph of its steps, and resolves
// references when a step is to run. It is pure: no I/O, no clock.
package plan

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// Catalog is the tools that a plan may call.
type Catalog interface {
	// Lookup gives a tool's input schema (nil accepts anything) and whether the tool is there.
	Lookup(name string) (schema *tool.Schema, ok bool)
	// Names gives all tools' names, for hints.
	Names() []string
}

// Limits bound a plan.
type Limits struct {
	MaxBytes int // of the whole plan
}

// OnFailure is what a failed step does to the rest of the run.
type OnFailure uint8

// The values of on_failure.
const (
	Continue OnFailure = iota // fail-forward
	Stop                      // fail-fast
)

// OnMissing is what a reference to nothing comes to.
type OnMissing uint8

// The values of on_missing.
const (
	MissingNull OnMissing = iota
	MissingError
)

// Schedule is when a step becomes ready.
type Schedule uint8

// The values of schedule.
const (
	Dataflow Schedule = iota // as soon as its own inputs are there
	Waves                    // once every step of lesser depth is over
)

// Plan is a valid plan. It is immutable and may be used from many goroutines.
type Plan struct {
	Steps      []Step
	Outputs    []int // indexes in the order of output_steps; all steps where it names none
	OnFailure  OnFailure
	OnMissing  OnMissing
	Schedule   Schedule
	Timeout    time.Duration // of the run, from the plan's record; 168 h where it names none
	TimeoutSet bool
	Depth      int // number of waves
}

// Step is one step of a plan. The slices are shared: don't change them.
type Step struct {
	ID         string
	Tool       string
	Deps       []int // steps it waits for: sorted, unique
	Dependents []int // steps that wait for it: sorted, unique
	Depth      int   // 0 for a step without dependencies
	Optional   bool
	Timeout    time.Duration // from ready until final; 0 for none
	Retry      *tool.Retry   // nil leaves it to the contract
	HasRefs    bool          // its arguments hold references
}

// Report is what is wrong with a plan, and what is odd about it.
type Report struct {
	Problems []fault.Problem
	Warnings []fault.Problem
}

// Parse reads a plan with the default limits. The plan is nil iff the report has problems. A nil catalog skips the
// checks of tools and schemas.
func Parse(body []byte, c Catalog) (*Plan, Report) { return ParseLimited(body, c, Limits{}) }

// ParseLimited is Parse with other limits; zero fields mean the defaults.
func ParseLimited(body []byte, c Catalog, l Limits) (*Plan, Report) { return nil, Report{} }

// Index gives the position of a step in Steps.
func (p *Plan) Index(id string) (int, bool) { return 0, false }

// Waves gives the steps by depth, for people to look at.
func (p *Plan) Waves() [][]int { return nil }

// Arguments gives the resolved arguments of a step. result gives the JSON that a direct dependency came to, ok false
// where it is missing. Errors: unresolved_ref, too_large, invalid_arguments.
func (p *Plan) Arguments(step int, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	return nil, nil
}

// Output gives the JSON value that a tool's output stands for; text says that its content type was text/plain. It
// returns body itself where that is JSON already. The error has code tool_terminal.
func Output(body []byte, text bool) ([]byte, *fault.Error) { return nil, nil }
