package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// A plan that was submitted for an approval runs nothing that nobody approved of. So an amendment of it, or of a plan
// within it, waits for an approval of its own, unless whoever asked for it may give that. What waits does nothing: the run
// goes on as it was, and may end. It takes effect where its answer stands, if it can still be made there. Meanwhile nobody
// else amends the same scope: who approves of a change has seen the plan that it changes.

// Approves reports whether the plan of a run was submitted for an approval, so that each amendment needs one.
func Approves(r *Run) bool { return r.root.base().Approval != nil }

// ApprovesOf reports whether an amendment of a scope takes somebody who may approve: its run was submitted for an approval, or
// a person approves of what the agent runs of which the scope is a round.
func ApprovesOf(r *Run, scope string) bool {
	of, _, is := RoundNamed(r, scope)
	return Approves(r) || is && r.stepOf(of.Step).Agent().Approval != nil
}

// needsApproval reports whether an amendment waits for a person before it is in force.
func (x *amending) needsApproval() bool { return Approves(x.Run) && !x.a.Approved }

// unapproved says why nothing can be amended as long as a person is asked; nil where nobody is.
func (x *amending) unapproved() *fault.Error {
	q := x.asked[Call{Step: ThePlan}]
	switch {
	case x.answers():
		return nil
	case x.a.Approves != "":
		return fault.New(fault.Conflict, "this amendment approves of something else than the plan that waits").
			WithHint("look at the question again: stepjet questions show RUN =")
	case q != nil && q.open:
		return fault.New(fault.Conflict, "the plan waits for its own approval, and is not amended before").
			WithHint("approve of it or reject it first: stepjet questions list; who may approve amends it so: stepjet approve RUN --plan FILE")
	}
	if x.sc.round > 0 && !x.a.Approved && ApprovesOf(x.Run, x.sc.token) {
		return fault.New(fault.Permission, "a person approves of what the agent %s runs, so only who may approve adds to it or takes away", x.nameOf(x.sc.of)).
			WithHint("ask for the amendment as an approver")
	}
	if w := x.sc.amended.proposal(); w != nil {
		return fault.New(fault.Conflict, "the plan of %s is not amended while revision %d of it waits for an approval", shownScope(x.sc), w.Revision).
			WithHint("what it would change: stepjet questions show RUN %s", x.sc.token)
	}
	return nil
}

// answers reports whether an amendment answers the question about the plan as a whole, which is open.
func (x *amending) answers() bool {
	q := x.asked[Call{Step: ThePlan}]
	return x.a.Approves != "" && x.a.Approved && x.sc.outer == nil && q != nil && q.open && q.Digest == x.a.Approves
}

// approvePlan lets a plan begin as it is with an amendment of it.
func (x *amending) approvePlan(added *reading, at time.Time, out *Effects) {
	q, a := x.asked[Call{Step: ThePlan}], x.a
	q.open, q.answered = false, at
	q.answer = &Answer{Call: q.Call, Number: q.Number, Digest: q.Digest, Decision: Approve, By: a.By, Verified: a.Verified, Reason: a.Reason}
	x.apply(added, at, out)
	x.sc.open(x.Run, at, out)
}

// proposal returns the amendment of a scope that waits for a person; nil for none.
func (a *amended) proposal() *Amendment {
	if a == nil {
		return nil
	}
	return a.waiting
}

// WaitingAmendment returns the amendment of a scope that waits for a person; nil for none.
func WaitingAmendment(r *Run, scope string) *Amendment {
	sc := scopeNamed(&r.tree, scope)
	if sc == nil {
		return nil
	}
	return sc.amended.proposal()
}

// waitForPerson asks about an amendment. Its question is one of the token of its scope, under a number of its own: one more
// than its revision, as the plan itself was asked about under the first, unless that was used up. An open scope is not
// closed meanwhile.
func (x *amending) waitForPerson(at time.Time, out *Effects) {
	sc, a, c := x.sc, x.a, x.sc.of
	q := &Question{Call: c, Kind: outcome.Approval, Digest: x.digest(), Since: at, Amendment: a, open: true}
	q.Number = max(x.proposalNumber(x.nameOf(c), c), a.Revision+1)
	a.asked, sc.amended.waiting = q, a
	a.steps = len(sc.plan.Steps)
	sc.amended.until, sc.amended.expiring = time.Time{}, false
	propose(x.Run, q, x.root.base().Approval.Timeout, out)
}

