package machine_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
)

// proposers amend a plan that was submitted for an approval, and are those who approve of it. What becomes of each
// amendment the twin finds out from the records alone.
type proposers struct {
	*rand.Rand
	twin   *reference.Proposals
	parts  []int // what each revision is: the part of the plan, or -1 for a rival's
	did    map[string]int
	rivals int
}

// submits lets the plan say that it is to be approved of.
func (p *proposers) submits(u *unfold.Unfolded) {
	approval := []string{`true`, `{"timeout":"1m","on_timeout":"approve"}`, `{"timeout":"1m","on_timeout":"reject"}`}[p.Intn(3)]
	p.twin = reference.NewProposals(approval[len(approval)-2] == 'e' || approval == `{"timeout":"1m","on_timeout":"approve"}`)
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(u.Base, &doc); err != nil {
		panic(err)
	}
	doc["approval"] = json.RawMessage(approval)
	u.Base, _ = json.Marshal(doc)
}

// take hands a record to the twin. There may be no proposers.
func (p *proposers) take(rec *machine.Record) {
	switch {
	case p == nil:
	case rec.Amendment != nil:
		p.twin.Amend(rec.Amendment.Approved)
	case rec.Answer != nil:
		a := rec.Answer
		p.twin.Answer(&reference.Answer{
			Number: a.Number, Other: a.Digest == otherDigest, Decision: a.Decision, Value: a.Value, Arguments: a.Arguments,
		})
	}
}

// stand returns how many parts are in force, and whether the last amendment waits.
func (p *proposers) stand() (done int, waits bool) {
	for n, state := range p.twin.States {
		waits = state == reference.AmendmentWaits
		if state == reference.AmendmentInForce && p.parts[n] >= 0 {
			done++
		}
	}
	return done, waits
}

// propose records the next part of the plan, again where somebody refused it, or something else that a rival wants. It
// reports whether it did. There may be no proposers.
func (p *proposers) propose(w *nestWorld, m *machine.Run) bool {
	if p == nil || len(w.queue) == 0 || p.Intn(6) > 0 {
		return false
	}
	done, waits := p.stand()
	if done == len(w.queue) {
		w.queue = nil
		return false
	}
	a, part := *w.queue[done], done
	if p.rivals < 40 && (waits || p.Intn(4) == 0) {
		a = machine.Amendment{Scope: subjects.RootScope, Add: []json.RawMessage{fmt.Appendf(nil, `{"id":"RIVAL%d","tool":"broken"}`, len(p.parts))}, Contracts: w.start.Contracts}
		part = -1
		p.rivals++
	} else if waits {
		return false
	}
	a.Revision = len(p.parts) + 1
	a.Approved = part >= 0 && p.Intn(4) == 0
	p.parts = append(p.parts, part)
	w.create(fmt.Sprint("amend ", a.Revision), machine.Record{Amendment: &a})
	return true
}

// consult lets somebody answer a question: rightly, wrongly, twice. What a rival wants is refused, so that the plan comes
// to what it comes to as a whole.
func (w *nestWorld) consult(m *machine.Run, c machine.Call) {
	p, q := w.people, m.Question(c)
	if q == nil {
		return
	}
	say := func(a machine.Answer, number int) {
		a.Call, a.Number = q.Call, number
		if a.Digest == "" {
			a.Digest = q.Digest
		}
		w.create(fmt.Sprint("answer ", number), machine.Record{Answer: &a})
	}
	yes := machine.Answer{Decision: machine.Approve, By: "ann"}
	no := machine.Answer{Decision: machine.Reject, By: "bob"}
	rival := q.Amendment != nil && p.parts[q.Amendment.Revision-1] < 0
	switch n := p.Intn(8); {
	case n == 0:
		p.did["an answer to something else"]++
		say(machine.Answer{Decision: machine.Approve, Digest: otherDigest}, q.Number)
	case n == 1:
		p.did["an answer with arguments"]++
		say(machine.Answer{Decision: machine.Approve, Arguments: []byte("{}")}, q.Number)
	case n == 2 && !rival && p.twin.Approves:
		p.did["nobody answered"]++
		say(machine.Answer{Decision: machine.Expire}, q.Number)
	case rival, n == 3 && q.Amendment != nil:
		p.did["a rejection"]++
		say(no, q.Number)
	default:
		p.did["an approval"]++
		say(yes, q.Number)
		if n == 4 && q.Amendment != nil { // and somebody else, too late
			say(no, q.Number)
		}
	}
}

// agree sees that a machine makes of the amendments what the twin does.
func (p *proposers) agree(t testing.TB, m *machine.Run, what string) {
	p.twin.End()
	all := m.Amendments()
	for n, want := range p.twin.States {
		if n >= len(all) {
			require.Contains(t, []string{reference.AmendmentTooLate}, want, "%s: revision %d", what, n+1)
			continue
		}
		got := reference.AmendmentInForce
		switch a := all[n]; {
		case a.Waits():
			got = reference.AmendmentWaits
		case a.Stale() != nil:
			got = string(a.Stale().Code)
		}
		require.Equal(t, want, got, "%s: revision %d of %v", what, n+1, p.twin.States)
	}
}

// TestRandomApprovedAmendmentsMatchTheTwin: a plan that was submitted for an approval, and comes in parts that people
// approve of, refuse and answer wrongly, comes to what it comes to as a whole, with nothing in it that was refused.
func TestRandomApprovedAmendmentsMatchTheTwin(t *testing.T) {
	t.Parallel()
	n := *worlds
	if testing.Short() {
		n = 500
	}
	counted := map[string]int{}
	for seed := range int64(n) {
		w := newNestWorld(t, rand.New(rand.NewSource(1<<42+seed)), false)
		w.people = &proposers{Rand: w.Rand, did: counted}
		if !w.unfold(t) {
			continue
		}
		m := w.run(t)
		what := fmt.Sprintf("seed %d: %s", seed, w.nested.Plan)
		for c := range m.All() {
			require.True(t, m.Step(c, w.now).Status.Terminal(), "%s: %v", what, accountOf(m))
		}
		w.likeTheWhole(t, m, what, counted)
		w.people.agree(t, m, what)
		for _, state := range w.people.twin.States {
			counted[state]++
		}
		w.again(t, m)
	}
	for _, what := range []string{
		"succeeded", "partial", "failed", reference.AmendmentInForce, reference.AmendmentRejected, reference.AmendmentConflict,
		"an answer to something else", "an answer with arguments", "nobody answered", "a rejection", "an approval",
	} {
		require.NotZero(t, counted[what], "%s: %v", what, counted)
	}
}
