package agent

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Add notes what a call came to. A call of what is no entry sets no fact.
func (f *Facts) Add(o Outcome) { coming{f, &o}.add() }

// coming is what a call came to, on its way to the facts.
type coming struct {
	*Facts
	o *Outcome
}

// add adds it, and returns the object that the entry captured.
func (c coming) add() (captured Artifact, is bool) {
	f, o := c.Facts, c.o
	e := f.Entry(o.Entry)
	if e == nil {
		return captured, false
	}
	f.called = f.called.with(e.Tool, true)
	if f.d.CaptureNested {
		for _, a := range o.Nested {
			c.put(a)
		}
	}
	if o.Failed {
		return captured, false
	}
	f.succeeded = f.succeeded.with(e.Tool, true)
	if e.To != "" {
		f.state = e.To
	}
	switch e.Kind {
	case KindFacade:
		f.open(e, *o)
	case KindSearch:
		f.find(o.Result)
	case KindTool:
		if e.Destructive {
			f.done = f.done.with(same(e.Tool, o.Arguments), o.Result)
		}
		if o.Type != "" {
			c.put(Artifact{Type: o.Type, Value: o.Result})
		}
		if captured, is = c.captured(e); is {
			c.put(captured)
		}
	case KindContext, KindPlan, KindBuiltIn, KindTell, KindAsk:
	}
	return captured, is
}

// captured returns the object that an entry makes of the result, still without a name; false for none.
func (c coming) captured(e *Entry) (Artifact, bool) {
	a := e.artifact
	if a == nil {
		return Artifact{}, false
	}
	v, ok := within(c.o.Result, a.path)
	if !ok || kindOf(v) == jsontape.Null || !a.when.meets(c.about(v)) {
		return Artifact{}, false
	}
	return Artifact{Type: a.typ, Value: v}, true
}

// put puts an object on the blackboard.
func (c coming) put(a Artifact) {
	if a.place = slices.Concat(c.o.Place, a.place); c.formerly {
		a.place = nil
	}
	c.board.add(a, c.about(a.Value))
}

// about is what a condition about an object sees: the object, and the facts as of the record that it comes by. They don't have
// the object yet.
func (c coming) about(object json.RawMessage) sight {
	shared, known := c.shared, c.o.State == nil
	return func(r reference) ([]byte, bool) {
		switch {
		case r.word == ofArtifact:
			return within(object, r.path)
		case r.word == ofBoard:
			v, is := c.board.last(r.path[0].key)
			if !is {
				return nil, false
			}
			return within(v, r.path[1:])
		case r.word == ofState && len(r.path) > 0:
			if !known {
				if now := c.o.State(); len(now) > 0 {
					shared = now
				}
				known = true
			}
			return within(shared, r.path)
		}
		return c.look(r)
	}
}

// Keeps reports whether more is kept of a call of an entry than that it was made and whether it succeeded, whose result is an
// object of a type; empty where nobody says of which.
func (f *Facts) Keeps(name, typ string) bool {
	e := f.Entry(name)
	return e != nil && (e.Kind == KindFacade || e.Kind == KindSearch || e.Kind == KindTool && (e.Destructive || typ != "" || e.artifact != nil))
}

// AddSending adds what a call came to, as Add does, and returns the object that it made and that goes to sinks, and to which, by their
// places in its entry. What a worker gave a type by itself is none: the sinks are those of what the entry captures.
func AddSending(f *Facts, o Outcome) (a Artifact, tool string, to map[int]Sink) {
	e := f.Entry(o.Entry)
	a, is := (coming{f, &o}).add()
	if !is {
		return a, "", nil
	}
	for n, s := range e.Sinks() {
		if s.sound() && n < mostSinks {
			if to == nil {
				to = map[int]Sink{}
			}
			to[n] = s
		}
	}
	return a, e.Tool, to
}

// Inherit puts objects on the blackboard of an agent that has not begun: those of the agent that calls it.
func (f *Facts) Inherit(objects []Artifact) {
	for _, a := range objects {
		coming{f, &Outcome{}}.put(a)
	}
}

// open notes that a facade was called. Called again without arguments, it stays as it was.
func (f *Facts) open(e *Entry, o Outcome) {
	before, was := f.opened.get(e.Name)
	if was && (!e.facade.takesArgs || noMembers(o.Arguments)) {
		return
	}
	if len(o.Arguments) == 0 {
		o.Arguments = json.RawMessage("{}")
	}
	now := opening{args: o.Arguments}
	if e.facade.selects != "" {
		var bad []fault.Problem
		if now.entries, bad = f.Selected(e.Name, o.Result); len(bad) > 0 && !f.formerly {
			return // it stays as it was, and the planner is told why
		}
		if now.entries == nil {
			now.entries = before.entries
		}
	}
	f.opened = f.opened.with(e.Name, now)
}

// noMembers reports whether arguments are none.
func noMembers(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	i := jsontape.SkipSpace(raw, 0)
	return i < len(raw) && raw[i] == '{' && raw[jsontape.SkipSpace(raw, i+1)] == '}'
}

// find makes entries of what a search returned, from the next round on.
func (f *Facts) find(result json.RawMessage) {
	var hits []struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(result, &hits) != nil {
		return
	}
	p := f.later()
	for _, h := range hits {
		twice := func(e *Entry) bool { return e.Name == h.Name }
		if f.Entry(h.Name) == nil && !slices.ContainsFunc(f.next, twice) && !slices.ContainsFunc(p.def.entries, twice) {
			p.tool(h.Name, "", place{}, true)
		}
	}
	f.next = append(f.next, f.finish(p)...)
}

// later returns a parser of entries that come while the agent runs.
func (f *Facts) later() *entryReader {
	return &entryReader{&parser{def: &Definition{universe: f.d.universe, States: f.d.States}, absent: map[string]bool{}, dynamic: true, alone: f.alone}}
}

// finish closes such a reading: what is exclusive among the entries that were there hides those that came.
func (f *Facts) finish(p *entryReader) []*Entry {
	excludeOthers(f.d.entries, p.def.entries)
	return p.def.entries
}

// Selected reads the entries that the tool of a facade's "select" returned. The facade is not opened where there are
// problems; their places are in the result. What no search finds, the tools of chains and facades that exclude others
// can't be selected.
func (f *Facts) Selected(facade string, result json.RawMessage) ([]*Entry, []fault.Problem) {
	e := f.Entry(facade)
	if e == nil || e.facade == nil {
		return nil, nil
	}
	p := f.later()
	if c := f.d.universe.catalog; c != nil {
		p.def.universe = universe{found{c}}
	}
	p.entryList(value{raw: result}, place{facade: e, depth: 1})
	(&checker{p.parser}).namesMeet()
	for _, x := range p.def.entries {
		if other := f.Entry(x.Name); other != nil && other.within != e {
			p.problem(fault.InvalidValue, x.At, `name it otherwise by "as"`, "another entry is called %q, too", clip(x.Name))
		}
		if x.facade != nil && x.facade.exclusive && x.Kind == KindFacade || x.chain != nil {
			p.problem(fault.InvalidValue, x.At, "write it into the definition", "this can't be selected")
		}
	}
	if r := p.closed(); len(r.Problems) > 0 {
		return nil, r.Problems
	}
	return f.finish(p), nil
}
