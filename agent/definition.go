package agent

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stepjet/stepjet/tool"
)

// Definition is an agent that was read: who plans, within which bounds, and the entries that a planner may be shown. It
// never changes, and any number of goroutines may use it.
type Definition struct {
	Name, Description string
	// Input and Output are the schemas of its input and of its output; nil accepts anything.
	Input, Output *tool.Schema
	Planner       Planner
	// Instructions and ExtraRequirement are for the planner, with "${input.x}" where a part of the input is meant.
	Instructions, ExtraRequirement Text
	// MaxRounds is the most rounds: 1 to MostRounds, DefaultRounds where the definition names none.
	MaxRounds int
	Advance   Advance
	// StreamPlan lets steps of an answer begin while the planner still writes it.
	StreamPlan bool
	// Concurrency is how many calls of a round may be under way at once.
	Concurrency int
	Budget      Budget
	// States is the state machine; nil for an agent without one.
	States *States
	// State is what the paths of the dialect "calls" begin with; nil for nothing, and no schema.
	State *State
	// Approval has a person asked about each round before anything of it runs; nil: nobody is.
	Approval *Approval
	// Respond asks the planner for a last answer once the loop is over; nil: the loop's output is the agent's.
	Respond *Respond
	Context Context
	// CaptureNested says that what agents among its tools put on their blackboards is put on this one's, too.
	CaptureNested bool
	Guards        []Guard

	outputSchema json.RawMessage

	entries  []*Entry // in the order of the definition, those of facades behind their facade
	chains   []*chain
	universe universe
}

// Planner is the tool that is asked what to do next.
type Planner struct {
	Tool string
	// Model is handed on to the tool; empty leaves it to that.
	Model string
	Mode  Mode
	// MaxOutputTokens bounds an answer; 0 leaves it to the tool.
	MaxOutputTokens int
}

// Mode is the form in which a planner is asked to answer. An answer in another form is read all the same.
type Mode string

// The modes.
const (
	ModeTools    Mode = "tools"    // native calls of a language model, which become steps
	ModePlan     Mode = "plan"     // {"steps": […], "output"?}
	ModeCalls    Mode = "calls"    // {"calls": […], "output"}: the state dialect
	ModeCommands Mode = "commands" // {"next_action", "execution_commands": […]}
)

// Advance is how much of an answer runs before the planner is asked again.
type Advance string

// The values of advance.
const (
	AdvanceAll  Advance = "all"  // all of it
	AdvanceWave Advance = "wave" // the calls that wait for nothing
	AdvanceCall Advance = "call" // the first of those
)

// Budget is what an agent may use up, those below it included. A zero field is no bound.
type Budget struct {
	Steps   int64
	Tokens  int64
	CostUSD float64
	Time    time.Duration
}

// States is a state machine: entries are there in some of its states, and lead to others.
type States struct {
	// Initial is the state that it begins in; empty where the input says so.
	Initial string
	// All are the states, in the order in which the definition names them first.
	All []string
	// Final are those of them in which nothing needs to be callable.
	Final []string

	from *reference // where in the input the initial state stands; nil where it is named
}

// State is the state that calls write to and read from.
type State struct {
	Initial json.RawMessage
	// Schema says which places there are, and what may stand there; nil for any.
	Schema *tool.Schema

	schema json.RawMessage
}

// Approval is how a person is asked about a round.
type Approval struct {
	// Ask is the question; empty leaves it to who asks.
	Ask string
	// Timeout is how long an answer may take; 0 for as long as the agent may.
	Timeout time.Duration
	// ApproveOnTimeout says that no answer in time is an approval; else it is a rejection.
	ApproveOnTimeout bool
}

// Respond is how the planner is asked for the last answer.
type Respond struct {
	// ExtraInstruction goes with what was done; DefaultExtraInstruction where the definition has none.
	ExtraInstruction string
}

// Context bounds what a planner is sent.
type Context struct {
	// ResultBytes is from where on a result is sent as a preview.
	ResultBytes int
	// TotalBytes is from where on a request shrinks to half of it.
	TotalBytes int
	// Summary is the tool that makes a summary of what is left out then; empty leaves ids, statuses and sizes.
	Summary string
}

// Guard is a check of what goes in and out.
type Guard struct {
	// On is what is looked at: input, call, result or output.
	On string
	// Tool is asked; empty where a condition decides.
	Tool string
	// Else is what follows where it says no: reject, ask or fail.
	Else string
	// When is its condition; empty where a tool is asked.
	When string

	when *condition
}

// Limits and defaults of a definition.
const (
	MostRounds         = 10_000
	DefaultRounds      = 20
	MostConcurrency    = 10_000
	DefaultConcurrency = 16
	// MostEntries is the most entries, those of facades, groups and chains included.
	MostEntries = 2_000
	// MostNesting is the most facades within each other.
	MostNesting = 8
	// DefaultSearchLimit is how many tools a search finds at most.
	DefaultSearchLimit = 8
	// DefaultResultBytes is Context.ResultBytes where the definition names none.
	DefaultResultBytes = 4_096
	// DefaultTotalBytes is Context.TotalBytes likewise.
	DefaultTotalBytes = 600_000
)

// DefaultInstructions are those of an agent that has none; its description stands behind them.
const DefaultInstructions = "You are an intelligent agent that can use tools to help you complete tasks. " +
	"Use the provided tools to perform the following task: "

// DefaultExtraInstruction goes with the last request of an agent that responds.
const DefaultExtraInstruction = "Answer with what the actions found. Say so where one of them failed; make nothing up."

// Entries returns the entries in the order of the definition, those of a facade behind it. The slice is shared: don't
// change it.
func (d *Definition) Entries() []*Entry { return d.entries }

// OutputSchema is the schema of the agent's output as it was written; nil where it accepts anything.
func (d *Definition) OutputSchema() json.RawMessage { return d.outputSchema }

// Catalog is the tools and groups that an agent may use. Who goes on with an agent's run has to give the same ones as
// when it began.
type Catalog interface {
	// Lookup returns a tool, and whether there is one of that name for the agent's tenant.
	Lookup(name string) (t *tool.Definition, ok bool)
	// Names returns the names of all those tools, sorted.
	Names() []string
	// Group returns the names of the tools of a group, sorted, and whether there is a group of that role.
	Group(role string) (tools []string, ok bool)
	// Groups returns the roles of all groups, sorted.
	Groups() []string
	// Searchable returns the names of the tools that a search looks through, sorted: those of a group, or of all where the
	// role is empty.
	Searchable(role string) []string
}

// universe is all that an agent could call.
type universe struct{ catalog Catalog }

func (u universe) lookup(name string) (*tool.Definition, bool) {
	if u.catalog == nil {
		return nil, false
	}
	return u.catalog.Lookup(name)
}

// found is a catalog of what searches look through, and of nothing else.
type found struct{ Catalog }

// Lookup returns a tool.
func (c found) Lookup(name string) (*tool.Definition, bool) {
	if _, is := slices.BinarySearch(c.Names(), name); !is {
		return nil, false
	}
	return c.Catalog.Lookup(name)
}

// Names returns the names of all.
func (c found) Names() []string { return c.Searchable("") }

func (u universe) searchable(role string) []string {
	if u.catalog == nil {
		return nil
	}
	return u.catalog.Searchable(role)
}

func (u universe) names() []string {
	if u.catalog == nil {
		return nil
	}
	return u.catalog.Names()
}
