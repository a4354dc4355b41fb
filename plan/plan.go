// Package plan reads a plan: it parses the document, reports every problem at once, builds the graph of its steps, and
// resolves references when a step is to run. The language is described in docs (plan language); where a comment says
// "rule", it means the numbered rules of its section "References".
//
// It is pure: no I/O, no clock. Parse accepts any bytes from anybody: one pass without recursion bounds size, depth and
// grammar before anything else looks at them, and a refused plan costs no more than its size. A plan that was accepted
// is immutable; it keeps a copy of its text and shares nothing with the caller. Two parsers of the same bytes and the
// same tools come to the same plan and the same report, which is what lets any orchestrator take over a run.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Limits of plans (plan language, "limit_exceeded").
const (
	// MaxBytes is the largest plan, in bytes, unless Limits say otherwise: NATS' default max_payload of 1 MiB, less
	// 16 KiB for headers.
	MaxBytes = 1_032_192
	// MaxSteps is the most steps of a plan.
	MaxSteps = 10_000
	// MinTimeout and MaxTimeout bound the timeouts of plans and steps.
	MinTimeout = time.Millisecond
	MaxTimeout = tool.MaxDuration
)

// RecursiveTool is the tool name that agents submit plans by; a step must not call it.
const RecursiveTool = tool.PlanTool

// Catalog is the tools that a plan may call.
type Catalog interface {
	// Lookup returns a tool, and whether there is one of that name for the plan's tenant. It is called once for each
	// name in a plan, and for names that those tools depend on.
	Lookup(name string) (t Tool, ok bool)
	// Names returns the names of all those tools, for hints. It is called at most once for each Parse.
	Names() []string
}

// Tool is what a plan has to know of a tool. It is not changed.
type Tool struct {
	// Input is the schema of its arguments; nil accepts any object.
	Input *tool.Schema
	// Output is the schema of its results; nil for one that is not declared.
	Output *tool.Schema
	// DependsOn are the tools whose output it needs (plan language, "Dependent tools").
	DependsOn []tool.Dependency
	// Approval says that its contract asks for an approval, always or on a condition.
	Approval bool
	// Refused is why the run may not call it, and what to do about that; nil where it may.
	Refused *Refused
	// Plan is the text of the plan that the tool is; nil for one that is none.
	Plan []byte
	// Agent is the loop that the tool is; nil for one that is no agent.
	Agent *Agent
}

// Refused is why a run may not call a tool. Unseen is whether the run may not see it either: it is told its name only where its plan
// has it.
type Refused struct {
	Why, Hint string
	Unseen    bool
}

// Limits bound a plan. Zero fields mean the defaults.
type Limits struct {
	// MaxBytes is the largest plan in bytes: min(MaxBytes, the server's max_payload − 16 KiB).
	MaxBytes int
	// Done names steps whose results are there already, from a run that is tried again. No schema is asked about them:
	// neither about their arguments nor, for references to them, about their results.
	Done map[string]bool
	// Templates are those that the plan may call, by name, for who reads a plan that was accepted, without a catalog.
	Templates map[string]*Template
	// Language1 is for the plan of a run whose start doesn't need Language2: what is reserved for that was a field that
	// nobody knows, and plain text, when it was accepted. So it is here.
	Language1 bool
	// Unheld is for the plan of a run whose start doesn't need StateSchema: its results were held against nothing when it
	// began, and are not now.
	Unheld bool
	// Language2 has the plan read in the second version of the language, whether it uses anything of it or not.
	Language2 bool
}

// Language2 is the need of a plan that uses anything which the second version of the language adds.
const Language2 = "language-2"

// ApprovedAmendments is the need of a plan that is submitted for an approval, and may be amended whether anybody asks for
// that or not: because it, or a plan within, is open and its owner closes it.
const ApprovedAmendments = "approved-amendments"

// Agents is the need of a plan that can reach an agent.
const Agents = "agents"

// Replan is the need of a plan that can reach an agent, one of whose calls may ask for a new plan.
const Replan = "replan"

// AgentOrder is the need of a plan that can reach an agent, since the order that gates add holds in plans within steps too and
// handles no failure.
const AgentOrder = "agent-order"

// LockedWithin is the need of a plan that can reach an agent, in whose rounds a call of a plan within a step stays locked, too, that
// was so when its answer came.
const LockedWithin = "locked-within"

// AgentEnds is the need of a plan that can reach an agent, whose errors say what came of its rounds.
const AgentEnds = "agent-ends"

