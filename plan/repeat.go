package plan

import (
	"fmt"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// Repeat says that a step runs again and again (plan language, "Loops").
type Repeat struct {
	// Until ends the loop where it is true; nil for one that runs Max times.
	Until *Condition
	// Max is the most iterations: 1 to MaxIterations.
	Max int
	// Every is how long an iteration waits, from where the one before was over, until anything of it is sent; 0 for none.
	Every time.Duration
	// Collect makes the list of all results the loop's own, in the place of the last.
	Collect bool
}

// The bounds of a loop.
const (
	// MaxIterations is the most iterations that a loop may ask for.
	MaxIterations = MaxSteps
	// defaultIterations is how many it may have that doesn't say.
	defaultIterations = 100
)

// IterationStep is the id of the one step in the plan of an iteration. No step that somebody wrote has it.
const IterationStep = "="

// Turn is an iteration, as the arguments and the until of its loop see it.
type Turn interface {
	// Last returns the result of the iteration before, and in until that of the iteration which was over last: null before
	// the first. ok is false where it can't be read.
	Last() (json []byte, ok bool)
	// Index returns the number of the iteration, from 0.
	Index() int
}

// The fields of a repeat.
const (
	repeatUntil = iota
	repeatMax
	repeatEvery
	repeatCollect
)

var repeatLevel = &level{
	name: "repeat", fields: []string{"until", "max", "every", "collect"},
	aliases: map[string]string{
		"while": "until", "condition": "until", "if": "until", "stop_when": "until", "times": "max", "count": "max", "max_iterations": "max",
		"max_attempts": "max", "limit": "max", "interval": "every", "delay": "every", "pause": "every", "wait": "every",
	},
}

// repeatReader reads the loops of steps.
type repeatReader struct{ *parser }

// read reads what of a loop stands by itself: all but its until.
func (p repeatReader) read(i int) {
	n, s := p.node(i).repeat, &p.plan.Steps[i]
	if n == 0 {
		return
	}
	p.second = true
	at := p.below(p.stepAt(i), n)
	s.Repeat = &Repeat{Max: defaultIterations}
	if p.tape[n].Kind != jsontape.Object {
		p.invalid(at, p.hint(n), "must be an object, but is "+p.shown(n))
		return
	}
	m := p.fields(repeatLevel, n, at)
	p.node(i).until = m[repeatUntil]
	if most, ok := p.number(m[repeatMax], at, 1, MaxIterations, true); ok {
		s.Repeat.Max = int(most)
	}
	s.Repeat.Every, _ = p.duration(m[repeatEvery], at)
	if n := m[repeatCollect]; n != 0 {
		s.Repeat.Collect = p.flag(n, at)
	}
}

// hint says how a loop is written that is no object.
func (p repeatReader) hint(n int32) string {
	switch p.tape[n].Kind {
	case jsontape.Number:
		return `write "repeat": {"max": ` + clip(p.src[p.tape[n].Start:p.tape[n].End]) + "}"
	case jsontape.String:
		return `write "repeat": {"until": ` + quoteJSON(clip(p.str(n))) + "}"
	case jsontape.Array:
		return `to run a step once for each item of a list write "for_each": {"in": […]}`
	default:
		return `write "repeat": {"until": "$last.status == 'done'", "max": 20, "every": "2s"}`
	}
}

// until reads the condition that ends a loop, once all ids are known. It knows the iteration, and of a for_each step the
// item.
func (p repeatReader) until(i int) {
	n, s := p.node(i).until, &p.plan.Steps[i]
	if n == 0 {
		return
	}
	at := p.below(p.below(p.stepAt(i), p.node(i).repeat), n)
	r := expressionReader{parser: p.parser, step: i, at: at.String, field: "until"}
	if s.ForEach != nil {
		r.item = s.ForEach.As
	}
	p.refs.turn = true
	s.Repeat.Until = r.condition(n)
	p.refs.turn = false
	if c := s.Repeat.Until; c != nil {
		for k := range c.targets {
			if t := &c.targets[k]; t.of == itsIndex && len(t.path) > 0 {
				p.col.addf(fault.InvalidCondition, at.String(), "write $index alone", "$%s: the number of an iteration has no parts", clip(t.text))
			}
		}
	}
}

// around makes sure that there is room around the iterations of a step for their tokens: a loop is around them
// as a step with a plan of its own is around its steps.
func (p repeatReader) around(i int) {
	if p.plan.Steps[i].Repeat == nil {
		return
	}
	if p.above == subjects.MaxComposites {
		p.col.addf(fault.LimitExceeded, p.stepAt(i).String(), "let a step further out hold these steps",
			"there are %d plans around this loop, less than %d are allowed", p.above, subjects.MaxComposites)
	}
	p.tokenOf(i)
}

// iterations gives a loop the plan of an iteration. What the step does goes there; what decides when it runs, and what
// its arguments are made of, stays.
func (s *Step) iterations() {
	if s.Repeat == nil {
		return
	}
	each := Step{
		ID: IterationStep, Tool: s.Tool, Ask: s.Ask, Partial: s.Partial, Retry: s.Retry, Plan: s.Plan, Template: s.Template,
		HasRefs: s.HasRefs, TakesInput: s.TakesInput,
	}
	if s.Approval != nil && !s.Approval.All {
		each.Approval = s.Approval
	}
	s.Tool, s.Ask, s.Partial, s.Retry, s.Template = "", false, false, nil, nil
	s.Plan = &Plan{
		Steps: []Step{each}, Outputs: []int{0}, Timeout: MaxTimeout, Depth: 1, Language: 2,
	}
}

// Does returns what says what a step does: of a loop the step that each iteration runs, else the step itself.
func (s *Step) Does() *Step {
	if s.Repeat == nil {
		return s
	}
	return &s.Plan.Steps[0]
}

// Text says how a loop goes on, for people: "until $last.ready, at most 20 times, every 2s".
func (r *Repeat) Text() string {
	text := fmt.Sprintf("%d times", r.Max)
	if r.Until != nil {
		text = "until " + r.Until.Text() + ", at most " + text
	}
	if r.Every > 0 {
		text += ", every " + r.Every.String()
	}
	return text
}
