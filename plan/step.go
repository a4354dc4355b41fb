package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// step reads what of a step stands by itself: all but depends_on, the list of for_each and arguments.
func (p *parser) step(i int, n int32) {
	at := p.stepAt(i)
	if k := p.tape[n].Kind; k != jsontape.Object {
		p.invalid(at, `a step is an object: {"id": "a", "tool": "…", "arguments": {}}`, "a step must be an object, but is "+k.String())
		return
	}
	from := int32(len(p.strangers))
	m := p.fields(stepLevel, n, at)
	s := &p.plan.Steps[i]
	*p.node(i) = stepNodes{
		object: n, strangers: [2]int32{from, int32(len(p.strangers))}, arguments: m[stepArguments], dependsOn: m[stepDependsOn], tool: m[stepTool],
		forEach: m[stepForEach], condition: m[stepIf], value: m[stepValue], approval: m[stepApproval], plan: m[stepPlan], repeat: m[stepRepeat],
	}
	p.stepID(i, m[stepID])
	p.form(i, &m)
	s.Timeout, _ = p.duration(m[stepTimeout], at)
	s.Retry = p.retry(m[stepRetry], at)
	p.forEach(i)
	repeatReader{p}.read(i)
	s.Approval, p.node(i).question = p.approval(m[stepApproval], at, i)
	p.questionsFit(i)
	if o := m[stepOptional]; o != 0 {
		s.Optional = p.flag(o, at)
	}
}

func (p *parser) stepID(i int, n int32) {
	at := p.stepAt(i)
	if n == 0 {
		p.col.addf(fault.InvalidID, at.String(), p.idFrom(i), "the step has no id")
		return
	}
	if p.tape[n].Kind != jsontape.String {
		if p.tape[n].Kind == jsontape.Number { // known all the same, so that references to it raise no second problem
			p.know(i, p.src[p.tape[n].Start:p.tape[n].End])
		}
		hint := "write it in quotes"
		if p.tape[n].Kind == jsontape.Number {
			hint = fmt.Sprintf(`write "id": "%s"`, p.shown(n))
		}
		p.invalid(p.below(at, n), hint, "an id must be a string, but is "+p.shown(n))
		return
	}
	id := p.str(n)
	p.plan.Steps[i].ID = id
	if !subjects.ValidStepID(id) && p.col.wants(fault.InvalidID) {
		p.col.add(fault.InvalidID, p.below(at, n).String(), fmt.Sprintf("%q is no step id", clip(id)), idGrammar(id))
	}
	if first, taken := p.plan.ids.find(id); taken && p.order != nil && int(first) != i {
		p.col.addf(fault.DuplicateStep, p.below(at, n).String(), fmt.Sprintf("give it another, as in %q: an id is used once in a run, unless its step waits and is discarded with this", clip(id)+"_2"),
			"the id %q is used already", clip(id))
		return
	} else if taken && p.order == nil {
		p.col.addf(fault.DuplicateStep, p.below(at, n).String(), "give each step an id of its own, and mend the references to it",
			"the id %q is used by step number %d already", clip(id), first+1)
		return
	}
	p.know(i, id)
}

func (p *parser) know(i int, id string) {
	if _, taken := p.plan.ids.find(id); !taken {
		p.plan.ids.note(id, i)
	}
}

func idGrammar(id string) string {
	const grammar = "an id is 1 to 64 of A-Z a-z 0-9 _ -"
	better := strings.Map(func(r rune) rune {
		if r < 0x80 && subjects.IsPlain(byte(r)) {
			return r
		}
		return '_'
	}, id)
	if subjects.ValidStepID(better) {
		return grammar + fmt.Sprintf(", as in %q", better)
	}
	return grammar
}

func (p *parser) stepTool(i int, n int32) {
	at := p.stepAt(i)
	if n == 0 {
		p.col.addf(fault.InvalidID, at.String(), p.toolFrom(i), "the step has no tool")
		return
	}
	at = p.below(at, n)
	if p.tape[n].Kind != jsontape.String {
		hint := "write the tool's name in quotes"
		if name, arguments := p.calledIn(n); name != 0 {
			hint = "write " + p.written("tool", name)
			if arguments != 0 {
				hint += ", " + p.written("arguments", arguments)
			}
		}
		p.invalid(at, hint, "a tool must be a string, but is "+p.shown(n))
		return
	}
	name := p.str(n)
	p.plan.Steps[i].Tool = name
	switch {
	case name == AskTool && !p.refs.language1:
		p.plan.Steps[i].Ask, p.second = true, true
	case name == RecursiveTool:
		p.col.addf(fault.RecursivePlan, at.String(), "put the steps of the inner plan into this one, or submit it as a plan of its own",
			"a step can't call %s", RecursiveTool)
	case !subjects.ValidTool(name):
		if p.col.wants(fault.InvalidID) {
			p.col.add(fault.InvalidID, at.String(), fmt.Sprintf("%q is no tool name", clip(name)), p.toolHint(name, "a tool's name is 1 to 128 of A-Z a-z 0-9 _ . : / -"))
		}
	case p.catalog != nil:
		t, ok := p.lookup(name)
		if no := t.Refused; no != nil {
			what := strconv.Quote(name)
			if no.Unseen && p.template != "" { // who called the template need not know what it is made of
				what = "the tool of this step"
			}
			p.col.addf(fault.NotPermitted, at.String(), no.Hint, "the run may not call %s: %s", what, no.Why)
		}
		if !ok && !slices.Contains(p.library.reading, name) && p.col.wants(fault.UnknownTool) {
			p.col.add(fault.UnknownTool, at.String(), fmt.Sprintf("there is no tool %q", name), p.toolHint(name, ""))
		}
	}
}

