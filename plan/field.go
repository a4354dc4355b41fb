package plan

import (
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

// level is an object of the plan language whose fields are known.
type level struct {
	name    string            // as in "a field of …"
	fields  []string          // in the order of their numbers
	second  int               // number of the first that came with language 2; 0 where none did
	aliases map[string]string // what models write instead, and the field they mean
	labels  []label           // likewise, where that field is absent
	other   *level            // where a field may have been misplaced from
	move    string            // hint for a field of this level that stands elsewhere
}

// The fields of a plan.
const (
	planSteps = iota
	planOutputs
	planOnFailure
	planOnMissing
	planSchedule
	planTimeout
	planApproval
	planOutput
	planConcurrency
	planOpen
	planOpenFor
)

// The fields of a step.
const (
	stepID = iota
	stepTool
	stepArguments
	stepDependsOn
	stepTimeout
	stepRetry
	stepOptional
	stepForEach
	stepIf
	stepValue
	stepApproval
	stepPlan
	stepPartial
	stepRepeat
	stepAgent
)

// The fields of for_each.
const (
	forEachIn = iota
	forEachAs
)

var (
	planLevel = &level{
		name:    "a plan",
		move:    "move it to the top of the plan, beside steps",
		fields:  []string{"steps", "output_steps", "on_failure", "on_missing", "schedule", "timeout", "approval", "output", "concurrency", "open", "open_for"},
		second:  planOutput,
		aliases: map[string]string{"outputs": "output_steps"},
	}
	stepLevel = &level{
		name:    "a step",
		move:    "move it into the step that it is for",
		fields:  []string{"id", "tool", "arguments", "depends_on", "timeout", "retry", "optional", "for_each", "if", "value", "approval", "plan", "partial", "repeat", "agent"},
		second:  stepPlan,
		aliases: stepAliases,
		labels:  stepLabels,
	}
	forEachLevel = &level{name: "for_each", fields: []string{"in", "as"}}
	retryLevel   = &level{name: "retry", fields: []string{"max_attempts", "backoff"}}
	backoffLevel = &level{name: "backoff", fields: []string{"strategy", "initial_ms", "max_ms", "jitter"}}
)

func init() { planLevel.other, stepLevel.other = stepLevel, planLevel }

// maxFields is the most that any level has.
const maxFields = 15

// members are the values of an object's known fields, as nodes; 0 for those that are absent (the root is no value of a
// field, so 0 is free).
type members [maxFields]int32

// fields reads the members of an object of a level, and reports those that it doesn't know. A near miss is an error,
// but it is read as what it was meant to be, so that the report says nothing about what only seems to be missing.
func (p *parser) fields(l *level, object int32, at place) (m members) {
	var meant members
	var labels []int32
	end := p.tape[object].Next
	for i := object + 1; i < end; {
		value := i + 1
		name := p.keyName(i)
		if f := p.numberIn(l, name); f >= 0 && !p.refs.later(name) {
			if m[f] == 0 { // a second one is a duplicate_key
				m[f] = value
			}
		} else if slices.ContainsFunc(l.labels, func(x label) bool { return x.name == name }) {
			labels = append(labels, i)
		} else if f := p.unknownField(slip{p, l, object, i}, at); f >= 0 && meant[f] == 0 {
			meant[f] = value
		}
		i = p.tape[value].Next
	}
	for f := range l.fields {
		if m[f] == 0 {
			m[f] = meant[f]
		}
		if m[f] != 0 && p.tape[m[f]].Kind == jsontape.Null { // a null option means absent
			m[f] = 0
		}
	}
	p.byLabels(l, labels, &m, at)
	return m
}

func (l *level) number(name string) int {
	for i, f := range l.fields {
		if f == name {
			return i
		}
	}
	return -1
}

// known returns the fields of a level that the plan's language has.
func (p *parser) known(l *level) []string {
	if p.refs.language1 && l.second > 0 {
		return l.fields[:l.second]
	}
	return l.fields
}

// numberIn returns the number of a field that the plan's language has; -1 for any other name.
func (p *parser) numberIn(l *level, name string) int { return slices.Index(p.known(l), name) }

// unknownField reports a field that the level doesn't know, and gives the number of the one that was meant, or -1.
func (p *parser) unknownField(s slip, at place) int {
	l, key, name := s.level, s.key, s.name()
	if meant := s.alias(); meant != "" {
		return p.meantField(s, meant, at)
	}
	if l.other != nil {
		if l == stepLevel && name == "until" && !p.refs.language1 {
			p.fieldProblem(at, name, `"until" is a field of repeat, not of a step`, `write "repeat": {`+p.written("until", key+1)+"}")
			return -1
		}
		if hint, is := reserved[name]; is && !p.refs.language1 {
			p.fieldProblem(at, name, fmt.Sprintf("%q is reserved and not available yet", name), hint)
			p.strangers = append(p.strangers, stranger{key: key, warning: -1})
			return -1
		}
		if hint := s.refused(); hint != "" {
			p.fieldProblem(at, name, s.why(), hint)
			if l == stepLevel { // it may be an argument that stands beside the others
				p.strangers = append(p.strangers, stranger{key: key, warning: -1})
			}
			return -1
		}
		if p.numberIn(l.other, name) >= 0 && !p.refs.later(name) && !(l == planLevel && name == "plan") { // it is meant for steps, or holds them
			p.fieldProblem(at, name, fmt.Sprintf("%q is a field of %s, not of %s", name, l.other.name, l.name), p.moveHint(s))
			return -1
		}
	}
	if hint := s.inward(); hint != "" {
		p.fieldProblem(at, name, s.why(), hint)
		return -1
	}
	if meant := text.NearMiss(name, p.known(l)...); meant != "" && !p.refs.lacks(meant) {
		return p.meantField(s, meant, at)
	}
	p.foreign(l, key, at)
	return -1
}

// meantField reports a field that stands for another one, and gives that one's number if the value can be read as its
// own.
func (p *parser) meantField(s slip, meant string, at place) int {
	hint, read := s.meant(meant)
	p.fieldProblem(at, s.name(), fmt.Sprintf("%q is not a field of %s", clip(s.name()), s.level.name), hint)
	if !read {
		if s.level == stepLevel {
			p.strangers = append(p.strangers, stranger{key: s.key, warning: -1})
		}
		return -1
	}
	return s.level.number(meant)
}

// moveHint says where a field of the other level belongs.
func (p *parser) moveHint(s slip) string {
	l, name, value := s.level, s.name(), s.value()
	if p.tape[value].Kind == jsontape.Null {
		return "leave it out"
	}
	if l == stepLevel && name == "steps" && !p.refs.language1 {
		return "if they are a plan of the step's own, write \"plan\": {" + p.written(name, value) + "}"
	}
	if l == stepLevel && p.fieldOf(s.object, "plan") != 0 {
		return "move it into the plan of the step: " + p.written(name, value)
	}
	if name == "on_failure" && p.tape[value].Kind == jsontape.String && p.str(value) == "continue" {
		return `write "optional": true if others can do without this step; "on_failure" stands beside "steps", and "continue" is its default`
	}
	return l.other.move + ": " + p.written(name, value)
}

// foreign warns of a field that nobody knows. It is remembered: it may be what makes something else go wrong.
func (p *parser) foreign(l *level, key int32, at place) {
	name := p.keyName(key)
	warning := -1
	if p.col.wantsWarning() {
		warning = len(p.col.Warnings)
		p.col.warn(fault.UnknownField, string(jsontape.AppendToken([]byte(at.String()), name)), fmt.Sprintf("%q is not a field of %s; it is ignored", clip(name), l.name), "")
	}
	if l == planLevel || l == stepLevel {
		p.strangers = append(p.strangers, stranger{key: key, warning: warning})
	}
}

func (p *parser) fieldProblem(at place, name, message, hint string) {
	if p.col.wants(fault.UnknownField) {
		p.col.add(fault.UnknownField, string(jsontape.AppendToken([]byte(at.String()), name)), message, hint)
	}
}

// keyName returns the text of a key.
func (p *parser) keyName(i int32) string {
	n := &p.tape[i]
	if n.Flags&jsontape.Escaped == 0 {
		return p.src[n.Start+1 : n.End-1]
	}
	return string(jsontape.AppendUnescaped(nil, p.src[n.Start+1:n.End-1]))
}

// str returns the text of a string node.
func (p *parser) str(i int32) string { return p.keyName(i) }
