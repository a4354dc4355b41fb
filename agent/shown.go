package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Shown is an entry as a planner is shown it.
type Shown struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Locked says why it can't be called yet, and what to call first; empty for one that can.
	Locked string `json:"locked,omitempty"`
}

// Shown returns the entries that a planner is shown now, in the order of the definition: those whose facade is open and
// whose state it is, also where they are locked for something else.
func (f *Facts) Shown() (all []Shown) {
	for e := range f.entries {
		if f.shown(e) {
			all = append(all, f.show(e))
		}
	}
	return all
}

func (f *Facts) show(e *Entry) Shown {
	s := Shown{e.Name, guide{f}.description(e), e.InputSchema, e.OutputSchema, f.locked(e)}
	if f.opened.has(e.Name) && e.Kind == KindFacade && len(e.facade.categories) > 0 {
		s.InputSchema, _ = optionalArguments(e.InputSchema) // it is its own guide now
	}
	return s
}

// optionalArguments returns a schema without what it requires.
func optionalArguments(schema json.RawMessage) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		return schema, false
	}
	delete(members, "required")
	return marshal(members), true
}

// Gate decides about a call as of these facts. An error (locked, unknown_tool) is what the call fails with. An answer is
// what it has succeeded with, without being made: that of a tool that is called once. Where both are nil, it may be made.
func (f *Facts) Gate(name string) (answer json.RawMessage, err *fault.Error) {
	_, answer, err = gate(f, name, f)
	return answer, err
}

// Free reports whether a call of an entry is let pass by Ready whatever the facts are, with nothing bound, and whatever it is
// called with: it waits for nothing, is no call that is made once, and asks no guard.
func (d *Definition) Free(name string) bool {
	for _, e := range d.entries {
		switch {
		case e.Kind == KindFacade && e.facade.selects != "": // whose tool may return an entry of that name
			return false
		case e.Name == name:
			return len(d.Guards) == 0 && e.Kind == KindTool && len(e.clauses)+len(e.binds) == 0 && !e.HasOnce && !e.Destructive
		}
	}
	return false
}

// Ready is Gate for a call of a plan that is ready. The facts are those of the record that made it so; seen are those of
// the beginning of its round with what the calls added that it waits for (Admission.Behind): on what it acts is never a
// matter of which worker was slower. bound are the arguments that its planner does not see, as an object; nil for none.
// The error is invalid_arguments where one of them refers to what is not there.
func (f *Facts) Ready(name string, seen *Facts) (bound, answer json.RawMessage, err *fault.Error) {
	e, answer, err := gate(f, name, seen)
	if err != nil || answer != nil {
		return nil, answer, err
	}
	bound, err = seen.bind(e)
	if err != nil {
		return nil, nil, err
	}
	return bound, nil, nil
}

// ReadyFormerly is Ready as it is in runs that don't need "bound-arguments": null stands for what is not there.
func ReadyFormerly(f *Facts, name string, seen *Facts) (bound, answer json.RawMessage, err *fault.Error) {
	e, answer, err := gate(f, name, seen)
	if err != nil || answer != nil {
		return nil, answer, err
	}
	bound, _ = seen.bind(e)
	return bound, nil, nil
}

// gate asks whether a call of an entry may be made, or what it has come to without.
func gate(f *Facts, name string, seen *Facts) (e *Entry, answer json.RawMessage, err *fault.Error) {
	if e = f.Entry(name); e == nil {
		return nil, nil, f.unknown(name)
	}
	for i := range e.clauses {
		of := f
		if e.clauses[i].kind == clauseBound {
			of = seen
		}
		if why := of.without(e, &e.clauses[i]); why != "" {
			return nil, nil, fault.New(fault.Locked, "%s", why)
		}
	}
	if e.HasOnce && f.succeeded.has(e.Tool) {
		return nil, quoteJSON(strings.TrimSpace(fmt.Sprintf(alreadyLoaded, e.Name, e.Once))), nil
	}
	return e, nil, nil
}

// Acts reports whether what a call of an entry is made with, or acts upon, is a matter of the calls that it waits for: of no
// other does Ready look at what is seen.
func (f *Facts) Acts(name string) bool {
	e := f.Entry(name)
	return e != nil && (slices.ContainsFunc(e.clauses, func(c clause) bool { return c.kind == clauseBound }) ||
		slices.ContainsFunc(e.binds, func(b bind) bool { return b.ref != nil && b.ref.word != ofInput && b.ref.word != ofRound }))
}

