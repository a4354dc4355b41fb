package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// ask lets a call wait for a person.
func (r *Run) ask(i int, at time.Time, out *Effects) {
	s, p := &r.calls[i], r.stepOf(i)
	s.state = asking
	kind, wait := outcome.Approval, time.Duration(0)
	switch {
	case p.Ask:
		kind, wait = outcome.Ask, p.Timeout
		s.since = r.seq
	case p.Approval != nil && !isFurther(r, s.Call):
		wait = p.Approval.Timeout
	}
	r.pose(s.Call, kind, at, wait, out)
}

// askForPlan lets the whole run wait, before its first step.
func (r *Run) askForPlan(out *Effects) {
	r.pose(Call{Step: ThePlan}, outcome.Approval, r.start.Started, r.root.plan.Approval.Timeout, out)
}

// pose opens the question of a call.
func (r *Run) pose(c Call, kind outcome.QuestionKind, at time.Time, wait time.Duration, out *Effects) {
	q := r.questions.put(Question{Call: c, Kind: kind, Digest: r.digest(c, kind), Since: at}, r.nameOf(c))
	if wait > 0 {
		q.Until = at.Add(wait)
		r.deadlines.add(deadline{at: q.Until, question: q})
	}
	out.Ask = append(out.Ask, c)
}

// applyAnswer takes the record of an answer.
func (r *Run) applyAnswer(rec *Record, out *Effects) {
	a, name := rec.Answer, rec.Answer.Token
	if name == "" {
		name = r.nameOf(a.Call)
	} else if c, there := r.Find(name); there {
		a.Call = c
	}
	q := r.Question(a.Call)
	if q == nil {
		r.spend(name, a.Number) // of a question that is not asked yet, or not any more
		return
	}
	if a.Number != q.Number || a.Digest != q.Digest || !q.takes(a) {
		if r.spend(name, a.Number); a.Number >= q.Number {
			if q.expiring { // its deadline came up, and is owed again
				r.deadlines.add(deadline{at: q.Until, question: q})
			}
			q.Number, q.expiring = a.Number+1, false
			out.Ask = append(out.Ask, q.Call)
		}
		return
	}
	if q.open = false; a.Error == nil {
		q.answer, q.answered = a, rec.Time
	}
	switch {
	case q.Amendment != nil:
		proposalAnswered(r, q, rec.Time, out)
		return
	case q.Round != nil:
		roundAnswered(r, q, rec.Time, out)
		return
	case q.Guard != nil:
		q.unshown = a.Error
		guardAnswered(r, q, rec.Time, out)
		return
	case a.Step == ThePlan:
		r.planAnswered(q, rec, out)
		return
	}
	i, _ := r.index(a.Call) // there is a question of it
	if q.Asks != nil {
		workerAnswered(r, i, q, a, rec.Time, out)
		return
	}
	r.answered(i, q, a, rec.Time, out)
}

// answered goes on with a call whose question is over.
func (r *Run) answered(i int, q *Question, a *Answer, at time.Time, out *Effects) {
	switch {
	case a.Error != nil:
		r.fail(i, a.Error, at, out)
	case a.Value != nil:
		r.decideBy(i, q, at, out)
	case !r.approves(q):
		r.fail(i, r.refusal(q), at, out)
	case asksEachGuard(r, i):
		approvedOf(r, q, a)
		weigh(r, i, out)
	default:
		r.begins(i, at, out)
	}
}

// approves reports whether an answer lets what was asked for begin.
func (r *Run) approves(q *Question) bool {
	if q.answer.Decision != Expire {
		return q.answer.Decision == Approve
	}
	return Unanswered(r, q) == Approve
}

// Unanswered is OnTimeout for a question. Of an amendment that is said by the plan, which it changes or in which it is, of
// a round by the agent.
func Unanswered(r *Run, q *Question) string {
	switch {
	case q.Amendment != nil:
		return onTimeout(r.root.base().Approval)
	case q.Asks != nil:
		return Expire
	case q.Round != nil:
		return onTimeout(q.Round.Approval)
	}
	return r.OnTimeout(q.Call)
}

// OnTimeout says what it comes to where nobody answers the question of a call in time: Approve, Reject, or Expire, where the call
// fails with timeout. No timeout stands for the approval that a contract or a guard asks for.
func (r *Run) OnTimeout(c Call) string {
	if c.Step == ThePlan {
		return onTimeout(r.root.plan.Approval)
	}
	s := r.stepOf(c.Step)
	switch q := r.asked[c]; {
	case s.Ask:
		return Expire
	case r.Contract(c.Step).Approval != "", q != nil && q.guard > 0:
		return Reject
	}
	return onTimeout(s.Approval)
}

func onTimeout(a *plan.Approval) string {
	if a != nil && a.ApproveOnTimeout {
		return Approve
	}
	return Reject
}

