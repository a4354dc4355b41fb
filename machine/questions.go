package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// ThePlan stands in the place of a step's index where the plan as a whole is meant.
const ThePlan = -1

// NotYet stands there where a call goes by its token, since its scope may not be entered yet. Apply puts the call in its
// place, as soon as there is one.
const NotYet = -2

// Question is what a call, or the plan, waits for a person to say. It waits for nothing else: no message of it is out,
// and no timer decides it, only a record.
type Question struct {
	Call       // Step is ThePlan for the plan's own
	Number int // counts the questions of the call, from 1
	Kind   outcome.QuestionKind
	// Digest names what the person is asked about: it is made of all that the call's arguments are made of.
	Digest string
	// Since is when it was asked, Until when it is to be answered by its owner; zero: it waits as long as the run.
	Since, Until time.Time

	open     bool
	expiring bool    // its time is over, and a record was asked for
	answer   *Answer // that counted
	answered time.Time
}

// Answer is the record that a question was answered, or that there is nothing to show. It counts where the question
// stands open with the same number and digest; elsewhere it is void, and a question of its number is asked anew under the
// next.
type Answer struct {
	Call
	// Token names the call where its scope may not be entered yet; its Step is NotYet then.
	Token  string
	Number int
	Digest string
	// Decision is one of the constants; empty where Value or Error says it.
	Decision string
	// Value is the JSON of what decides the call instead of its tool; nil for none. Apply takes it as a tool's output.
	Value []byte
	// Arguments take the place of those that the plan has; nil leaves them.
	Arguments []byte
	// Error is the owner's: why there is nothing to show. The call fails with it, and nobody has answered.
	Error    *fault.Error
	Reason   string
	By       string
	Verified bool
}

// The decisions of answers.
const (
	Approve = "approve"
	Reject  = "reject"
	Expire  = "expire" // the owner's: nobody answered in time
)

// asks reports whether a person is asked before a call that is ready begins, in the name of its step or the contract of
// its tool. A condition of the contract is not looked at.
func (r *Run) asks(i int) bool {
	s, p := &r.calls[i], r.stepOf(i)
	if p.ForEach != nil {
		together := p.Approval != nil && p.Approval.All
		if together != (s.Item == 0) {
			return false // asked for with all others, or each by itself
		}
	}
	return p.Ask || p.Approval != nil || r.Contract(s.Step).Approval == tool.AlwaysApprove
}

// weighs reports whether the contract's condition decides whether a person is asked.
func (r *Run) weighs(i int) bool {
	s, p := &r.calls[i], r.stepOf(i)
	if p.Ask || p.Approval != nil || p.ForEach != nil && s.Item == 0 {
		return false
	}
	a := r.Contract(s.Step).Approval
	return a != "" && a != tool.AlwaysApprove
}

// asksEach reports whether each item of a for_each step may wait for a person by itself. Then each has the step's time
// from where it begins.
func (r *Run) asksEach(step int) bool {
	p := r.stepOf(step)
	if p.ForEach == nil || p.Approval != nil && p.Approval.All {
		return false
	}
	return p.Ask || p.Approval != nil || r.Contract(step).Approval != ""
}

