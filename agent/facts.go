package agent

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Facts are what is known of an agent's loop at one place of its ledger. They follow from its input and from the
// outcomes before that place, in the ledger's order, so that everybody who reads the same records has the same facts. They
// may be used by one goroutine at a time.
type Facts struct {
	d                 *Definition
	called, succeeded byName[bool]
	state             string
	board             board
	opened            byName[opening]
	found, next       []*Entry // by searches; next: from the next round on
	round             int
	input, shared     json.RawMessage
	alone             bool                    // conditions about objects that are selected see those alone, as in runs of before
	formerly          bool                    // likewise: OrderFormerly
	done              byName[json.RawMessage] // results of destructive calls, by tool and arguments
}

// opening is a facade that was opened.
type opening struct {
	args    json.RawMessage // of the last call
	entries []*Entry        // that its tool selected
}

// Outcome is what a call of an entry came to.
type Outcome struct {
	// Entry is the name by which the planner called it.
	Entry  string
	Failed bool
	// Arguments are those that the call was made with, what is bound included.
	Arguments json.RawMessage
	// Result is what it returned; of a facade with "select" what that tool did.
	Result json.RawMessage
	// Type says what kind of object the result is; empty where the worker said nothing of it.
	Type string
	// Nested are the objects that an agent which was called has put on its own blackboard; of others there are none. They
	// count where the definition says so (CaptureNested).
	Nested []Artifact
	// Place says where the call stands, for the objects that come of it: the number of its round, its place in the answer, and those
	// of items and iterations on the way to it. Once the round is over the last by its place counts, and not the one that came last.
	Place []int
	// State returns the state that calls have left as of the record of the call, if a condition about an object asks for it;
	// where there is none, or it returns nil, it is that of the facts.
	State func() json.RawMessage
}

// Begin returns the facts of an agent that was called with an input. shared is the state that calls write to; nil for
// the definition's own. Errors: invalid_arguments for an input that names no state of the agent's.
func (d *Definition) Begin(input, shared json.RawMessage) (*Facts, *fault.Error) {
	if shared == nil && d.State != nil {
		shared = d.State.Initial
	}
	f := &Facts{d: d, input: input, shared: shared, board: board{chains: d.chains}}
	if s := d.States; s != nil {
		f.state = s.Initial
		if s.from != nil {
			f.state = readable(within(input, s.from.path))
			if !slices.Contains(s.All, f.state) {
				return nil, fault.New(fault.InvalidArguments, "%s is %q, which is no state", s.from, clip(f.state)).
					WithHint("%s", thereAre(f.state, s.All))
			}
		}
	}
	return f, nil
}

// SelectFormerly has the conditions about objects that are selected see those alone, as in runs that don't need
// "object-conditions": entries whose conditions ask for more are not selected.
func SelectFormerly(f *Facts) { f.alone = true }

// OrderFormerly has objects of a round count in the order in which they came, and facades opened by selections that can't be used, as
// in runs that don't need "answer-order".
func OrderFormerly(f *Facts) { f.formerly = true }

// Clone returns facts that go their own way from here on. It takes little: they share what they have in common. Facts that
// nobody adds to may be read by many goroutines at a time.
func (f *Facts) Clone() *Facts {
	c := *f
	c.found, c.next = slices.Clip(f.found), slices.Clip(f.next)
	return &c
}

// BeginRound notes that a round begins, and the state that the calls before it have left; nil for the same as before.
func (f *Facts) BeginRound(round int, shared json.RawMessage) {
	f.round = round
	f.found, f.next = append(f.found, f.next...), nil
	f.board.settle()
	f.Share(shared)
}

// Settle has the objects since the round began count by their places in its answer, as they do once the round is over.
func Settle(f *Facts) { f.board.settle() }

// Share notes the state that calls have left (Answer.Shared); nil for the same as before.
func (f *Facts) Share(shared json.RawMessage) {
	if shared != nil {
		f.shared = shared
	}
}

