package machine

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// MaxAmendments is the most amendments of a run, of all its scopes together. One that only closes a scope is not bound by
// it.
const MaxAmendments = 1000

// Amendment is the record that a scope was changed. What it does is decided where it stands in the ledger: it is in
// force as a whole, or, where what it was made for is not so any more, it is stale and does nothing.
type Amendment struct {
	// Scope is the token of the composite whose plan is changed, subjects.RootScope for the run's own.
	Scope string
	// Revision counts the amendments of the scope, from 1. One that is not the next means nothing.
	Revision int
	// Digest names the request.
	Digest string
	// Add are steps as they stand in a plan, Discard the ids of those that are no part of it any more. One of both is
	// written again.
	Add     []json.RawMessage
	Discard []string
	// Rest discards all steps that are not over.
	Rest bool
	// Output and OutputSteps take the place of what the plan says; nil leaves that.
	Output      json.RawMessage
	OutputSteps []string
	// Close says that an open scope is over with its steps.
	Close bool
	// Contracts are those of tools that the run used none of before, Templates those of them that are plans.
	Contracts map[string]*tool.Contract
	Templates map[string]*plan.Template
	// Admitted is what was decided of the added steps where the scope is a round of an agent; nil for any other.
	Admitted *Admitted
	By       string
	Verified bool
	Reason   string
	// Approved says that no person is asked about it, though the plan was submitted for an approval: whoever asked for it
	// may approve of it, or the run's owner closes what is open.
	Approved bool
	// ByOwner says that the run's owner closes what only he may change: the plan of a template, or one within a round.
	ByOwner bool
	// Streamed names the attempt of a planner's call that hands over what is added, before its answer is whole; nil for any
	// other amendment.
	Streamed *Streamed
	// Approves is the digest of the question about the plan that it answers, whose plan it changes and approves of; empty for
	// any other.
	Approves string
	// Drops says that a round that was to run what it discards does not come to the output that was put forward beside that.
	Drops bool

	placed bool // there are calls for what is added,
	first  int  // from here on
	ids    []string

	readings []*reading // what it came to when it was read, for each plan of its scope
	inForce  *reading   // the one of them that was in force last

	asked *Question    // what a person is asked about it, or was; nil for nothing
	stale *fault.Error // why it does nothing; nil where it is in force, or waits for a person
	steps int          // that its scope had then
	at    time.Time    // of its record
}

// Admitted is what was decided of the steps that an amendment adds to a round of an agent, when they were admitted.
type Admitted struct {
	// Contracts are those of the tools that the run can call, by name, and Templates what it can call that is a plan or an
	// agent, by the names by which the steps do.
	Contracts map[string]*tool.Contract
	Templates map[string]*plan.Template
	// Name gives a step, and those of a plan within, the names of their tools.
	Name func(*plan.Step)
	// Settled are those that have come to something already, by id, and After those that each waits for beside what it says.
	Settled map[string]*Result
	After   map[string][]string
	// Earlier and Direct are as of a Round.
	Earlier []Earlier
	Direct  []string
	// Reaches is what steps that stood for earlier rounds before have of those from here on besides.
	Reaches []Earlier
}

// discard says what became of a step that an amendment discarded, or that the record of a round left over.
type discard uint8

const (
	notDiscarded     discard = iota
	discardedOver            // it was over, and keeps its account
	discardedOut             // it was out: whatever record decides it stands
	discardedWaiting         // nothing had come of it, and nothing will
	leftOver                 // likewise: the planner of an agent is asked before it
)

// unbegun reports whether nothing came of a step, and nothing will.
func (d discard) unbegun() bool { return d >= discardedWaiting }

// only reports whether an amendment closes its scope and does nothing else.
func (a *Amendment) only() bool {
	return a.Close && len(a.Add)+len(a.Discard)+len(a.OutputSteps) == 0 && !a.Rest && a.Output == nil
}

// amendments are those of a run, in the order in which they count.
type amendments struct {
	list  []*Amendment
	tools *usedTools // of the run, once an amendment needs them
}

// amending returns what an amendment is of; ok is false where there is no such scope.
func (as *amendments) of(r *Run, a *Amendment) (x *amending, ok bool) {
	sc := scopeNamed(&r.tree, a.Scope)
	return &amending{r, sc, a}, sc != nil
}