// ask lets a call wait for a person.
func (r *Run) ask(i int, at time.Time, out *Effects) {
	s, p := &r.calls[i], r.stepOf(i)
	s.state = asking
	kind, wait := outcome.Approval, time.Duration(0)
	switch {
	case p.Ask:
		kind, wait = outcome.Ask, p.Timeout
	case p.Approval != nil:
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
	if r.questions == nil {
		r.questions = map[Call]*Question{}
	}
	q := &Question{Call: c, Number: r.spent[r.nameOf(c)] + 1, Kind: kind, Digest: r.digest(c, kind), Since: at, open: true}
	if wait > 0 {
		q.Until = at.Add(wait)
		r.deadlines.add(deadline{at: q.Until, question: q})
	}
	r.questions[c] = q
	out.Ask = append(out.Ask, c)
}

// applyAnswer takes the record of an answer.
func (r *Run) applyAnswer(rec *Record, out *Effects) {
	a := rec.Answer
	if a.Token != "" {
		c, there := r.Find(a.Token)
		if !there {
			r.spend(a)
			return
		}
		a.Call = c
	}
	q := r.questions[a.Call]
	if q == nil || !q.open {
		r.spend(a) // of a question that is not asked yet, or not any more
		return
	}
	if a.Number != q.Number || a.Digest != q.Digest || !q.takes(a) {
		if r.spend(a); a.Number >= q.Number {
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
	if a.Step == ThePlan {
		r.planAnswered(q, rec, out)
		return
	}
	i, _ := r.index(a.Call) // there is a question of it
	r.answered(i, q, a, rec.Time, out)
}

// spend notes that the number of a void answer is taken, since the ledger has a record of it.
func (r *Run) spend(a *Answer) {
	if r.spent == nil {
		r.spent = map[string]int{}
	}
	name := a.Token
	if name == "" {
		name = r.nameOf(a.Call)
	}
	r.spent[name] = max(r.spent[name], a.Number)
}

// takes reports whether an answer is one to such a question.
func (q *Question) takes(a *Answer) bool {
	switch {
	case a.Error != nil:
		return a.Decision == "" && a.Value == nil && a.Arguments == nil && q.Step != ThePlan
	case a.Decision == Reject || a.Decision == Expire:
		return a.Value == nil && a.Arguments == nil
	case a.Value != nil:
		return a.Decision == "" && a.Arguments == nil && q.Step != ThePlan
	}
	return a.Decision == Approve && q.Kind == outcome.Approval && (a.Arguments == nil || q.Step != ThePlan)
}

// answered goes on with a call whose question is over.
func (r *Run) answered(i int, q *Question, a *Answer, at time.Time, out *Effects) {
	switch {
	case a.Error != nil:
		r.fail(i, a.Error, at, out)
	case a.Value != nil:
		r.decideBy(i, q, at, out)
	case r.approves(q):
		r.begins(i, at, out)
	default:
		r.fail(i, r.refusal(q), at, out)
	}
}

// approves reports whether an answer lets what was asked for begin.
func (r *Run) approves(q *Question) bool {
	if q.answer.Decision != Expire {
		return q.answer.Decision == Approve
	}
	return r.OnTimeout(q.Call) == Approve
}

// OnTimeout says what it comes to where nobody answers a question in time: Approve, Reject, or Expire, where the call
// fails with timeout. No timeout stands for the approval that a contract asks for.
func (r *Run) OnTimeout(c Call) string {
	if c.Step == ThePlan {
		return onTimeout(r.root.plan.Approval)
	}
	s := r.stepOf(c.Step)
	switch {
	case s.Ask:
		return Expire
	case r.Contract(c.Step).Approval != "":
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
	if a.Decision == Expire {
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
	r.root.stopping = true
	r.root.halt(r, rec.Time, out)
}

// closeQuestion ends the question of what came to its end otherwise.
func (r *Run) closeQuestion(c Call) {
	if q := r.questions[c]; q != nil {
		q.open = false
	}
}

// expire asks for the record of a question whose time is over.
func (r *Run) expire(q *Question, out *Effects) {
	if q.open {
		q.expiring = true
		out.Expire = append(out.Expire, *q)
	}
}

// outstandingQuestion asks for what should be done for an open question.
func (r *Run) outstandingQuestion(c Call, out *Effects) {
	switch q := r.Question(c); {
	case q == nil:
	case q.expiring:
		out.Expire = append(out.Expire, *q)
	default:
		out.Ask = append(out.Ask, c)
	}
}

// Question returns the open question of a call, nil where it has none. It must not be changed.
func (r *Run) Question(c Call) *Question {
	if q := r.questions[c]; q != nil && q.open {
		return q
	}
	return nil
}

// Questions calls each with every open question, in no order.
func (r *Run) Questions(each func(*Question)) {
	for _, q := range r.questions {
		if q.open {
			each(q)
		}
	}
}

// Asked reports whether anybody was ever asked.
func (r *Run) Asked() bool { return len(r.questions) > 0 }

// Answered returns the answer that counted for a call, and when it was recorded; nil where none did.
func (r *Run) Answered(c Call) (a *Answer, at time.Time) {
	if q := r.questions[c]; q != nil && q.answer != nil {
		return q.answer, q.answered
	}
	return nil, time.Time{}
}

// Approved reports whether an answer let a call begin.
func (r *Run) Approved(c Call) bool {
	q := r.questions[c]
	return q != nil && q.answer != nil && q.answer.Value == nil && r.approves(q)
}

// Arguments returns the arguments that an answer gave a call in the place of the plan's; nil for none.
func (r *Run) Arguments(c Call) []byte {
	if a, _ := r.Answered(c); a != nil && c.Step != ThePlan {
		return a.Arguments
	}
	return nil
}

// AccountOf returns the answer that counted for a call, as it is told of in documents; nil where none did.
func (r *Run) AccountOf(c Call) *outcome.Answered {
	a, at := r.Answered(c)
	if a == nil {
		return nil
	}
	d := &outcome.Answered{Reason: a.Reason, By: a.By, Verified: a.Verified, Arguments: a.Arguments, At: at}
	switch {
	case a.Value != nil:
		d.Decision = outcome.DecisionAnswered
	case a.Decision == Expire:
		d.Decision = outcome.DecisionExpired
	case a.Decision == Approve:
		d.Decision = outcome.DecisionApproved
	default:
		d.Decision = outcome.DecisionRejected
	}
	return d
}

// waitsForPerson says what a call waits for that asks a person.
func (r *Run) waitsForPerson(c Call) string {
	q := r.questions[c]
	what := "an approval"
	if q.Kind == outcome.Ask {
		what = "an answer"
	}
	if !q.Until.IsZero() {
		what += " until " + q.Until.UTC().Format(time.RFC3339)
	}
	return what
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
	return hex.EncodeToString(h.Sum(nil))
}

// nameOf is Token, which the plan has too.
func (r *Run) nameOf(c Call) string {
	if c.Step == ThePlan {
		return subjects.RootScope
	}
	return r.Token(c)
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
	for _, d := range r.stepOf(step).Deps {
		d += sc.first
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

// digestText adds a text, with its length, so that no two lists of texts are one.
func digestText(h hash.Hash, text string) {
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	h.Write([]byte(text))
}
