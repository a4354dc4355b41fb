package plan

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// AgentReader reads the agents that steps of plans define themselves, in their field "agent". A Catalog may be one.
type AgentReader interface {
	// InlineAgent returns what a plan has to know of such an agent. It can't be called where the report has problems; the
	// places are those within the field. name is what its run calls it (InlineName), step the id of its step.
	InlineAgent(name, step string, definition []byte) (Tool, Report)
}

// InlineAgents is the need of a plan that can reach an agent which a plan defines itself.
const InlineAgents = "inline-agents"

// inlinePrefix begins the name of an agent that a plan defines itself. No tool of a registry has such a name.
const inlinePrefix = "="

// InlineName is the name of an agent that a step defines itself: the ids of the steps down to it, behind the name of the
// template that they stand in; empty for the plan that was submitted.
func InlineName(template, step string) string {
	if template == "" {
		return inlinePrefix + step
	}
	return inlinePrefix + template + ":" + step
}

// IsInline reports whether a name is that of an agent which a plan defines itself.
func IsInline(name string) bool { return strings.HasPrefix(name, inlinePrefix) }

// inlineReader reads the steps that define their agents themselves.
type inlineReader struct{ *parser }

// form reads such a step: it is as one that calls an agent of the registry, under a name that none there has.
func (p inlineReader) form(i int, m *members) {
	p.second = true
	at := p.stepAt(i)
	n, s := m[stepAgent], &p.plan.Steps[i]
	if t := m[stepTool]; t != 0 {
		p.invalid(p.below(at, n), "remove one of them, or make two steps of it", `a step has a "tool" or an "agent", not both`)
		p.stepTool(i, t)
	}
	if r := m[stepRetry]; r != 0 {
		p.invalid(p.below(at, r), "remove it: the calls of its rounds are tried again by the contracts of their tools", "an agent is not tried again as a whole")
	}
	p.node(i).tool = n
	if k := p.tape[n].Kind; k != jsontape.Object {
		p.invalid(p.below(at, n), `write "agent": {"planner": {"tool": "model"}, "tools": ["search"]}; one of the registry is called by its name, as "tool"`,
			"an agent must be an object, but is "+p.shown(n))
		return
	}
	s.Tool = InlineName(p.template, subjects.InScope(p.within, s.ID))
	if p.library.agents == nil {
		s.Template = p.library.frozen[s.Tool]
		return
	}
	p.read(i, p.below(at, n).String(), []byte(p.src[p.tape[n].Start:p.tape[n].End]))
}

// read has an agent read, and tells what is wrong with it where it stands.
func (p inlineReader) read(i int, at string, definition []byte) {
	s := &p.plan.Steps[i]
	id := s.ID
	if !subjects.ValidStepID(id) { // which is told
		id = "agent"
	}
	t, r := p.library.agents.InlineAgent(s.Tool, id, definition)
	for _, x := range r.Problems {
		if p.col.wants(x.Code) {
			p.col.add(x.Code, at+x.Path, inlineText(at, x.Message), inlineText(at, x.Hint))
		}
	}
	for _, x := range r.Warnings {
		if p.col.wantsWarning() {
			p.col.warn(x.Code, at+x.Path, inlineText(at, x.Message), inlineText(at, x.Hint))
		}
	}
	if p.tools == nil {
		p.tools = map[string]knownTool{}
	}
	p.tools[s.Tool] = knownTool{t, len(r.Problems) == 0}
	if no := t.Refused; no != nil {
		p.col.addf(fault.NotPermitted, at, no.Hint, "the run may not call the agent: %s", no.Why)
	}
	if t.Agent != nil {
		s.Template = &Template{Name: s.Tool, Agent: t.Agent, Input: t.Input, Output: t.Output}
	}
}

// beside reports the fields that say what a step does, where another one says it.
func (p inlineReader) beside(i int, m *members, is int) {
	if n := m[stepAgent]; n != 0 {
		p.invalid(p.below(p.stepAt(i), n), "remove one of them, or make two steps of it",
			`a step has an "agent" or a "`+stepLevel.fields[is]+`", not both`)
	}
}

// inline reports whether the plan can reach an agent that a plan defines itself.
func inline(s *Step) bool { return s.Agent() != nil && IsInline(s.Template.Name) }

// newLibrary returns one that has read nothing.
func newLibrary(c Catalog, frozen map[string]*Template) *library {
	l := &library{catalog: c, frozen: frozen}
	l.agents, _ = c.(AgentReader)
	return l
}

// inlineText returns what is said of an agent with the other places that it names, which are those of a definition, as
// places of the plan.
func inlineText(at, text string) string { return strings.ReplaceAll(text, " /agent/", " "+at+"/") }