// ApprovedRounds is the need of a plan that calls an agent whose rounds a person approves of.
const ApprovedRounds = "approved-rounds"

// Needs returns what has to be known to go on with a run of the plan, as its start says it: names, sorted; nil for
// nothing.
func (p *Plan) Needs() []string {
	if p.Language == 1 {
		return nil
	}
	all := map[string]bool{Language2: true, StateSchema: p.holds, ApprovedAmendments: p.Approval != nil && opens(p)}
	for s := range p.All() {
		if a := s.Agent(); a != nil {
			all[Agents], all[AgentOrder], all[AgentEnds], all[LockedWithin], all[Replan], all[ApprovedRounds] = true, true, true, true, true, all[ApprovedRounds] || a.Approval != nil
			all[InlineAgents] = all[InlineAgents] || inline(s)
		}
	}
	maps.DeleteFunc(all, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(all))
}

// opens reports whether a plan, or one within it, is open.
func opens(p *Plan) bool {
	if p.Open {
		return true
	}
	for s := range p.All() {
		if s.Plan != nil && s.Plan.Open {
			return true
		}
	}
	return false
}

// Accepted reads a plan that was accepted once, for whoever shows its run: as it would be now or, where it would be
// refused, as in Limits.Language1. templates are the plans of those that it called, by name. It returns nil for what no
// Stepjet accepted.
func Accepted(body []byte, templates map[string]json.RawMessage) *Plan {
	called := make(map[string]*Template, len(templates))
	for name, text := range templates {
		called[name] = &Template{Name: name, Plan: text}
	}
	p, _ := ParseLimited(body, nil, Limits{Templates: called})
	if p == nil {
		p, _ = ParseLimited(body, nil, Limits{Language1: true})
	}
	return p
}

// OnFailure is what a failed step does to the rest of the run.
type OnFailure uint8

// The values of on_failure.
const (
	Continue OnFailure = iota // fail-forward: everything that doesn't depend on it goes on
	Stop                      // fail-fast: nothing new starts, and running steps are cancelled
)

// OnMissing is what a reference to nothing comes to.
type OnMissing uint8

// The values of on_missing.
const (
	MissingNull  OnMissing = iota // null
	MissingError                  // the step fails with unresolved_ref
)

// Schedule is when a step becomes ready.
type Schedule uint8

// The values of schedule.
const (
	Dataflow Schedule = iota // as soon as its own inputs are there
	Waves                    // once every step of lesser depth is over
)

// Plan is a valid plan. It is immutable and may be used from many goroutines. Slices that it gives out are shared:
// don't change them.
type Plan struct {
	// Steps are in the order of the document: 1 to MaxSteps.
	Steps []Step
	// Outputs are the indexes of the steps whose results are returned: in the order of output_steps, or all steps where
	// it names none.
	Outputs []int
	// Output is the value that is returned in place of their results; nil for a plan that names none. Outputs are the
	// steps that it refers to.
	Output *Shape
	// AllOutputs says that the plan names neither, so that Outputs are all its steps.
	AllOutputs bool
	OnFailure  OnFailure
	OnMissing  OnMissing
	Schedule   Schedule
	// TimeoutSet says that the plan names a timeout.
	TimeoutSet bool
	// Concurrency is how many calls may be ready at once, backoff included: 1 to MaxSteps, 0 for as many as there are.
	Concurrency int
	// Timeout is the longest that the run may take, counted from the plan's record: 1 ms to 168 h, and 168 h for a plan
	// that names none.
	Timeout time.Duration
	// Open says that the plan is not over with its steps, but waits for amendments until one closes it.
	Open bool
	// OpenFor is how long it waits for the next amendment of an open plan; 0 for one that is not open.
	OpenFor time.Duration
	// Approval is asked for before anything begins; nil: the plan asks for none.
	Approval *Approval
	// Depth is the number of waves, from 1.
	Depth int
	// Language is 2 where the plan has conditions, values, an output or a concurrency, or names steps by $error or
	// $status; else 1. It decides which rules say what follows from a failure.
	Language int

	// Offset is how many steps of the document come before its own where those of each plan stand together: 0 for the
	// plan that is the document.
	Offset int
	// Guards are, of the plan by which an agent calls its planner, the calls of its guards that are tools. They are made as
	// often as something is to pass, and are no steps of the plan; nil for none.
	Guards *Plan

	holds  bool                     // the result of some step is held against something
	ids    ids                      // nil for few steps
	calcs  []*expression.Expression // of values
	growth *growth                  // of a plan that was amended; nil for any other
}

