package orchestrator

import (
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In a third of the worlds with an agent people approve of its rounds: each says what is to run, and nothing of it is
// called before an answer stands that lets it.

// simRounds are the rounds of an agent of which somebody was asked.
type simRounds struct {
	asked    map[string]int // rounds, by the digests of the questions about them
	approved map[int]bool
	refused  bool // some was
}

// approvesRounds reports whether this is such a world.
func (w *world) approvesRounds() bool { return w.withAgents() && w.seed%3 == 1 }

// roundsTimeout is whether an approval stands for no answer in time.
func (w *world) roundsTimeout() bool { return w.seed%2 == 0 }

func (w *world) roundsApproval() string {
	switch {
	case !w.approvesRounds():
		return "null"
	case w.roundsTimeout():
		return `{"timeout":"2s","on_timeout":"approve"}`
	}
	return `"plan"`
}

// roundAsked takes note of a question about a round.
func (w *world) roundAsked(id subjects.Run, q *outcome.Question) {
	x := w.truths.of(id, q.Generation)
	if x == nil || q.Round == nil {
		return
	}
	if x.rounds.asked == nil {
		x.rounds.asked = map[string]int{}
	}
	if before, known := x.rounds.asked[q.Digest]; known && before != *q.Round {
		w.violate("I13", "round %d and round %d of %s are asked about by one digest", before, *q.Round, id.ID)
	}
	x.rounds.asked[q.Digest] = *q.Round
	if !x.told["round "+subjects.Iteration("a", *q.Round)] || len(q.Plan) == 0 {
		w.violate("I13", "somebody is asked about round %d of %s, of which there is nothing: %s", *q.Round, id.ID, q.Plan)
	}
	w.stats["somebody was asked about a round"]++
}

func (r *simRounds) approve(round int) {
	if r.approved == nil {
		r.approved = map[int]bool{}
	}
	r.approved[round] = true
}

// roundAnswered takes note of an answer about a round of an agent; false for any other.
func (t *truths) roundAnswered(x *truth, rec subjects.Record, e *kv.Entry) bool {
	if !x.agent || rec.Step != "a" {
		return false
	}
	a := wire.ParseAnswer(e.Data)
	round, known := x.rounds.asked[a.Digest]
	if !known && a.Decision == wire.Expire { // nobody was told of it yet: it is about the last that was decided
		for x.told["round "+subjects.Iteration("a", round+1)] {
			round++
		}
		known = true
	}
	switch {
	case !known:
		t.w.stats["a void answer about a round"]++
	case a.Decision == wire.Approve, a.Decision == wire.Expire && t.w.roundsTimeout():
		x.rounds.approve(round)
		t.w.stats["a round was approved of: "+a.Decision]++
	default:
		x.rounds.refused = true
		t.w.stats["a round was refused"]++
	}
	return true
}

// checkRound is I13 of rounds, and of what agents below call in them.
func (t *truths) checkRound(x *truth, a subjects.Attempt) {
	segments, ok := subjects.ParseStepToken(a.Step)
	if !ok || len(segments) == 3 && segments[2].Kind == subjects.CallSegment { // the call of its planner
		return
	}
	if t.w.approvesRounds() && !x.early && !x.rounds.approved[segments[1].Number] {
		t.w.violate("I13", "%s was dispatched, of whose round nobody has approved", a.MessageID())
	}
}
