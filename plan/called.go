package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Template is a tool that is a plan, or an agent. A step that calls it is a composite: its arguments are the input.
type Template struct {
	Name string
	// Plan is the text of the plan; nil for an agent.
	Plan []byte
	// Agent is what a plan has to know of an agent; nil for a plan.
	Agent *Agent
	// Input is the schema of its input; nil accepts any object.
	Input *tool.Schema
	// Output is the schema of what it comes to; nil accepts anything.
	Output *tool.Schema
}

// Agent is a loop of rounds. In each its planner is called, and what that answers is run as a scope of its own.
type Agent struct {
	// Planner is the tool that is called.
	Planner string
	// MaxRounds is the most rounds, from 1.
	MaxRounds int
	// Concurrency is how many calls of a round may be ready at once; 0 for as many as there are.
	Concurrency int
	// Summary is the tool that is asked to make a summary of the oldest rounds before the planner is; empty for none.
	Summary string
	// Responds says that the planner is asked for a last answer once the loop is over, by one round more.
	Responds bool
	// Streams says that steps may begin while the planner still writes.
	Streams bool
	// Approval has a person asked about each round before anything of it runs; nil: nobody is.
	Approval *Approval
	// Time is the longest that all of it may take; 0 for no bound of its own.
	Time time.Duration
	// Guards are its checks of what goes in and out; nil for none.
	Guards Guards
	// GuardTools are the tools of those that are tools, in their order; nil for none.
	GuardTools []string
	// Flaw says why the agent can't run with the tools that there are, or not here; empty for one that can. Hint says what to
	// do then; empty: something is to be had that is missing.
	Flaw, Hint string
}

// Guards are the checks of an agent: conditions, and tools that are asked. What they say follows from what they are shown
// alone. Each is known by its place among all of them.
type Guards interface {
	// Refuses asks the conditions on something, one of OnInput to OnOutput, from a place on, and returns what the first of
	// them says that does not let it pass; nil where all do. seen is what a condition sees, by the words of references; nil is
	// the value of what can't be looked at, since it is too large.
	Refuses(on string, from int, seen map[string]json.RawMessage) *Refusal
	// Asks reports whether a person may be asked because of a condition on something.
	Asks(on string) bool
	// Tool returns the first guard on something, from a place on, that is a tool, as its place among Agent.GuardTools; ok is
	// false where there is none.
	Tool(on string, from int) (guard, tool int, ok bool)
	// Said returns what a guard that is a tool has said: nil where it lets pass what it was asked about. value is what it
	// returned, nil for what is too large to be a word of its; failed is why it returned nothing. of is the tool that is
	// called, of OnCall and OnResult.
	Said(guard int, of string, value []byte, failed *fault.Error) *Refusal
	// Rejected is the error of what a person rejected whom a guard had asked.
	Rejected(guard int, why *fault.Error) *fault.Error
	// Ends reports whether the agent fails with an error of its guards.
	Ends(err *fault.Error) bool
}

// Refusal is what a guard says that does not let something pass.
type Refusal struct {
	// Guard is its place among all of them.
	Guard int
	Err   *fault.Error
	// Asks says that a person decides whether it passes, Ends that the agent fails with the error. At most one is true.
	Asks, Ends bool
}

// What guards look at.
const (
	OnInput  = "input"  // of the agent
	OnCall   = "call"   // one that its planner makes
	OnResult = "result" // of such a call
	OnOutput = "output" // of the agent
)

// PlannerStep is the id of the step by which a round calls the planner. No step that somebody wrote has it.
const PlannerStep = "=plan"

// SummaryStep is that of the step by which a round has a summary made before it calls the planner.
const SummaryStep = "=summary"

// StreamStep is that of the step in which stands what a planner has begun before its answer was whole.
const StreamStep = "=stream"

// GuardStep begins the ids of the steps by which an agent asks guards that are tools; behind it stands a number. Within a
// round the n-th call of the guard t, of so many that are tools, has the number n times those, and t.
const GuardStep = "=guard-"

// Agent returns the agent that a step calls; nil for any other step.
func (s *Step) Agent() *Agent {
	if s.Template == nil {
		return nil
	}
	return s.Template.Agent
}

