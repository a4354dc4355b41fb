package orchestrator

import (
	"strings"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In one of five worlds with an agent people are its guards: of the items of its lists those with the number 1 are asked
// about, for two reasons. They are called once somebody has said yes to both, and of each question is known what it said.

// peopleGuard reports whether this is such a world.
func (w *world) peopleGuard() bool { return w.seed%5 == 3 }

// simAsked is what people were asked because of guards, and have said yes to, of a run.
type simAsked struct {
	why    map[string]string          // by the digest of the question
	passed map[string]map[string]bool // by the token of the call: why they were asked
}

// guardAsked takes note of a question because of a guard.
func (w *world) guardAsked(id subjects.Run, q *outcome.Question) {
	x := w.truths.of(id, q.Generation)
	if x == nil || q.Guard != plan.OnCall {
		return
	}
	if x.guardsAsk.why == nil {
		x.guardsAsk = simAsked{map[string]string{}, map[string]map[string]bool{}}
	}
	if before, known := x.guardsAsk.why[q.Digest]; known && before != q.Text {
		w.violate("A9", "%s is asked about by one digest for two reasons: %s, and %s", q.Step, before, q.Text)
	}
	x.guardsAsk.why[q.Digest] = q.Text
}

// answerGuard answers a question because of a guard: some say yes more than once, or to something else. It returns false for
// any other question.
func (w *world) answerGuard(q *outcome.Question, say func(wire.Answer)) bool {
	if q.Guard != plan.OnCall {
		return false
	}
	yes := wire.Answer{Digest: q.Digest, Decision: wire.Approve, By: "ann"}
	if w.chance(5) && !w.healed {
		say(wire.Answer{Digest: "of something else", Decision: wire.Approve, By: "ann"})
	}
	say(yes)
	say(yes)
	return true
}

// guardAnswered takes note of an answer to such a question; false for any other.
func (t *truths) guardAnswered(x *truth, rec subjects.Record, e *kv.Entry) bool {
	if !x.agent || !t.w.peopleGuard() || rec.Step == "a" {
		return false
	}
	a := wire.ParseAnswer(e.Data)
	why, known := x.guardsAsk.why[a.Digest]
	if !known || a.Decision != wire.Approve {
		t.w.violate("A9", "%s was answered, and nobody was asked: %s", rec.Step, e.Data)
		return true
	}
	if x.guardsAsk.passed[rec.Step] == nil {
		x.guardsAsk.passed[rec.Step] = map[string]bool{}
	}
	x.guardsAsk.passed[rec.Step][why] = true
	t.w.stats["somebody let a call pass a guard"]++
	return true
}

// peopleDispatched checks that nothing is handed to a worker before people have let it pass both guards.
func (t *truths) peopleDispatched(x *truth, a subjects.Attempt) {
	first := strings.HasSuffix(a.Step, "/g=0") || strings.HasSuffix(a.Step, "/both=0")
	if !t.w.peopleGuard() || !first || x.early {
		return
	}
	if n := len(x.guardsAsk.passed[a.Step]); n != 2 {
		t.w.violate("A9", "%s was dispatched, and people have let it pass %d guards of 2", a.MessageID(), n)
	}
	t.w.stats["a call passed two people"]++
}

// agentWeighed checks that it is found out once, before the first call and behind each answer, whether a guard asks.
func (t *truths) agentWeighed(x *truth, rec subjects.Record, e *kv.Entry) {
	told := wire.ParseTold(e.Data)
	if n := len(x.guardsAsk.passed[rec.Step]); max(rec.Number, 1) != n+1 || told.Holds != (told.Guard > 0) {
		t.w.violate("A9", "record %d of whether a guard asks about %s stands behind %d answers: %s", rec.Number, rec.Step, n, e.Data)
	}
	t.w.stats["it was found out whether a guard asks"]++
}
