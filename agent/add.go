package agent

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Add notes what a call came to. A call of what is no entry sets no fact.
func (f *Facts) Add(o Outcome) {
	e := f.Entry(o.Entry)
	if e == nil {
		return
	}
	f.called = f.called.with(e.Tool, true)
	if f.d.CaptureNested {
		for _, a := range o.Nested {
			f.board.add(a)
		}
	}
	if o.Failed {
		return
	}
	f.succeeded = f.succeeded.with(e.Tool, true)
	if e.To != "" {
		f.state = e.To
	}
	switch e.Kind {
	case KindFacade:
		f.open(e, o)
	case KindSearch:
		f.find(o.Result)
	case KindTool:
		if e.Destructive {
			f.done = f.done.with(same(e.Tool, o.Arguments), o.Result)
		}
		if o.Type != "" {
			f.board.add(Artifact{Type: o.Type, Value: o.Result})
		}
		if a, is := e.made(o.Result); is {
			f.board.add(a)
		}
	case KindContext, KindPlan, KindBuiltIn, KindTell, KindAsk:
	}
}

// Keeps reports whether more is kept of a call of an entry than that it was made and whether it succeeded, whose result is an
// object of a type; empty where nobody says of which.
func (f *Facts) Keeps(name, typ string) bool {
	e := f.Entry(name)
	return e != nil && (e.Kind == KindFacade || e.Kind == KindSearch || e.Kind == KindTool && (e.Destructive || typ != "" || e.artifact != nil))
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
		if now.entries, _ = f.Selected(e.Name, o.Result); now.entries == nil {
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
	return &entryReader{&parser{def: &Definition{universe: f.d.universe, States: f.d.States}, absent: map[string]bool{}, dynamic: true}}
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