// Step is one step of a plan.
type Step struct {
	// ID is 1 to 64 of [A-Za-z0-9_-] and unique in the plan.
	ID string
	// Tool is the name of the tool: 1 to 128 of [A-Za-z0-9_.:/-]; empty for a value and a composite with a plan of its own.
	Tool string
	// Value says that the step calls no tool: it is a value, which Derive returns.
	Value bool
	// Ask says that the step asks a person for its result, by the built-in tool AskTool.
	Ask bool
	// Own says that the step is a call of an agent which no tool answers, but the owner of the run. No document says it.
	Own bool
	// Free says that the step is a call of an agent that may be made whatever else happens: its gate need not be asked. No
	// document says it.
	Free bool
	// Optional says that its failure neither skips dependents nor counts in the run's status.
	Optional bool
	// Partial lets a composite succeed where only a part of its plan did.
	Partial bool
	// HasRefs says that its arguments, or its value, hold references, to steps or to the item, so that they can be checked
	// against the schema only once resolved.
	HasRefs bool
	// TakesInput says that its arguments, its list or its condition refer to the input of its plan.
	TakesInput bool
	// TakesLast says that its arguments refer to the result of the iteration before.
	TakesLast bool
	// Deps are the steps that it waits for, by reference or depends_on: indexes, sorted and unique.
	Deps []int
	// Depth is the wave: 0 for a step without dependencies, else one more than its deepest dependency.
	Depth int
	// Timeout is the longest from ready until final, queue and retries included; 0 for none.
	Timeout time.Duration
	// Retry goes before the tool's contract; nil leaves everything to that.
	Retry *tool.Retry
	// ForEach makes the step run once for each item of a list; nil for a step that runs once.
	ForEach *ForEach
	// Approval is asked for before the step begins; nil: the plan asks for none. Its tool's contract may.
	Approval *Approval
	// Plan is what a composite runs in place of a tool: its arguments are the input of that; nil for a step of a tool. That
	// of a loop has one step, which is what each iteration runs: it has no arguments of its own, but those of the loop.
	Plan *Plan
	// Repeat makes the step a loop, whose Plan is that of an iteration; nil for a step that runs once.
	Repeat *Repeat
	// Template is what a composite calls whose plan is not its own; nil for any other step.
	Template *Template
	// Held is what its result is held against; nil for nothing.
	Held *Held
	// If decides whether the step is taken; nil for a step that always is.
	If *Condition
	// Needs are what it asks of its Deps in language 2; nil in language 1, where each must have succeeded.
	Needs []Need
	// Named are the steps that it names by $error or $status: indexes, sorted and unique.
	Named []int

	after      []int // Deps that it has by Order alone
	dependents []int // Plan.Dependents, as far as they came with the step or before it
	regarded   bool  // Plan.Regarded, likewise
	args       template
}

// template is a step's arguments, its value or its list, ready to be filled in: head, and behind it each hole's value and the text
// after it.
type template struct {
	head  string
	holes []hole
	whole bool // the first hole is all of it
}

// hole is one reference in a template, or a calculation.
type hole struct {
	targets []target // alternatives; the first that is present and not null. Of a calculation: all that it refers to
	def     string   // the JSON scalar that ends the alternatives; empty for none
	text    bool     // goes into a string
	calc    int32    // of a calculation: one more than its place in Plan.calcs
	after   string   // what follows up to the next hole
}

// target is a place in the result of another step, or in the item.
type target struct {
	step int // or theItem, theInput
	of   aspect
	path []elem
	text string // as written, without its prefix
}

// Digest returns the SHA-256 of a plan's bytes, in hex. Two plans are the same if and only if their bytes are (plan
// language, "conflict"): white space and the order of keys count.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// shown is the reference for a message.
func (t *target) shown() string { return t.of.prefix() + clip(t.text) }

// All returns the steps of the plan and of those within it, each before the steps of its own plan.
func (p *Plan) All() iter.Seq[*Step] {
	return func(yield func(*Step) bool) { p.all(yield) }
}

// number gives the plans within one their offsets, and returns how many steps there are up to the last of theirs.
func (p *Plan) number(offset int) int {
	p.Offset, offset = offset, offset+len(p.Steps)
	if p.Guards != nil {
		offset = p.Guards.number(offset)
	}
	for i := range p.Steps {
		if inner := p.Steps[i].Plan; inner != nil {
			offset = inner.number(offset)
		}
	}
	return offset
}

