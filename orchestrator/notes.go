package orchestrator

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// What the components of a loop note of a run, each for itself. It is memory, never truth: another owner finds it out
// again.

// audience knows whether anybody listens to the events of a run. Nearly always nobody does, and an event for each step
// is a good part of what a step costs; so now and then an event asks for an answer, which nobody gives: but where
// nobody listens at all the server says so. Until it does, somebody is assumed to listen. Whoever reads the state of a
// run (Watch does, once it has subscribed) counts as a listener too, so that nothing is missed from there on.
type audience struct {
	token uint64    // of its questions; 0 before the first, and since somebody arrived
	asked time.Time // the last question
	none  bool      // the server's answer to it
}

// doneBefore notes what was done for a run, as far as this process knows: which dead letters stand, and which objects went to sinks.
// Doing one again does no harm.
type doneBefore[K comparable] struct {
	mu  sync.Mutex
	all map[K]bool
}

// add notes one; false where it was noted before, by who did it at the same time.
func (b *doneBefore[K]) add(one K) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[K]bool{}
	}
	before := b.all[one]
	b.all[one] = true
	return !before
}

func (b *doneBefore[K]) has(one K) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[one]
}

// askedPeople is what an owner knows of people: of those that a run asks, and of those that cancel it.
type askedPeople struct {
	entries map[machine.Call]questionEntry // that it has written, or is about to
	waiting map[machine.Call][]answerer    // who wait to be told what stands for their answer
	changes map[machine.Call]bool          // whose entry is about an amendment
	cancels []func()                       // tell those who cancel the run, once a stop of it was read or it is over
}

// stopped tells who cancels the run that a stop of it was read, or that it is over.
func (p *askedPeople) stopped() {
	if p == nil {
		return
	}
	for _, tell := range p.cancels {
		tell()
	}
	p.cancels = nil
}

// questionEntry is the entry of a question.
type questionEntry struct {
	number  int
	written bool
}

// answerer is told once a record was read that answers a question of a number.
type answerer struct {
	number int
	tell   func()
}

func (r *run) asks() *askedPeople {
	if r.people == nil {
		r.people = &askedPeople{entries: map[machine.Call]questionEntry{}, waiting: map[machine.Call][]answerer{}, changes: map[machine.Call]bool{}}
	}
	return r.people
}

// cleaner takes the secrets of a run out of what its workers say of failures: a second line behind the workers, of
// which one may not do so. It is made when the first error comes, since most runs have none.
type cleaner struct {
	made bool
	r    *wire.Redactor
}

// asked is what a step waits to be told.
type asked struct {
	step int
	what machine.Asked
}

// schemas are the input schemas of the tools of one run, by tool name.
type schemas map[string]*tool.Schema

// changes is what an owner keeps of a run that is amended, besides its machine.
type changes struct {
	run     *run
	start   *wire.Start // as it was frozen when the run began
	frozen  []*frozenLater
	waiting []amender          // who wait to be told what became of theirs
	held    []machine.Dispatch // that are not sent meanwhile
}

// amender is told once a record was read that stands under the number of its amendment.
type amender struct {
	wanted *machine.Amendment
	told   func() bool // reports whether it was
}

// frozenLater are the tools of an amendment that the run used none of before.
type frozenLater struct {
	amendment *machine.Amendment
	tools     map[string]*wire.FrozenTool
}

// changesOf returns what is kept of a run's amendments.
func changesOf(r *run) *changes {
	if r.changes == nil {
		r.changes = &changes{run: r, start: r.start}
	}
	return r.changes
}

// amendmentOf returns the record of an amendment of a run as the machine takes it.
func amendmentOf(r *run, rec subjects.Record, a *wire.Amend) *machine.Amendment {
	x := &machine.Amendment{
		Scope: rec.Step, Revision: rec.Number, Digest: a.Digest, Add: a.Add, Discard: a.Discard.Steps, Rest: a.Discard.Rest,
		Output: a.Output, OutputSteps: a.OutputSteps, Close: a.Close, By: a.By, Verified: a.Verified, Reason: a.Reason,
		Approved: a.Approved, Approves: a.Approves, ByOwner: a.ByOwner,
		Drops: slices.Contains(a.Needs, wire.DiscardedCalls),
	}
	if a.Streamed != nil {
		x.Streamed = &machine.Streamed{Attempt: a.Streamed.Attempt, Nonce: a.Streamed.Nonce}
	}
	for name, t := range a.Tools {
		if x.Contracts == nil {
			x.Contracts = map[string]*tool.Contract{}
		}
		x.Contracts[name] = &t.Contract
	}
	if a.Round != nil && r.agents != nil {
		var of *agent.Definition
		c, _, is := machine.RoundNamed(r.machine, rec.Step)
		if !is && a.Streamed != nil {
			c, is = machine.StreamNamed(r.machine, rec.Step)
		}
		if is {
			of = r.agents.defined[r.step(c.Step).Does().Tool]
		}
		x.Admitted = agents.Admitted(a.Round, of, r.agents.templates, r.agents.frozen(r))
	}
	return x
}

