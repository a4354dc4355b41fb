package agents

import (
	"slices"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/request"
)

// Past is what is left of the first rounds of a loop, all of which are over, for the rounds behind them: without it, each
// round would read all before it anew. It never changes, and follows from the records as the loop does: one without a
// Past comes to the same. Facts and requests are copied out of it.
type Past struct {
	rounds  int
	facts   *agent.Facts // of the beginning of the next round
	asked   *request.Loop
	ids     [][]string // of the steps of each round
	spent   agent.Spending
	calls   *calledBefore
	dropped request.Value // of the last round
	input   int64         // tokens that its planner told of
	last    *last         // that the request carried which was made with this; nil for none
}

// last is the part of the round before the one that is asked about, and how many records that round has.
type last struct {
	part    request.Part
	records int
}

// Rounds is how many rounds are past.
func (p *Past) Rounds() int {
	if p == nil {
		return 0
	}
	return p.rounds
}

// past returns what is left of all rounds before one that begins.
func (l *Loop) past(round int, asked *request.Loop) *Past {
	f, err := l.begin(round)
	if err != nil || round == 0 {
		return nil
	}
	return &Past{
		rounds: round, facts: f.Clone(), asked: asked.Clone(), ids: l.earlier(round), spent: l.Usage(round), calls: l.calledBefore(round),
		dropped: l.dropped(round - 1), input: l.inputTokens(round - 1),
	}
}

// lastOf returns the part of the round before one, where it is known.
func lastOf(l *Loop, round int, all []request.Part) *last {
	switch n := len(all); {
	case n > 0:
		return &last{all[n-1], recordsOf(l.Rounds[round-1])}
	case l.Past != nil:
		return l.Past.last
	}
	return nil
}

// recordsOf is how many records a round has that is over and not past, at least: its planner's, its own, and those of its calls.
func recordsOf(r *Round) int {
	seen := map[uint64]bool{}
	for i := range r.Calls {
		if seq := r.Calls[i].Seq; seq > 0 {
			seen[seq] = true
		}
	}
	return 2 + len(seen)
}

// earlier returns the ids of the steps of the rounds before one. They must not be changed.
func (l *Loop) earlier(round int) [][]string {
	if l.ids == nil && l.Past != nil {
		l.ids = l.Past.ids[:l.Past.rounds:l.Past.rounds]
	}
	for n := len(l.ids); n < round; n++ {
		l.ids = append(l.ids, idsOf(l.Rounds[n].Calls))
	}
	return l.ids[:round:round]
}

// calledBefore are the calls that were made in rounds that are past: the latest of them, and those before. So a round that is over
// is added to all before it, however many these are.
type calledBefore struct {
	before *calledBefore
	all    []agent.Called
}

// calledBefore returns those of the rounds before one.
func (l *Loop) calledBefore(round int) *calledBefore {
	made := &calledBefore{all: l.calledSince(round, ^uint64(0))}
	if l.Past != nil {
		made.before = l.Past.calls
	}
	return made
}

// called returns the calls that were made in the rounds before one, up to a record.
func (l *Loop) called(round int, upTo uint64) (all []agent.Called) {
	parts := [][]agent.Called{l.calledSince(round, upTo)}
	if l.Past != nil {
		for p := l.Past.calls; p != nil; p = p.before {
			parts = append(parts, p.all)
		}
	}
	slices.Reverse(parts)
	return slices.Concat(parts...)
}

// calledSince returns those of them that are not past.
func (l *Loop) calledSince(round int, upTo uint64) (all []agent.Called) {
	for n := l.Past.Rounds(); n < round; n++ {
		for _, c := range l.Rounds[n].Calls {
			if c.Seq > 0 && c.Seq <= upTo {
				all = append(all, agent.Called{ID: c.Path, Tool: l.toolOf(n, c.Path), Status: c.Status, MS: c.MS})
			}
		}
	}
	return all
}

// inputTokens are those that the planner of a round told of its request; 0 where it told of none.
func (l *Loop) inputTokens(round int) int64 {
	if round < l.Past.Rounds() {
		return l.Past.input
	}
	if x, err := l.answer(round); err == nil && x.answer != nil {
		return x.answer.Usage.InputTokens
	}
	return 0
}