func (p *Plan) all(yield func(*Step) bool) bool {
	for i := range p.Steps {
		s := &p.Steps[i]
		if !yield(s) || s.Plan != nil && !s.Plan.all(yield) {
			return false
		}
	}
	return p.Guards == nil || p.Guards.all(yield)
}

// Find returns the step that a token may be of in a run of the plan, and whether it is an item's: whatever the lengths
// of lists turn out to be.
func (p *Plan) Find(token string) (s *Step, isItem, ok bool) {
	segments, ok := subjects.ParseStepToken(token)
	for i := 0; i < len(segments) && ok; i++ {
		x := &segments[i]
		if i > 0 {
			if s.Agent() != nil { // which calls it has, its rounds say
				return nil, false, false
			}
			if p = s.Plan; p == nil || isItem != (s.ForEach != nil) || (s.Repeat != nil) != (x.Kind == subjects.IterationSegment) {
				return nil, false, false
			}
		}
		if x.Kind == subjects.IterationSegment {
			if x.Number >= s.Repeat.Max {
				return nil, false, false
			}
			s, isItem = &p.Steps[0], false
			continue
		}
		at, known := p.Index(x.Name)
		if !known {
			return nil, false, false
		}
		s, isItem = &p.Steps[at], x.Kind == subjects.ItemSegment
		ok = (x.Kind == subjects.StepSegment || isItem) && (!isItem || s.ForEach != nil && x.Number < MaxItems)
	}
	return s, isItem, ok && s != nil
}

// Index returns the position of a step in Steps.
func (p *Plan) Index(id string) (int, bool) {
	if p.ids != nil {
		i, ok := p.ids.find(id)
		return int(i), ok
	}
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == id })
	return max(i, 0), i >= 0
}

// fewSteps are looked through for an id. Small plans are what there may be hundreds of thousands of in memory, and a
// map takes a quarter of what the steps themselves do.
const fewSteps = 16

// slim lets go of what only larger plans need once they are read.
func (p *Plan) slim() {
	if len(p.Steps) <= fewSteps {
		p.ids = nil
	}
}

// Calculation returns the expression of a step whose value is one calculation and nothing else; empty of any other.
func (p *Plan) Calculation(step int) string {
	t := &p.Steps[step].args
	if !t.whole || t.holes[0].calc == 0 {
		return ""
	}
	return p.calcs[t.holes[0].calc-1].Text()
}

// Amend returns the plan with an amendment. The plan itself stays as it is: steps keep their numbers in both. It reads
// what is added and nothing else, so that the same plan, amendment and catalog come to the same. A nil catalog skips the
// checks of tools and schemas. The result is nil if and only if the report has problems, whose paths lead into the
// request: "/add/0/arguments/x", "/output".
//
// It is for plans of language 2 without waves.
func (p *Plan) Amend(a *Amendment, c Catalog) (*Amended, Report) { return amend(p, a, c) }

// Waves returns the steps by depth, each wave in the order of the document.
func (p *Plan) Waves() [][]int {
	sizes := make([]int, p.Depth)
	for i := range p.Steps {
		sizes[p.Steps[i].Depth]++
	}
	all := make([]int, len(p.Steps))
	waves := make([][]int, p.Depth)
	for d, n := range sizes {
		waves[d], all = all[:0:n], all[n:]
	}
	for i := range p.Steps {
		d := p.Steps[i].Depth
		waves[d] = append(waves[d], i)
	}
	return waves
}

// Returning is a plan that comes to what a reference to one of its steps sees, whatever it said. It shares the steps.
func (p *Plan) Returning(step int) *Plan {
	own := *p
	own.Output, own.Outputs, own.AllOutputs = &Shape{Reads: []int{step}, Waits: []int{step}}, []int{step}, false
	own.Output.holes = []hole{{targets: []target{{step: step, text: p.Steps[step].ID}}}}
	return &own
}

// byID is the output of a composite whose plan names none: an object with the results of its output steps.
func (p *Plan) byID() *Shape {
	s := &Shape{Reads: sortedOnce(p.Outputs), Waits: sortedOnce(p.Outputs), plain: true}
	s.head = "{"
	after := &s.head
	for n, step := range p.Outputs {
		if n > 0 {
			*after += ","
		}
		*after += fmt.Sprintf("%q:", p.Steps[step].ID)
		s.holes = append(s.holes, hole{targets: []target{{step: step, text: p.Steps[step].ID}}})
		after = &s.holes[n].after
	}
	*after += "}"
	return s
}