// BoundArgument is one that a planner does not see.
type BoundArgument struct {
	Name string
	// Reference is what it refers to, as it was written; nil for a value. Moves says that calls may come between that change
	// what is there.
	Reference json.RawMessage
	Moves     bool
	// Value is what stands there as of these facts; nil for nothing.
	Value json.RawMessage
}

// Bound returns the arguments of an entry that its planner does not see.
func (f *Facts) Bound(name string) (all []BoundArgument) {
	e := f.Entry(name)
	if e == nil {
		return nil
	}
	for _, b := range e.binds {
		x := BoundArgument{Name: b.name, Value: b.raw}
		if b.ref != nil {
			x.Reference, x.Moves = b.raw, b.ref.word != ofInput
			x.Value, _ = f.bindTo(e, b.ref)
		}
		all = append(all, x)
	}
	return all
}

// Compared reports whether a call of an entry that was made before is not made again, and arguments are bound to it; moves,
// whether these are a matter of the calls that it waits for.
func Compared(f *Facts, name string) (is, moves bool) {
	e := f.Entry(name)
	if e == nil || !e.Destructive || len(e.binds) == 0 {
		return false, false
	}
	return true, slices.ContainsFunc(e.binds, func(b bind) bool { return b.ref != nil && b.ref.word != ofInput })
}

// Sent returns what a call of an entry is sent whose planner wrote some arguments: with what is bound to it as of facts. Where
// that is not there, or the arguments are no object, it is what was written.
func Sent(f *Facts, name string, written json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(written, &all) != nil {
		return written
	}
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for _, b := range f.Bound(name) {
		if all[b.Name] = b.Value; b.Value == nil {
			return written
		}
	}
	return marshal(all)
}

// bind returns the arguments of an entry that its planner does not see; nil where there are none. null stands for those that
// refer to what is not there, of the first of which the error is.
func (f *Facts) bind(e *Entry) (bound json.RawMessage, err *fault.Error) {
	if len(e.binds) == 0 {
		return nil, nil
	}
	args := map[string]json.RawMessage{}
	for _, b := range e.binds {
		args[b.name] = b.raw
		if b.ref == nil {
			continue
		}
		v, is := f.bindTo(e, b.ref)
		if args[b.name] = v; is {
			continue
		}
		args[b.name] = json.RawMessage("null")
		if err == nil {
			err = unbound(e, &b)
		}
	}
	return marshal(args), err
}

// unbound says that a bound argument refers to what is not there, and who may put it there.
func unbound(e *Entry, b *bind) *fault.Error {
	hint := "call what puts it there before, or go on without this tool"
	switch b.ref.word {
	case ofInput:
		hint = "whoever calls the agent has to say it in the input; go on without this tool"
	case ofState:
		hint = "let a call write it to the state before"
	case ofArtifact:
		hint = "call a tool that returns such an object before"
	case ofArgs:
		hint = fmt.Sprintf("call '%s' with it before", e.within.Name)
	}
	return fault.New(fault.InvalidArguments, "'%s' was not called: its argument %q is bound to %s, and nothing is there", e.Name, b.name, b.ref).WithHint("%s", hint)
}

// bindTo finds what a bound argument refers to.
func (f *Facts) bindTo(e *Entry, r *reference) ([]byte, bool) {
	switch {
	case r.word == ofArtifact && e.chain != nil:
		v, _ := f.board.bound.get(e.chain.typ)
		return within(v, r.path)
	case r.word == ofArgs:
		return within(f.openingOf(e.within.Name).args, r.path)
	}
	return f.look(*r)
}

// locked returns why an entry can't be called now, of the first of its clauses that does not hold; empty where it can.
func (f *Facts) locked(e *Entry) string {
	for i := range e.clauses {
		if why := f.without(e, &e.clauses[i]); why != "" {
			return why
		}
	}
	return ""
}

// without returns why an entry can't be called where one of its clauses does not hold; empty where it does.
func (f *Facts) without(e *Entry, c *clause) string {
	if holds, err := c.cond.holds(f.look); !holds || err != nil {
		return wording{f}.why(e, c, err)
	}
	return ""
}