// round is the plan of the call of an agent's planner, behind that of a summary where the agent has such made. That call
// counts for nothing: whatever it comes to, the planner is called.
func (a *Agent) round() *Plan {
	p := &Plan{
		Steps: []Step{{ID: PlannerStep, Tool: a.Planner}}, Outputs: []int{0}, Timeout: MaxTimeout, Depth: 1, Language: 2,
	}
	if a.Summary != "" {
		p.Steps = append(p.Steps, Step{ID: SummaryStep, Tool: a.Summary, Optional: true})
		Order(p, 0, 1)
	}
	if a.Streams {
		begun := &Plan{Open: true, Concurrency: a.Concurrency, Timeout: MaxTimeout, Language: 2}
		p.Steps = append(p.Steps, Step{ID: StreamStep, Plan: begun, Optional: true})
	}
	if len(a.GuardTools) > 0 {
		p.Guards = &Plan{Timeout: MaxTimeout, Depth: 1, Language: 2}
		for n, name := range a.GuardTools {
			p.Guards.Steps = append(p.Guards.Steps, Step{ID: GuardStep + strconv.Itoa(n), Tool: name})
		}
	}
	return p
}

// Takes reports why a resolved input is none that a template takes; nil where it is, and for no template. explain says of
// a place in it which reference the value there came from; nil: nobody knows.
func (t *Template) Takes(input []byte, explain func(at string) string) *fault.Error {
	if t == nil || t.Input == nil {
		return nil
	}
	bad := t.Input.Check(input, nil)
	if len(bad) == 0 {
		return nil
	}
	err := tool.Refusal(t.Name, bad)
	for _, v := range bad[:min(len(bad), maxExplained)] {
		if explain == nil {
			break
		}
		if why := explain(v.Pointer); why != "" && !strings.Contains(err.Message, why) {
			err.Message += "; " + why
		}
	}
	return err
}

// maxExplained is the most places of which an error says where their values came from.
const maxExplained = 3

// Returns reports why what its plan came to is none that a template declares; nil where it is, and for no template.
func (t *Template) Returns(output []byte) *fault.Error {
	if t == nil || t.Output == nil {
		return nil
	}
	bad := t.Output.Check(output, nil)
	switch {
	case len(bad) == 0:
		return nil
	case t.Agent != nil: // its planner is told
		return fault.New(fault.InvalidValue, "what the agent would come to is against its output schema: %s: %s", cmp.Or(bad[0].Pointer, "the output"), bad[0].Message).
			WithHint("%s", cmp.Or(bad[0].Hint, `answer with an "output" as outputSchema says`))
	}
	return tool.OutputRefusal(t.Name, bad)
}

// MaxTemplates is the most bytes that the plans of all templates may have together which a plan can reach.
const MaxTemplates = 4 << 20

// mostFlaws is the most problems of a template that each call of it lists.
const mostFlaws = 20

// CheckTemplate reports what is wrong with the plan of a template's definition, held against the tools that it may call.
// The places are those of the definition.
func CheckTemplate(d *tool.Definition, c Catalog) Report {
	t := &Template{Name: d.Name, Plan: d.Plan}
	t.Input, _ = d.Input() // a flaw of the definition that others report
	t.Output, _ = d.Output()
	l := newLibrary(c, nil)
	r := l.open(d.Name, t).Report
	return r.at(func(path string) string { return "/plan" + path })
}