// Entry returns the entry that a planner calls by a name; nil where there is none.
func (f *Facts) Entry(name string) *Entry {
	for e := range f.entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// entries calls each for every entry that there is now, shown or not.
func (f *Facts) entries(each func(e *Entry) bool) {
	for _, e := range f.d.entries {
		if !each(e) {
			return
		}
		if e.facade == nil || e.Kind != KindFacade || e.facade.selects == "" {
			continue
		}
		for _, x := range f.openingOf(e.Name).entries {
			if !each(x) {
				return
			}
		}
	}
	for _, e := range f.found {
		if !each(e) {
			return
		}
	}
}

// openingOf returns how a facade was opened last; nothing where it was not.
func (f *Facts) openingOf(facade string) opening {
	o, _ := f.opened.get(facade)
	return o
}

// State is the state of the state machine; empty for an agent without one.
func (f *Facts) State() string { return f.state }

// Round is the number of the round, from 0.
func (f *Facts) Round() int { return f.round }

// Input is what the agent was called with.
func (f *Facts) Input() json.RawMessage { return f.input }

// Shared is the state that calls write to and read from; nil for none.
func (f *Facts) Shared() json.RawMessage { return f.shared }

// Artifacts are the objects on the blackboard, in the order in which they came. The slice is shared: don't change it.
func (f *Facts) Artifacts() []Artifact { return f.board.objects.all }

// look finds a fact.
func (f *Facts) look(r reference) (json []byte, ok bool) {
	switch r.word {
	case ofRound:
		return strconv.AppendInt(nil, int64(f.round), 10), true
	case ofInput:
		return within(f.input, r.path)
	case ofState:
		if len(r.path) > 0 {
			return within(f.shared, r.path)
		}
		return quoteJSON(f.state), f.state != ""
	}
	if len(r.path) == 0 {
		return nil, false
	}
	name, rest := r.path[0].key, r.path[1:]
	switch r.word {
	case ofCalled:
		return strconv.AppendBool(nil, f.called.has(name)), true
	case ofSucceeded:
		return strconv.AppendBool(nil, f.succeeded.has(name)), true
	case ofOpened:
		o, open := f.opened.get(name)
		if !open {
			return nil, false
		}
		return within(o.args, rest)
	case ofBound:
		v, is := f.board.bound.get(name)
		if !is {
			return nil, false
		}
		return within(v, rest)
	case ofArtifact:
		v, is := f.board.last(name)
		if !is {
			return nil, false
		}
		return within(v, rest)
	}
	return nil, false
}

// MarshalJSON writes the facts as a planner is told them: values are left to the blackboard.
func (f *Facts) MarshalJSON() ([]byte, error) {
	type artifact struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	objects := make([]artifact, len(f.board.objects.all))
	for i, a := range f.board.objects.all {
		objects[i] = artifact{a.Name, a.Type}
	}
	opened := map[string]json.RawMessage{}
	f.opened.each(func(name string, o opening) { opened[name] = o.args })
	return jsontape.Marshal(struct {
		Called    []string                   `json:"called"`
		Succeeded []string                   `json:"succeeded"`
		State     string                     `json:"state,omitempty"`
		Artifacts []artifact                 `json:"artifacts"`
		Opened    map[string]json.RawMessage `json:"opened"`
		Round     int                        `json:"round"`
	}{f.called.names(), f.succeeded.names(), f.state, objects, opened, f.round})
}

// shown reports whether nothing hides an entry.
func (f *Facts) shown(e *Entry) bool {
	for i := range e.clauses {
		c := &e.clauses[i]
		if !c.hides() {
			continue
		}
		if holds, err := c.cond.holds(f.look); !holds || err != nil {
			return false
		}
	}
	return true
}

// toolsOf returns what can be called of a facade that is open.
func (f *Facts) toolsOf(facade string) (names []string) {
	for e := range f.entries {
		if e.within != nil && e.within.Name == facade && f.shown(e) {
			names = append(names, e.Name)
		}
	}
	return names
}

// unknown is the error for what is no entry.
func (f *Facts) unknown(name string) *fault.Error {
	var names []string
	for e := range f.entries {
		if f.shown(e) {
			names = append(names, e.Name)
		}
	}
	return fault.New(fault.UnknownTool, "there is no tool %q", clip(name)).WithHint("%s", thereAre(name, names))
}