// decideBy takes an answer's value as the call's result, in the name of who gave it.
func (r *Run) decideBy(i int, q *Question, at time.Time, out *Effects) {
	s := &r.calls[i]
	s.attempt = 1
	s.result = &Result{Call: q.Call, Attempt: 1, ByOwner: true}
	value, err := plan.Output(q.answer.Value, false)
	switch {
	case err != nil:
		s.result.Error = err
	case s.Item == 0 && r.stepOf(i).ForEach != nil:
		s.result.Error = fault.New(fault.InvalidValue, "a value was given for all items of the step together")
	default:
		s.result.Value, s.result.Size = value, int64(len(value))
		r.end(i, succeeded, at, out)
		return
	}
	r.end(i, failed, at, out)
}

// refusal is the error of a call that was rejected, or not answered in time.
func (r *Run) refusal(q *Question) *fault.Error {
	a := q.answer
	switch {
	case a.Decision == Expire && q.Asks != nil:
		err := fault.New(fault.Timeout, "nobody answered what the tool asks before the step's timeout was over").
			WithHint("give the step a longer timeout, or none: it then waits as long as the run")
		err.Retryable = false
		return err
	case a.Decision == Expire:
		code := fault.Rejected
		if q.Kind == outcome.Ask {
			code = fault.Timeout
		}
		err := fault.New(code, "nobody answered within %s", q.Until.Sub(q.Since)).
			WithHint("ask again with a longer timeout, or without one: it then waits as long as the run")
		err.Retryable = false
		return err
	}
	message := "Rejected"
	if a.By != "" {
		message += " by " + a.By
		if !a.Verified {
			message += " (unverified)"
		}
	}
	if a.Reason != "" {
		message += ": " + a.Reason
	}
	return fault.New(fault.Rejected, "%s", message)
}

// planAnswered goes on with the run, or ends it before its first step.
func (r *Run) planAnswered(q *Question, rec *Record, out *Effects) {
	if r.approves(q) {
		r.root.open(r, rec.Time, out)
		return
	}
	r.stop = &Stop{Reason: outcome.Cancelled, By: q.answer.By}
	r.refused = r.refusal(q)
	r.root.stop(r, 0, rec.Time, out)
}

// Approved reports whether an answer let a call begin.
func (r *Run) Approved(c Call) bool {
	q := r.asked[c]
	return q != nil && q.answer != nil && q.answer.Value == nil && r.approves(q)
}

// digest names what is asked about: the run, whose plan never changes, the call, and all that its arguments and its
// text are made of. So an answer to one never is one to another, whatever the two look like.
func (r *Run) digest(c Call, kind outcome.QuestionKind) string {
	h := sha256.New()
	digestText(h, "stepjet question 1")
	digestText(h, r.start.Key)
	digestText(h, string(kind))
	digestText(h, r.nameOf(c))
	if c.Step != ThePlan {
		sum := r.digestInputs(c.Step)
		h.Write(sum[:])
	}
	if x := r.weighings[c]; x != nil { // what the answers before have made of it
		digestText(h, strconv.Itoa(x.guard))
		digestText(h, string(x.arguments))
		for _, guard := range x.passed {
			digestText(h, strconv.Itoa(guard))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digestInputs sums up how the steps ended that a step waits for, and what they returned. The items of a step share it.
// The input of a scope is made of what its composite waits for.
func (r *Run) digestInputs(step int) [sha256.Size]byte {
	if sum, ok := r.inputs[step]; ok {
		return sum
	}
	h := sha256.New()
	sc := r.scopeOf(step)
	if sc.outer != nil {
		sum := r.digestInputs(sc.of.Step)
		h.Write(sum[:])
	}
	if sc.iteration > 1 {
		digestResult(h, r.loopAround(sc).resultOf(&r.tree, int(sc.iteration)-1))
	}
	for _, d := range r.stepOf(step).Deps {
		d = sc.at(d)
		digestText(h, string(r.StepStatus(d)))
		if err := r.stepError(d); err != nil {
			digestText(h, string(err.Code)+"\x00"+err.ToolCode+"\x00"+err.Message+"\x00"+string(err.Details))
		}
		s := &r.calls[d]
		if s.items == nil {
			digestResult(h, s.result)
			continue
		}
		for x := s.first; x < s.first+s.count; x++ {
			digestResult(h, r.calls[x].result)
		}
	}
	if r.inputs == nil {
		r.inputs = map[int][sha256.Size]byte{}
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	r.inputs[step] = sum
	return sum
}

func digestResult(h hash.Hash, res *Result) {
	switch {
	case res == nil:
		digestText(h, "")
	case res.Error != nil:
		digestText(h, string(res.Error.Code)+"\x00"+res.Error.Message)
	case res.Handle != nil:
		digestText(h, res.Handle.SHA256)
	default:
		digestText(h, string(res.Value))
	}
}