// CheckFlawed returns what is wrong with the plan of a definition that is refused for something else, as far as the rest
// of it can be read: so that all is told at once.
func CheckFlawed(definition []byte) []fault.Problem {
	var d struct {
		Name   string          `json:"name"`
		Plan   json.RawMessage `json:"plan"`
		Schema json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(definition, &d) != nil || len(d.Plan) == 0 || d.Plan[0] != '{' {
		return nil
	}
	return CheckTemplate(&tool.Definition{Name: d.Name, Plan: d.Plan, InputSchema: d.Schema}, nil).Problems
}

// at returns a report with other places.
func (r Report) at(place func(string) string) Report {
	for _, list := range [...][]fault.Problem{r.Problems, r.Warnings} {
		for i := range list {
			list[i].Path = place(list[i].Path)
			for k := range list[i].Paths {
				list[i].Paths[k] = place(list[i].Paths[k])
			}
		}
	}
	return r
}

// library is the templates that a document can reach, read once each, whoever calls them.
type library struct {
	catalog Catalog
	frozen  map[string]*Template // Limits.Templates
	agents  AgentReader          // nil: nobody looks into the agents that plans define
	read    map[string]*volume
	reading []string // those that are being read, each called by the one before
	bytes   int
}

// volume is a template that was read.
type volume struct {
	Report
	plan    *Plan // nil where there are problems
	steps   int   // of its plan and those within
	height  int   // how many composites are at most above a step of its plan, the template itself not counted
	longest int   // bytes of the longest token that a call in it may have
}

// open reads a template, or returns what was read of it.
func (l *library) open(name string, t *Template) *volume {
	if v := l.read[name]; v != nil {
		return v
	}
	if l.read == nil {
		l.read = map[string]*volume{}
	}
	v := &volume{}
	l.read[name] = v
	if l.bytes += len(t.Plan); l.bytes > MaxTemplates {
		v.refuse("let it call fewer", "the plans of all templates that are called have more than %d bytes", MaxTemplates)
		return v
	}
	if len(l.reading) == subjects.MaxComposites {
		v.refuse("let one of them hold the steps of the next", "more than %d templates call each other: %s", subjects.MaxComposites, strings.Join(l.reading, " → "))
		return v
	}
	l.reading = append(l.reading, name)
	p := newParser(t.Plan, l.catalog, Limits{}, l)
	p.second, p.refs.input, p.above, p.declared, p.template = true, true, 1, t.Input, t.Name
	if p.scan(t.Plan) && !p.wrapped() {
		p.read()
	}
	p.complete()
	l.reading = l.reading[:len(l.reading)-1]
	if v.Report = p.report(); len(v.Problems) == 0 {
		v.plan = p.plan
		v.measure(v.plan, 0, 0)
	}
	return v
}

func (v *volume) refuse(hint, format string, args ...any) {
	v.Problems = []fault.Problem{{Code: fault.LimitExceeded, Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// measure takes in the steps of a plan, which stand below so many composites and bytes of a token.
func (v *volume) measure(p *Plan, above, token int) {
	v.steps, v.height = v.steps+len(p.Steps), max(v.height, above)
	for i := range p.Steps {
		s := &p.Steps[i]
		own := token + 1 + len(s.ID)
		if s.ForEach != nil {
			own += len(subjects.ItemToken("", MaxItems-1))
		}
		v.longest = max(v.longest, own)
		if s.Plan != nil {
			v.measure(s.Plan, above+1, own)
		}
	}
}

// copyOf returns a plan that shares with another only what is never changed.
func copyOf(p *Plan) *Plan {
	c := *p
	c.Steps = slices.Clone(p.Steps)
	for i := range c.Steps {
		if inner := c.Steps[i].Plan; inner != nil {
			c.Steps[i].Plan = copyOf(inner)
		}
	}
	if p.Guards != nil {
		c.Guards = copyOf(p.Guards)
	}
	return &c
}

// caller reads what calls templates.
type caller struct{ *parser }

// template returns the template of a name; nil for a tool that workers host, and for one that nobody knows.
func (c caller) template(name string) *Template {
	switch {
	case c.refs.language1:
		return nil
	case c.catalog == nil:
		return c.library.frozen[name]
	}
	t, _ := c.lookup(name)
	if t.Plan == nil && t.Agent == nil {
		return nil
	}
	return &Template{Name: name, Plan: t.Plan, Agent: t.Agent, Input: t.Input, Output: t.Output}
}

// tool makes the step that calls a template a composite.
func (c caller) tool(i int, m *members) {
	s := &c.plan.Steps[i]
	if s.Tool == "" || s.Ask {
		return
	}
	if from := slices.Index(c.library.reading, s.Tool); from >= 0 {
		c.col.addf(fault.RecursivePlan, c.below(c.stepAt(i), m[stepTool]).String(), "take the call out of one of them",
			"the template %q reaches itself: %s", s.Tool, strings.Join(append(slices.Clone(c.library.reading[from:]), s.Tool), " → "))
		return
	}
	if s.Template = c.template(s.Tool); s.Template == nil {
		return
	}
	c.second = true
	if n := m[stepRetry]; n != 0 {
		kind := " is a plan"
		if s.Agent() != nil {
			kind = " is an agent"
		}
		c.invalid(c.below(c.stepAt(i), n), "remove it: the steps of its plan are tried again by the contracts of their tools",
			quotedTool(s.Tool)+kind+", which is not tried again as a whole")
	}
}

// body puts the plan of a template into the step that calls it.
func (c caller) body(i int) {
	s := &c.plan.Steps[i]
	if s.Template == nil {
		return
	}
	at := c.below(c.stepAt(i), c.node(i).tool).String()
	if s.Agent() != nil {
		c.agent(i, at)
		return
	}
	v := c.library.open(s.Tool, s.Template)
	if len(v.Problems) > 0 {
		c.broken(s.Tool, at, v)
		return
	}
	token, around := c.tokenOf(i), c.above+1
	if s.Repeat != nil {
		around++
	}
	c.expanded += v.steps
	switch {
	case around+v.height > subjects.MaxComposites:
		c.col.addf(fault.LimitExceeded, at, "let a step further out call it", "with the plans around this step and those within %q there are %d, at most %d are allowed",
			s.Tool, around+v.height, subjects.MaxComposites)
	case len(token) <= subjects.MaxStepToken && len(token)+v.longest > subjects.MaxStepToken:
		c.col.addf(fault.LimitExceeded, at, "give the step and those around it shorter ids",
			"the ids down to the steps of %q have %d bytes together, at most %d are allowed", s.Tool, len(token)+v.longest, subjects.MaxStepToken)
	case c.expanded > MaxSteps:
		c.col.addf(fault.LimitExceeded, at, "split it into several plans", "with those of the templates that it calls the plan has more than %d steps", MaxSteps)
	default:
		s.Plan = copyOf(v.plan)
	}
}

// longestCall bounds the bytes that the calls of an agent's rounds have in their tokens behind its own: those of a call
// with an id of the greatest length.
const longestCall = len("/=9999/") + subjects.MaxStepID

// agent puts the call of an agent's planner into the step that calls the agent.
func (c caller) agent(i int, at string) {
	s := &c.plan.Steps[i]
	token, around := c.tokenOf(i), c.above+1
	if s.Repeat != nil {
		around++
	}
	switch {
	case s.Agent().Flaw != "":
		named := fmt.Sprintf("the agent %q", clip(s.Tool))
		if inline(s) {
			named = "the agent of this step"
		}
		hint := cmp.Or(s.Agent().Hint, "start workers of what is missing, or apply the agent again")
		c.col.addf(fault.InvalidTool, at, hint, "%s can't run: %s", named, s.Agent().Flaw)
	case around > subjects.MaxComposites:
		c.col.addf(fault.LimitExceeded, at, "let a step further out call it", "with the plans around this step there are %d, at most %d are allowed",
			around, subjects.MaxComposites)
	case len(token)+longestCall > subjects.MaxStepToken:
		c.col.addf(fault.LimitExceeded, at, "give the step and those around it shorter ids",
			"the ids down to the calls of %q may have %d bytes together, at most %d are allowed", s.Tool, len(token)+longestCall, subjects.MaxStepToken)
	default:
		a := s.Agent()
		if s.Plan = a.round(); a.Time > 0 && (s.Timeout == 0 || a.Time < s.Timeout) {
			s.Timeout = a.Time
		}
	}
}

// Renumber gives a plan and those within it the places that their steps have behind so many others. It is for who has
// read the plan for himself: one that others use is never changed.
func Renumber(p *Plan, offset int) { p.number(offset) }

// Order lets a step begin after another is over, whatever that comes to, and ask nothing of it: it handles no failure. It is
// for who has read the plan for himself, of language 2.
func Order(p *Plan, step, other int) {
	if !OrderFormerly(p, step, other) {
		return
	}
	p.Steps[step].after = append(p.Steps[step].after, other)
	deepen(p, other)
}

// OrderFormerly is Order as it is in runs that don't need AgentOrder: a step that succeeds behind another has handled its
// failure, and waves don't keep the order. It reports whether the step did not wait for the other anyway.
func OrderFormerly(p *Plan, step, other int) bool {
	s, d := &p.Steps[step], &p.Steps[other]
	if step == other || slices.Contains(s.Deps, other) {
		return false
	}
	s.Deps = sortedOnce(append(slices.Clone(s.Deps), other))
	d.dependents = sortedOnce(append(slices.Clone(d.dependents), step))
	return true
}

// deepen puts what waits for a step into waves behind its own.
func deepen(p *Plan, step int) {
	for todo := []int{step}; len(todo) > 0; todo = todo[1:] {
		s := &p.Steps[todo[0]]
		for _, d := range s.dependents {
			if p.Steps[d].Depth <= s.Depth {
				p.Steps[d].Depth = s.Depth + 1
				p.Depth = max(p.Depth, s.Depth+2)
				todo = append(todo, d)
			}
		}
	}
}

// OnlyAfter reports whether a step waits for another by Order alone.
func (s *Step) OnlyAfter(other int) bool { return slices.Contains(s.after, other) }

// broken tells at a call why its template can't run.
func (c caller) broken(name, at string, v *volume) {
	for _, x := range v.Problems[:min(len(v.Problems), mostFlaws)] {
		if !c.col.wants(x.Code) {
			continue
		}
		place := x.Path
		if place == "" {
			place = "its plan"
		}
		c.col.add(x.Code, at, fmt.Sprintf("the template %q can't run: %s: %s", clip(name), place, x.Message), x.Hint)
	}
}

// input holds a reference to the input of the plan against what is declared of that.
func (c caller) input(t *target, at func() string) {
	if t.of != itsInput || c.declared == nil || c.above > 1 {
		return
	}
	there := c.declared.Find(elems(t.path))
	if !there.Impossible && !there.Undeclared {
		return
	}
	hint := "declare it in the input schema"
	if len(there.Names) > 0 {
		hint += "; there are: " + listSome(there.Names)
	}
	switch {
	case there.Impossible && c.col.wants(fault.ImpossibleRef):
		c.col.add(fault.ImpossibleRef, at(), fmt.Sprintf("$%s can never be there: the input schema does not allow it", clip(t.text)), hint)
	case there.Undeclared && c.col.wantsWarning():
		c.col.warn(fault.ImpossibleRef, at(), fmt.Sprintf("$%s is not declared in the input schema, which allows more than it declares", clip(t.text)), hint)
	}
}

// callLevel is a document that calls one template and does nothing else.
var callLevel = &level{
	name:    "a call of a template",
	fields:  []string{"template", "input", "timeout", "approval"},
	aliases: map[string]string{"inputs": "input", "arguments": "input", "args": "input"},
}

// The fields of such a document.
const (
	callTemplate = iota
	callInput
	callTimeout
	callApproval
)

// inCall reads a document that calls a template: as the plan of one step that does. Its input is data, whatever looks
// like a reference in it.
func inCall(p *parser, c Catalog, l Limits) (*Plan, Report) {
	at := p.here()
	m := p.fields(callLevel, p.root, at)
	name, input := "", []byte("{}")
	if n := m[callTemplate]; n == 0 || p.tape[n].Kind != jsontape.String || !subjects.ValidTool(p.str(n)) {
		p.invalid(at.in("template"), `write {"template": "refund", "input": {…}}`, "must be the name of a template")
	} else {
		name = p.str(n)
	}
	if n := m[callInput]; n != 0 {
		raw := []byte(p.src[p.tape[n].Start:p.tape[n].End])
		escaped, err := Escape(raw)
		switch f := fault.As(err); {
		case p.tape[n].Kind != jsontape.Object:
			p.invalid(p.below(at, n), `write "input": {…}`, "the input must be an object, but is "+p.shown(n))
		case err != nil && f.Code != fault.DuplicateKey && f.Code != fault.InvalidUTF8: // those are told
			p.col.addf(f.Code, p.below(at, n).String(), f.Hint, "%s", f.Message)
		default:
			input = escaped
		}
	}
	own := p.report()
	if len(own.Problems) > 0 {
		return nil, own
	}
	id := idFor(name)
	text := fmt.Appendf(nil, `{"steps":[{"id":%q,"tool":%q,"arguments":%s}],"output":"$ref:%s"`, id, name, input, id)
	for _, f := range []int{callTimeout, callApproval} {
		if n := m[f]; n != 0 {
			text = fmt.Appendf(text, `,%q:%s`, callLevel.fields[f], p.src[p.tape[n].Start:p.tape[n].End])
		}
	}
	l.MaxBytes = len(text) + 1
	called, r := parse(append(text, '}'), c, l, true)
	r = r.at(calledPlace)
	r.Warnings = append(own.Warnings, r.Warnings...)
	return called, r
}

// idFor is the id of the one step that calls a template.
func idFor(name string) string {
	id := strings.Map(func(r rune) rune {
		if subjects.IsPlain(byte(r)) { // the name of a tool is ASCII
			return r
		}
		return '_'
	}, name)
	return id[:min(len(id), maxStepID)]
}

// maxStepID is the longest id of a step.
const maxStepID = 64

// calledPlace returns where in a document that calls a template stands what was read as a part of its step.
func calledPlace(path string) string {
	for _, x := range [...][2]string{{"/steps/0/arguments", "/input"}, {"/steps/0/tool", "/template"}, {"/steps/0", ""}} {
		if rest, is := strings.CutPrefix(path, x[0]); is {
			return x[1] + rest
		}
	}
	return path
}
