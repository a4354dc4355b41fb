package agents

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// ready is a call of a round whose gate is open.
type ready struct {
	answer *agent.Answer
	id     string
	entry  string
	now    *agent.Facts // as of the record that made it ready; they must not be changed
	apart  bool         // it is compared with no other, as in runs of before
	args   json.RawMessage
	result json.RawMessage // what it has come to without being called; nil for nothing
}

// readied asks the gate of a call, since a record. It returns nothing for what no entry is called by.
func readied(l *Loop, round int, path string, since uint64, arguments json.RawMessage) (*ready, *fault.Error) {
	x, err := l.answer(round)
	if err != nil || x.answer == nil {
		return nil, err
	}
	i, known := x.places[path]
	if !known || x.answer.Calls[i].Entry == "" {
		return nil, nil
	}
	if s := x.admits.Settled[i]; l.Within && x.answer.Calls[i].Within >= 0 && s.Err != nil && s.Err.Code == fault.Locked {
		return nil, s.Err // nothing that it waits for opens it, and it has no order beside what others open
	}
	now, seen := asOf(l, round, x, i, since)
	c := &ready{answer: x.answer, id: x.answer.Calls[i].ID, entry: x.answer.Calls[i].Entry, now: now}
	bound, result, locked := now.Ready(c.entry, seen)
	if !l.Bound {
		bound, result, locked = agent.ReadyFormerly(now, c.entry, seen)
	}
	switch {
	case locked != nil:
		return nil, locked
	case result != nil:
		c.result = result
		return c, nil
	}
	c.apart = bound != nil && !l.Bound
	if c.args, err = joined(arguments, bound); err != nil {
		return nil, err
	}
	return c, nil
}

// before is what a call has come to already that was made before, and is not made again.
func (c *ready) before() (result json.RawMessage, was bool) {
	if c.apart || c.answer.Again[c.id] {
		return nil, false
	}
	result, _, was = c.now.Done(c.entry, c.args)
	return result, was
}

// refused returns what the conditions say of a call, but for those that pass, which a person is asked about or was. A question
// to a person is no call.
func (c *ready) refused(l *Loop, round int, pass func(*plan.Refusal) bool) *plan.Refusal {
	e := c.now.Entry(c.entry)
	if len(l.Definition.Guards) == 0 || e == nil || e.Kind == agent.KindAsk {
		return nil
	}
	seen := map[string]json.RawMessage{
		"input": c.now.Input(), "tool": called(e), "args": c.args, "round": strconv.AppendInt(nil, int64(round), 10),
	}
	no := l.Definition.Refuses(plan.OnCall, 0, seen)
	for no != nil && pass(no) {
		no = l.Definition.Refuses(plan.OnCall, no.Guard+1, seen)
	}
	return no
}

// asks reports whether it is a person's to let pass what a guard does not.
func asks(no *plan.Refusal) bool { return no.Asks }

// called is the name of the tool that an entry calls, as JSON.
func called(e *agent.Entry) json.RawMessage {
	name, _ := json.Marshal(cmp.Or(e.Selects(), e.Tool, e.Name)) // of a text
	return name
}

// Weigh returns what a call of a round that is ready, since a record, would be called with, and which guard has a person
// asked before, besides those that people have let it pass; nil where none does, also since it is not called.
func Weigh(l *Loop, round int, path string, since uint64, arguments json.RawMessage, passed []int) (args json.RawMessage, no *plan.Refusal) {
	c, err := readied(l, round, path, since, arguments)
	if err != nil || c == nil || c.result != nil {
		return arguments, nil
	}
	no = c.refused(l, round, func(no *plan.Refusal) bool { return no.Asks && slices.Contains(passed, no.Guard) })
	if no != nil && no.Asks {
		return c.args, no
	}
	return c.args, nil
}

// Guarded is what a guard that is a tool is asked about.
type Guarded struct {
	On    string          `json:"on"`
	Agent string          `json:"agent"`
	Step  string          `json:"step,omitempty"` // the token of the call
	Tool  string          `json:"tool,omitempty"`
	Round int             `json:"round"`
	Input json.RawMessage `json:"input,omitempty"`
	// One of these, but of an input.
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
}

// OfCall fills in what a guard is asked about a call of a round that is ready, since a record. ok is false where there
// is nothing to be asked: the call is not made, whatever a guard says.
func (g *Guarded) OfCall(l *Loop, path string, since uint64, arguments json.RawMessage) (ok bool) {
	c, err := readied(l, g.Round, path, since, arguments)
	if err != nil || c == nil || c.result != nil || c.refused(l, g.Round, asks) != nil {
		return false
	}
	_, was := c.before()
	g.Args = c.args
	return !was
}

// Message is what the guard is called with.
func (g *Guarded) Message(l *Loop) json.RawMessage {
	g.Agent = l.Definition.Name
	if f, err := l.begin(g.Round); err == nil {
		g.Input = f.Input()
	}
	body, _ := json.Marshal(g) // of JSON
	return body
}