// digest names what is asked about an amendment: the run, the scope, the number, and all that it changes.
func (x *amending) digest() string {
	h, a := sha256.New(), x.a
	digestText(h, "stepjet amendment 1")
	for _, text := range [...]string{
		x.start.Key, a.Scope, strconv.Itoa(a.Revision), a.Digest, strconv.FormatBool(a.Rest), strconv.FormatBool(a.Close),
		string(a.Output), strconv.Itoa(len(a.Add)), strconv.Itoa(len(a.Discard)), strconv.Itoa(len(a.OutputSteps)),
	} {
		digestText(h, text)
	}
	for _, step := range a.Add {
		digestText(h, string(step))
	}
	for _, ids := range [...][]string{a.Discard, a.OutputSteps} {
		for _, id := range ids {
			digestText(h, id)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// proposalAnswered goes on with an amendment whose answer was read: here it is in force, or does nothing.
func proposalAnswered(r *Run, q *Question, at time.Time, out *Effects) {
	x, _ := r.amendments.of(r, q.Amendment) // its scope goes on: else nobody was asked any more
	r.ordered++
	x.sc.amended.waiting = nil
	x.spend(x.nameOf(x.sc.of), q.Number) // the next is asked under another
	var added *reading
	var err *fault.Error
	if r.approves(q) {
		added, err = x.inForce()
	} else {
		err = r.refusal(q)
	}
	if err == nil {
		x.apply(added, at, out)
		return
	}
	x.isStale(err, out)
	x.sc.keepOpen(r, at)
}

// dropProposal lets an amendment do nothing that waits in a scope which is over, and nobody is asked about it any more.
func dropProposal(sc *scope) {
	a := sc.amended.proposal()
	if a == nil {
		return
	}
	sc.amended.waiting, a.asked.open = nil, false
	a.stale = fault.New(fault.AlreadyFinished, "the plan of %s came to its end before anybody approved of the amendment", shownScope(sc)).
		WithHint("what is to be done besides is a plan of its own")
}

// Stands returns the answer that counted for a question of a digest, and what documents say of it; nil where none did.
// a is the amendment that it was about; nil for none.
func Stands(r *Run, c Call, digest string) (answer *Answer, account *outcome.Answered, a *Amendment) {
	for _, a := range r.list {
		if q := a.asked; q != nil && q.Call == c && q.Digest == digest {
			return q.answer, accountOf(q), a
		}
	}
	for _, list := range [...][]*Question{r.inquiries[c], r.guardAnswers[c]} {
		for _, q := range list {
			if q.Digest == digest && q.answer != nil {
				return q.answer, accountOf(q), nil
			}
		}
	}
	if a := agentAt(&r.tree, c); a != nil {
		for _, q := range a.answered {
			if q.Digest == digest {
				return q.answer, accountOf(q), nil
			}
		}
	}
	answer, _ = r.Answered(c)
	return answer, r.AccountOf(c), nil
}

// Asked returns the digest of what a person is, or was, asked about the amendment; empty where nobody was.
func (a *Amendment) Asked() string {
	if a.asked == nil {
		return ""
	}
	return a.asked.Digest
}

// Account returns what a person said of an amendment; nil where nobody did.
func (a *Amendment) Account() *outcome.Answered { return accountOf(a.asked) }

// Closing asks for the record that closes an open scope which was not amended for as long as it may.
type Closing struct {
	Scope    string
	Revision int
	// Fixed says that people don't amend the plan: the record has to say that its owner closes it.
	Fixed bool
}

// openScopes returns the scopes that may still wait for an amendment.
func openScopes(t *tree) (list []*scope) {
	waits := func(sc *scope) bool { // before its plan is approved of it has not begun
		return sc.plan.Open && sc.plan.OpenFor > 0 && sc.amended != nil && !sc.stopping && !sc.amended.closed
	}
	if waits(&t.root) {
		list = append(list, &t.root)
	}
	if t.scopes == nil {
		return list
	}
	for _, sc := range t.scopes.below {
		if i, ok := t.index(sc.of); ok && t.calls[i].state == entered && t.insideOf(i) == sc && waits(sc) {
			list = append(list, sc)
		}
	}
	return list
}

// Closings returns the records that would close all scopes which are open.
func Closings(r *Run) (list []Closing) {
	for _, sc := range openScopes(&r.tree) {
		if c, would := sc.closing(r); would {
			list = append(list, c)
		}
	}
	return list
}

// toBeClosed marks the deadline of an open scope.
const toBeClosed = -1
