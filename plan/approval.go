package plan

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// AskTool is the built-in tool that asks a person. Its step is no call of a worker: it waits for an answer.
const AskTool = tool.AskTool

// Approval says that a person is asked before a step, or the plan, begins (plan language, "Questions").
type Approval struct {
	// Timeout is how long an answer may take; 0 for as long as the run.
	Timeout time.Duration
	// ApproveOnTimeout says that no answer in time is an approval; else it is a rejection. It never is one where the
	// tool's contract asks.
	ApproveOnTimeout bool
	// All says that the items of a for_each are asked for together, before any of them; else each is by itself.
	All bool
	// HasText says that the plan words the question.
	HasText bool

	text template
}

// The fields of an approval.
const (
	approvalAsk = iota
	approvalTimeout
	approvalOnTimeout
	approvalAll
)

var approvalLevel = &level{
	name:   "approval",
	fields: []string{"ask", "timeout", "on_timeout", "all"},
	labels: []label{
		{"question", approvalAsk}, {"prompt", approvalAsk}, {"message", approvalAsk}, {"text", approvalAsk},
		{"description", approvalAsk}, {"reason", approvalAsk}, {"title", approvalAsk},
	},
}

// Question returns the text of a step's question, with its references resolved: empty where the plan words none. item
// is nil where there is none; result is as for Arguments, and so are the errors.
func (r *Resolver) Question(
	step int, item []byte, result func(dep int) (json []byte, ok bool),
) (string, *fault.Error) {
	return r.question(r.plan.Steps[step].Approval, item, result)
}

// Text returns the text of a plan's own question, which refers to nothing; empty where the plan words none.
func (a *Approval) Text() string {
	r := Resolver{plan: &Plan{}}
	text, _ := r.question(a, nil, func(int) ([]byte, bool) { return nil, false }) // it refers to nothing
	return text
}

func (r *Resolver) question(a *Approval, item []byte, result func(int) ([]byte, bool)) (string, *fault.Error) {
	if a == nil || !a.HasText {
		return "", nil
	}
	r.left = maxGoneThrough
	value, err := r.fill(&a.text, item, result)
	return unquoted(value), err
}

// unquoted returns the text of a JSON string, and anything else as it is written.
func unquoted(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return string(value)
	}
	return string(jsontape.AppendUnescaped(nil, string(value[1:len(value)-1])))
}

// approval reads what of an approval stands by itself: all but its text. step is -1 for the plan's.
func (p *parser) approval(n int32, parent place, step int) (a *Approval, text int32) {
	if n == 0 || p.refs.language1 {
		return nil, 0
	}
	at := p.below(parent, n)
	switch p.tape[n].Kind {
	case jsontape.False:
		return nil, 0
	case jsontape.True:
		p.second = true
		return &Approval{}, 0
	case jsontape.Object:
	default:
		hint := `write "approval": true, or {"ask": "May this run?", "timeout": "24h", "on_timeout": "reject"}`
		if p.tape[n].Kind == jsontape.String {
			hint = `write "approval": {"ask": ` + quoteJSON(clip(p.str(n))) + "}"
		}
		p.invalid(at, hint, "must be true or an object, but is "+p.shown(n))
		return nil, 0
	}
	p.second = true
	m := p.fields(approvalLevel, n, at)
	a = &Approval{HasText: m[approvalAsk] != 0}
	a.Timeout, _ = p.duration(m[approvalTimeout], at)
	a.ApproveOnTimeout = p.oneOf(m[approvalOnTimeout], at, "reject", "approve") == 1
	if n := m[approvalAll]; n != 0 {
		a.All = p.flag(n, at)
		if a.All && step < 0 {
			p.invalid(p.below(at, n), "leave it out", `"all" is for the items of a for_each, of which a plan has none`)
		}
	}
	return a, m[approvalAsk]
}

// flag reads true or false.
func (p *parser) flag(n int32, parent place) bool {
	switch p.tape[n].Kind {
	case jsontape.True:
		return true
	case jsontape.False:
	default:
		p.invalid(p.below(parent, n), p.boolHint(n), "must be true or false, but is "+p.shown(n))
	}
	return false
}

// asks reads the question's text of a step, once all ids are known, and returns the number of references in it.
func (p *parser) asks(i int) (refs int) {
	n, s := p.node(i).question, &p.plan.Steps[i]
	if n == 0 {
		return 0
	}
	w := walker{p: p, step: i, src: p.src, tape: p.tape, root: n, asks: true}
	if s.ForEach != nil && !s.Approval.All {
		w.item = s.ForEach.As
	}
	if p.wantsText(n, w.rootAt()) {
		w.compile(&s.Approval.text)
		p.col.fitsPeople(len(unquoted(s.Approval.text.known(nil))), w.rootAt())
	}
	return w.refs
}

// fitsPeople refuses a text of which so many bytes are known, where nobody would be shown that much.
func (c *collector) fitsPeople(size int, at string) {
	if err := tool.TooLargeToAsk(size); err != nil && c.wants(fault.TooLarge) {
		c.add(fault.TooLarge, at, err.Message, "say in short what the person is to look at: the arguments are shown beside the text")
	}
}

// wantsText refuses a question that is no text.
func (p *parser) wantsText(n int32, at string) bool {
	if p.tape[n].Kind == jsontape.String {
		return true
	}
	if p.col.wants(fault.InvalidValue) {
		p.col.add(fault.InvalidValue, at, "a question must be a string, but is "+p.shown(n), `write "ask": "Refund ${ref:order.amount}?"`)
	}
	return false
}

// questionAt returns the place of the text of a step's question.
func (p *parser) questionAt(step int) string {
	s := p.node(step)
	return p.below(p.below(p.stepAt(step), s.approval), s.question).String()
}

// planApproval reads the plan's own approval, whose text refers to nothing: no step has run.
func (p *parser) planApproval(n int32) {
	here := p.here()
	if n != 0 && p.above > 0 {
		p.invalid(p.below(here, n), "move it beside the plan, into the step that has it", "a plan within a step has no approval of its own")
		return
	}
	a, text := p.approval(n, here, -1)
	p.plan.Approval = a
	if text == 0 {
		return
	}
	at := p.below(p.below(here, n), text)
	if !p.wantsText(text, at.String()) {
		return
	}
	p.col.fitsPeople(len(p.str(text)), at.String())
	a.text.head = p.src[p.tape[text].Start:p.tape[text].End]
	if p.refs.mayRefer(p.str(text)) {
		p.invalid(at, "say what the plan does in words, or ask in the step that it is for", "nothing has run when the plan is asked for, so there is nothing to refer to")
	}
}

// questionsFit refuses options that mean nothing where a person is asked, or where nobody is.
func (p *parser) questionsFit(i int) {
	s, at := &p.plan.Steps[i], p.stepAt(i)
	if a := p.node(i).approval; a != 0 && s.Ask && s.Approval != nil {
		p.invalid(p.below(at, a), "leave it out", "a step that asks a person needs no approval: nothing is done before the answer")
	}
	if s.Retry != nil && s.Ask {
		p.invalid(at.in("retry"), "leave it out", "a question is asked once, and has no attempts")
	}
	if s.Approval != nil && s.Approval.ApproveOnTimeout && p.catalog != nil && !s.Ask && s.Tool != "" {
		if t, _ := p.lookup(s.Tool); t.Approval {
			p.invalid(p.below(at, p.node(i).approval), `write "on_timeout": "reject"`, "the contract of "+quotedTool(s.Tool)+" asks for an approval, which no timeout can stand for")
		}
	}
}
