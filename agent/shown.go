package agent

import (
	"encoding/json"
	"fmt"
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
	if _, open := f.opened[e.Name]; open && e.Kind == KindFacade && len(e.facade.categories) > 0 {
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

// Gate decides about a call as of these facts: when an answer is admitted and, once more, when the call becomes ready. An
// error (locked, unknown_tool) is what the call fails with. An answer is what it has succeeded with, without being made:
// that of a tool that is called once. Where both are nil, it may be made.
func (f *Facts) Gate(name string) (answer json.RawMessage, err *fault.Error) {
	e := f.Entry(name)
	if e == nil {
		return nil, f.unknown(name)
	}
	if why := f.locked(e); why != "" {
		return nil, fault.New(fault.Locked, "%s", why)
	}
	if e.HasOnce && f.succeeded[e.Tool] {
		return quoteJSON(strings.TrimSpace(fmt.Sprintf(alreadyLoaded, e.Name, e.Once))), nil
	}
	return nil, nil
}

// Bound returns the arguments of an entry that its planner does not see, as an object; nil where there are none. Facts
// are those of the round's beginning with what the calls added that this one depends on (Admission.Behind), so that no
// worker's speed decides which object it is. Errors: locked for the tool of an object that is not there.
func (f *Facts) Bound(name string) (json.RawMessage, *fault.Error) {
	e := f.Entry(name)
	if e == nil {
		return nil, f.unknown(name)
	}
	var object json.RawMessage
	if e.chain != nil {
		v, is := f.board.bound[e.chain.typ]
		if !is {
			return nil, fault.New(fault.Locked, "%s", f.locked(e))
		}
		object = v
	}
	if len(e.binds) == 0 {
		return nil, nil
	}
	args := map[string]json.RawMessage{}
	for _, b := range e.binds {
		args[b.name] = b.raw
		if b.ref == nil {
			continue
		}
		args[b.name] = json.RawMessage("null")
		if v, ok := f.bindTo(e, b.ref, object); ok {
			args[b.name] = v
		}
	}
	return marshal(args), nil
}

// bindTo finds what a bound argument refers to.
func (f *Facts) bindTo(e *Entry, r *reference, object json.RawMessage) ([]byte, bool) {
	switch {
	case r.word == ofArtifact && e.chain != nil:
		return within(object, r.path)
	case r.word == ofArgs:
		return within(f.opened[e.within.Name].args, r.path)
	}
	return f.look(*r)
}

// locked returns why an entry can't be called now, of the first of its clauses that does not hold; empty where it can.
func (f *Facts) locked(e *Entry) string {
	for i := range e.clauses {
		c := &e.clauses[i]
		holds, err := c.cond.holds(f.look)
		if err == nil && holds {
			continue
		}
		return wording{f}.why(e, c, err)
	}
	return ""
}