// toolHint suggests a tool, or otherwise, or names the tools there are.
func (p *parser) toolHint(name, otherwise string) string {
	if p.catalog == nil {
		return otherwise
	}
	if p.names == nil {
		p.names = slices.Sorted(slices.Values(p.catalog.Names()))
	}
	near := p.near.nearest(name, p.names)
	switch {
	case asksPerson(name) && (len(near) == 0 || text.Likeness(name, near[0]) <= text.HoldsOther):
		return `write "tool": "ask", "arguments": {"question": "…"}, which asks a person`
	case len(near) > 0:
		return didYouMean(near, strconv.Quote)
	case otherwise != "":
		return otherwise
	case len(p.names) == 0:
		return "no tools are registered"
	}
	return "there are: " + listSome(p.names)
}

// asksPerson reports whether a tool of this name would ask a person.
func asksPerson(name string) bool {
	name = strings.ToLower(name)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}
	return has("user", "human", "person", "people", "question") &&
		(strings.HasPrefix(name, "ask") || has("input", "prompt", "confirm", "approv", "feedback", "answer"))
}

// retry reads {"max_attempts","backoff"}.
func (p *parser) retry(n int32, parent place) *tool.Retry {
	if n == 0 {
		return nil
	}
	at := p.below(parent, n)
	if p.tape[n].Kind != jsontape.Object {
		hint := `write "retry": {"max_attempts": 3}`
		if p.tape[n].Kind == jsontape.Number {
			hint = p.retriesHint(n)
		}
		p.invalid(at, hint, "must be an object, but is "+p.shown(n))
		return nil
	}
	const (
		maxAttempts = iota
		backoff
	)
	m := p.fields(retryLevel, n, at)
	r := &tool.Retry{}
	if v, ok := p.number(m[maxAttempts], at, 1, tool.MaxAttempts, true); ok {
		r.MaxAttempts = int(v)
	}
	r.Backoff = p.backoff(m[backoff], at)
	return r
}

// backoff reads {"strategy","initial_ms","max_ms","jitter"}.
func (p *parser) backoff(n int32, parent place) *tool.Backoff {
	if n == 0 {
		return nil
	}
	at := p.below(parent, n)
	if p.tape[n].Kind != jsontape.Object {
		p.invalid(at, `write "backoff": {"strategy": "exponential", "initial_ms": 500}`, "must be an object, but is "+p.shown(n))
		return nil
	}
	const (
		strategy = iota
		initial
		most
		jitter
	)
	m := p.fields(backoffLevel, n, at)
	b := &tool.Backoff{}
	words := []string{tool.Exponential, tool.Linear, tool.Constant, tool.None}
	if m[strategy] != 0 {
		b.Strategy = words[p.oneOf(m[strategy], at, words...)]
	}
	limit := float64(tool.MaxDuration.Milliseconds())
	ok := true
	millis := func(field int, least float64) time.Duration {
		v, read := p.number(m[field], at, least, limit, true)
		ok = ok && (read || m[field] == 0)
		return time.Duration(v) * time.Millisecond
	}
	b.Initial, b.Max = millis(initial, 0), millis(most, 1)
	b.Jitter, _ = p.number(m[jitter], at, 0, 1, false)
	if ok && b.Max > 0 && b.Initial > b.Max {
		p.invalid(p.below(at, m[most]), "", "is less than initial_ms")
	}
	return b
}

// number reads a number from least to most.
func (p *parser) number(n int32, parent place, least, most float64, whole bool) (float64, bool) {
	if n == 0 {
		return 0, false
	}
	if p.tape[n].Kind == jsontape.Number {
		v, err := strconv.ParseFloat(p.src[p.tape[n].Start:p.tape[n].End], 64)
		if err == nil && v >= least && v <= most && (!whole || v == math.Trunc(v)) {
			return v, true
		}
	}
	what := "a number"
	if whole {
		what = "a whole number"
	}
	p.invalid(p.below(parent, n), p.numberHint(n, least, most, whole), fmt.Sprintf("must be %s from %v to %v, but is %s", what, int64(least), int64(most), p.shown(n)))
	return 0, false
}