// undo forgets all amendments, before the state is computed anew. What they add keeps its place for where they count
// again.
func (as *amendments) undo(r *Run) {
	for _, a := range slices.Backward(as.list) {
		if x, ok := as.of(r, a); ok && a.InForce() {
			x.giveBack()
		}
	}
	*as = amendments{}
}

// take takes the record of an amendment.
func (as *amendments) take(r *Run, rec *Record, out *Effects) {
	a := rec.Amendment
	a.stale, a.asked, a.at = nil, nil, rec.Time
	x, ok := as.of(r, a)
	if !ok || a.Revision != x.sc.revision()+1 {
		return // nobody of ours wrote it, or its scope is not entered yet: once it can be, all is computed anew
	}
	r.ordered++
	as.list = append(as.list, a)
	x.sc.amend().revision = a.Revision
	x.placeAdded()
	added, err := x.reads()
	switch {
	case err != nil:
		x.isStale(err, out)
	case x.needsApproval():
		x.waitForPerson(rec.Time, out)
	case x.answers():
		x.approvePlan(added, rec.Time, out)
	default:
		x.apply(added, rec.Time, out)
	}
}

// discards reports whether an amendment discards a step that is not over.
func (a *Amendment) discards(id string) bool { return a.Rest || slices.Contains(a.Discard, id) }

// discardedAbove reports whether a call is given up because its step was discarded.
func discardedAbove(t *tree, i int) bool {
	s := &t.calls[i]
	return s.discarded != notDiscarded || s.Item > 0 && t.calls[s.Step].discarded != notDiscarded
}

// discardedError says why a call is given up for which discardedAbove holds.
func discardedError(t *tree, i int) *fault.Error {
	if s := &t.calls[i]; s.discarded == leftOver || s.Item > 0 && t.calls[s.Step].discarded == leftOver {
		return fault.New(fault.Cancelled, "Not called, because the agent's planner is asked again before it").
			WithHint(`"advance": "all" of an agent has all calls of an answer made`)
	}
	return fault.New(fault.Cancelled, "Cancelled because an amendment discarded it")
}

// Amendment returns an amendment of a scope whose record was read, nil where there is none.
func (as *amendments) Amendment(scope string, revision int) *Amendment {
	for _, a := range slices.Backward(as.list) {
		if a.Scope == scope && a.Revision == revision {
			return a
		}
	}
	return nil
}

// Amendments returns all of them in the order in which they count. They must not be changed.
func (as *amendments) Amendments() []*Amendment { return as.list }

// Stale says why an amendment whose record was read does nothing; nil where it is in force, or waits for an approval. The
// code of one that a person refused is Rejected.
func (a *Amendment) Stale() *fault.Error { return a.stale }

// Waits reports whether an amendment whose record was read does nothing yet, because a person is to approve of it.
func (a *Amendment) Waits() bool { return a.stale == nil && a.asked != nil && a.asked.open }

// InForce reports whether an amendment whose record was read changed the plan.
func (a *Amendment) InForce() bool { return a.stale == nil && !a.Waits() }

// Steps returns how many steps the plan of the scope had once it was known what becomes of the amendment, At when it was
// recorded.
func (a *Amendment) Steps() int { return a.steps }

// At returns the ledger's time of the record.
func (a *Amendment) At() time.Time { return a.at }

// InForce returns the amendments of a scope that are in force, in their order.
func (as *amendments) InForce(scope string) (list []*Amendment) {
	for _, a := range as.list {
		if a.Scope == scope && a.InForce() {
			list = append(list, a)
		}
	}
	return list
}

// Gone reports whether a step was discarded, or left over by a round, before anything came of it.
func Gone(r *Run, step int) bool { return r.calls[step].discarded.unbegun() }

// Touches reports whether an amendment discards a call that is asked about, or one within it.
func Touches(r *Run, a *Amendment, c Call) bool {
	t := &r.tree
	sc := scopeNamed(t, a.Scope)
	for sc != nil && c.Step != ThePlan {
		of := t.scopeOf(c.Step)
		if of == sc {
			return a.discards(t.stepOf(c.Step).ID)
		}
		c = of.of
	}
	return false
}