// settle follows what became of a run's amendments: which tools are frozen, who is told, and what was held back
// meanwhile. There may be none.
func (c *changes) settle(eff *machine.Effects) {
	if c == nil {
		return
	}
	c.freeze()
	if machine.Settled(c.run.machine) {
		c.waiting = slices.DeleteFunc(c.waiting, func(a amender) bool { return a.told() })
	}
	c.held = slices.DeleteFunc(c.held, func(d machine.Dispatch) (released bool) {
		if released = !c.withholds(d); released {
			eff.Dispatch = append(eff.Dispatch, d)
		}
		return released
	})
}

// freeze freezes the tools of the amendments that are in force.
func (c *changes) freeze() {
	if c == nil || len(c.frozen) == 0 {
		return
	}
	start := *c.start // others share what it holds
	start.Tools = map[string]*wire.FrozenTool{}
	maps.Copy(start.Tools, c.start.Tools)
	for _, f := range c.frozen {
		a := f.amendment
		if c.run.machine.Amendment(a.Scope, a.Revision) != a || !a.InForce() {
			continue
		}
		for name, t := range f.tools {
			if start.Tools[name] == nil {
				start.Tools[name] = t
			}
		}
	}
	c.run.start = &start
}

// hold keeps an attempt back as long as somebody asks for its step to be discarded; false where nobody does.
func (c *changes) hold(d machine.Dispatch) bool {
	if !c.withholds(d) {
		return false
	}
	c.held = append(c.held, d)
	return true
}

// withholds reports whether an attempt is not sent yet because somebody asks for its step to be discarded.
func (c *changes) withholds(d machine.Dispatch) bool {
	return c != nil && slices.ContainsFunc(c.waiting, func(a amender) bool {
		return machine.Touches(c.run.machine, a.wanted, d.Call)
	})
}

// shapeOf returns the plan of a scope of a run as it is written now. Errors: NotAmendable for a run that is written in
// another form, such as the state dialect; InvalidID.
func shapeOf(r *run, scope string) (*wire.Shape, error) {
	s, ok := wire.ReadShape(r.body)
	if !ok {
		return nil, fault.New(fault.NotAmendable, "the run was not submitted as a plan of steps, so it can't be amended as a whole").
			WithHint(`say what is to change: "add" and "discard"`)
	}
	if _, _, is := machine.RoundNamed(r.machine, scope); is {
		return nil, fault.New(fault.NotAmendable, "what the round %s runs is its planner's answer, so it can't be amended as a whole", scope).
			WithHint(`say what is to change: "add" and "discard"`)
	}
	amendShape(r, s, subjects.RootScope)
	if scope == subjects.RootScope {
		return s, nil
	}
	segments, _ := subjects.ParseStepToken(scope)
	for i := range segments {
		if s, ok = s.Within(segments[i].Name); !ok {
			return nil, fault.New(fault.InvalidID, "there is no plan at %q", text.Clip(scope, 80)).WithHint(`"=" is the plan of the run`)
		}
		amendShape(r, s, subjects.StepToken(segments[:i+1]...))
	}
	return s, nil
}

func amendShape(r *run, s *wire.Shape, scope string) {
	for _, a := range r.machine.InForce(scope) {
		s.Amend(changeOf(a), func(id string) bool {
			c, known := r.machine.Find(subjects.InScope(scope, id))
			return known && machine.Gone(r.machine, c.Step)
		})
	}
}

// lastShape returns the plan of a run as amendments have left it, for whoever runs it again: it waits for no amendments any
// more, and what was discarded without a result is no part of it, unless something else refers to it. Plans within the
// items of a list have the shape that they began with, since each item has its own. ok is false for a run that was
// never amended.
func lastShape(r *run) (body json.RawMessage, ok bool) {
	if r.machine == nil || !slices.ContainsFunc(r.machine.Amendments(), func(a *machine.Amendment) bool { return a.Streamed == nil }) {
		return nil, false
	}
	s, ok := wire.ReadShape(r.body)
	if !ok {
		return nil, false
	}
	settleShape(r, s, subjects.RootScope)
	return s.JSON(), true
}

func settleShape(r *run, s *wire.Shape, scope string) {
	amendShape(r, s, scope)
	for _, id := range s.Composites() {
		inner, _ := s.Within(id)
		settleShape(r, inner, subjects.InScope(scope, id))
		s.Replace(id, inner)
	}
	s.Close()
	if p, numbers, entered := machine.ScopeNamed(r.machine, scope); entered {
		s.Drop(droppedOf(r, p, numbers))
	}
}

// droppedOf returns the steps of a scope that were discarded and came to nothing, and that no other step refers to.
func droppedOf(r *run, p *plan.Plan, of machine.Numbers) (ids []string) {
	dropped := make([]bool, len(p.Steps))
	for again := true; again; {
		again = false
		for i := range p.Steps {
			st := r.machine.Step(machine.Call{Step: of.Of(i)}, time.Time{})
			wanted := slices.ContainsFunc(p.Dependents(i), func(d int) bool { return !dropped[d] })
			if !dropped[i] && st.Discarded && st.Status != outcome.StepSucceeded && !wanted {
				dropped[i], again = true, true
				ids = append(ids, p.Steps[i].ID)
			}
		}
	}
	return ids
}

// changeOf is what an amendment changes.
func changeOf(a *machine.Amendment) *wire.Change {
	return &wire.Change{
		Add: a.Add, Discard: wire.Discard{Steps: a.Discard, Rest: a.Rest}, Output: a.Output, OutputSteps: a.OutputSteps, Close: a.Close,
	}
}
