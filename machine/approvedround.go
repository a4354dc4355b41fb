package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// A round of an agent whose definition says so begins only once a person has approved of it. Its record stands by then and
// is what is asked about: what is approved of can't become another any more. Until the answer stands, nothing of the round
// is entered. One that is refused runs nothing, and the next round begins where the answer stands.

// wait asks a person about a round, under the token of its agent and the next number there.
func (a *rounds) wait(r *Run, i int, d *Round, at time.Time, out *Effects) {
	c := r.calls[i].Call
	q := &Question{
		Call: c, Kind: outcome.Approval, Digest: d.asked(r), Since: at, Round: d, Number: r.proposalNumber(r.nameOf(c), c), open: true,
	}
	a.pending = q
	propose(r, q, d.Approval.Timeout, out)
}

// asked names what a person is asked about a round: the run, the round and all of its record.
func (d *Round) asked(r *Run) string {
	h := sha256.New()
	for _, text := range [...]string{"stepjet round 1", r.start.Key, d.Scope, d.Digest} {
		digestText(h, text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// roundAnswered goes on with an agent whose round a person was asked about.
func roundAnswered(r *Run, q *Question, at time.Time, out *Effects) {
	i, _ := r.index(q.Call) // else nobody was asked any more
	a, d := roundsOf(&r.tree, i), q.Round
	r.ordered++
	a.pending = nil
	r.spend(r.nameOf(q.Call), q.Number) // the next is asked under another
	if a.answered == nil {
		a.answered = map[int]*Question{}
	}
	a.answered[len(a.records)] = q
	if r.approves(q) {
		if a.fits(r, i, len(d.Plan.Steps), at, out) {
			a.run(r, i, d, at, out)
		}
		return
	}
	a.records = append(a.records, refusedRound(d, r.refusal(q)))
	r.calls[i].state = entered
	a.further(r, i, at, out)
}

// refusedRound is what is left of a round that nobody approved of. It is none of those that count as of no use: its
// planner could not know.
func refusedRound(d *Round, why *fault.Error) *Round {
	problem := fault.Problem{
		Code: why.Code, Message: why.Message + "; nothing of this answer was run",
		Hint: "a person looks at each answer before it runs: answer with what the reason asks for, or without calls",
	}
	return &Round{Scope: d.Scope, Refused: why, Problems: []fault.Problem{problem}}
}

// drop lets nobody be asked any more about the round that waits, where one does. The next is asked about under another
// number.
func (a *rounds) drop(r *Run) {
	if q := a.pending; q != nil {
		q.open, a.pending = false, nil
		r.spend(r.nameOf(q.Call), q.Number)
	}
}

// accountOfRound returns what a person said of the round whose planner a call is, as documents tell of it; nil for no such
// call, and where nobody did.
func accountOfRound(t *tree, i int) *outcome.Answered {
	sc := t.scopeOf(i)
	if sc.round == 0 || !asksPlanner(sc) {
		return nil
	}
	return accountOf(agentAround(t, sc).answered[int(sc.round)-1])
}
