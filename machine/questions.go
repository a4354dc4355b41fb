package machine

import (
	"crypto/sha256"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
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
	// Amendment is what is asked about, where it is that; Call then names the composite whose plan it changes. nil: the
	// call itself, or the plan.
	Amendment *Amendment
	// Asks is what the worker of the call asks, and Attempt the one that ended with that; nil and 0 for what a plan asks.
	Asks    *Asks
	Attempt int
	// Round is what is asked about, where it is that; Call then names the agent. nil for all else.
	Round *Round
	// Guard is what is asked about because of a guard of an agent; Call then names the call, or the agent. nil for all else.
	Guard *GuardAsks

	guard    int // that has the person asked about a call, from 1, of those that are conditions; 0 for none
	open     bool
	expiring bool    // its time is over, and a record was asked for
	answer   *Answer // that counted
	answered time.Time
	unshown  *fault.Error // why there was nothing to show, about a guard
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

// takes reports whether an answer is one to such a question.
func (q *Question) takes(a *Answer) bool {
	whole := q.OfPlan()
	if q.Guard != nil && (a.Value != nil || a.Arguments != nil) { // it passes as it is, or not at all
		return false
	}
	switch {
	case q.Asks != nil && len(a.Value) > MaxAnswer:
		return false
	case a.Error != nil:
		return a.Decision == "" && a.Value == nil && a.Arguments == nil && !whole
	case a.Decision == Reject || a.Decision == Expire:
		return a.Value == nil && a.Arguments == nil
	case a.Value != nil:
		return a.Decision == "" && a.Arguments == nil && !whole
	}
	return a.Decision == Approve && q.Kind == outcome.Approval && (a.Arguments == nil || !whole)
}

// OfPlan reports whether a question is about a plan, an amendment of one, or a round of an agent: it is taken as it is, or
// not at all.
func (q *Question) OfPlan() bool { return q.Step == ThePlan || q.Amendment != nil || q.Round != nil }

// questions are those of a run's calls, and what was answered.
type questions struct {
	asked map[Call]*Question // of the calls that have one
	// proposed are those about amendments, by the composite whose plan is changed, and about rounds, by their agent: the
	// last of each.
	proposed map[Call]*Question
	// inquiries are those of the workers of calls, in their order.
	inquiries map[Call][]*Question
	// guardAnswers are those of people whom guards have asked about calls, in their order.
	guardAnswers map[Call][]*Question
	// weighings are those of calls about which each guard asks that is a condition.
	weighings map[Call]*weighings
	spent     map[string]int            // by token, the highest number of a void answer
	inputs    map[int][sha256.Size]byte // of steps that ask: what their arguments are made of
	refused   *fault.Error              // why the plan was not approved
}

// put opens a question, under the next number of the call of such a name.
func (qs *questions) put(q Question, name string) *Question {
	if qs.asked == nil {
		qs.asked = map[Call]*Question{}
	}
	q.Number, q.open = qs.spent[name]+1, true
	qs.asked[q.Call] = &q
	return &q
}

// spend notes that a number of a void answer is taken, since the ledger has a record of it.
func (qs *questions) spend(name string, number int) {
	if qs.spent == nil {
		qs.spent = map[string]int{}
	}
	qs.spent[name] = max(qs.spent[name], number)
}

// propose opens a question about what stands in the ledger, and counts only once a person approved of it. wait is how
// long an answer may take; 0 for as long as there is time.
func propose(r *Run, q *Question, wait time.Duration, out *Effects) {
	if r.proposed == nil {
		r.proposed = map[Call]*Question{}
	}
	r.proposed[q.Call] = q
	if wait > 0 {
		q.Until = q.Since.Add(wait)
		r.deadlines.add(deadline{at: q.Until, question: q})
	}
	out.Ask = append(out.Ask, q.Call)
}

// proposalNumber is the next number of a question about what is proposed for a call of such a name, behind those of the
// call's own.
func (qs *questions) proposalNumber(name string, c Call) int {
	number := qs.spent[name] + 1
	if own := qs.asked[c]; own != nil {
		number = max(number, own.Number+1)
	}
	return number
}

// closeQuestion ends the questions of what came to its end otherwise, or about a round of it.
func (qs *questions) closeQuestion(c Call) {
	if q := qs.Question(c); q != nil && q.Amendment == nil {
		q.open = false
	}
}

// expire asks for the record of a question whose time is over.
func (qs *questions) expire(q *Question, out *Effects) {
	if q.open {
		q.expiring = true
		out.Expire = append(out.Expire, *q)
	}
}

// outstandingQuestion asks for what should be done for an open question.
func (qs *questions) outstandingQuestion(c Call, out *Effects) {
	switch q := qs.Question(c); {
	case q == nil:
	case q.expiring:
		out.Expire = append(out.Expire, *q)
	default:
		out.Ask = append(out.Ask, c)
	}
}

// asksGuard reports whether a person is asked about a call because of a guard.
func (qs *questions) asksGuard(c Call) bool {
	q := qs.proposed[c]
	return q != nil && q.open && q.Guard != nil
}

// Question returns the open question of a call, nil where it has none. It must not be changed.
func (qs *questions) Question(c Call) *Question {
	if q := qs.proposed[c]; q != nil && q.open {
		return q
	}
	if q := qs.asked[c]; q != nil && q.open {
		return q
	}
	if q := qs.inquiry(c); q != nil && q.open {
		return q
	}
	return nil
}

// Questions calls each with every open question, in no order.
func (qs *questions) Questions(each func(*Question)) {
	for _, all := range [...]map[Call]*Question{qs.asked, qs.proposed} {
		for _, q := range all {
			if q.open {
				each(q)
			}
		}
	}
	for c := range qs.inquiries {
		if q := qs.inquiry(c); q.open {
			each(q)
		}
	}
}

// Asked reports whether anybody was ever asked.
func (qs *questions) Asked() bool { return len(qs.asked)+len(qs.proposed)+len(qs.inquiries) > 0 }

// Answered returns the answer that counted for a call, and when it was recorded; nil where none did.
func (qs *questions) Answered(c Call) (a *Answer, at time.Time) {
	if q := qs.asked[c]; q != nil && q.answer != nil {
		return q.answer, q.answered
	}
	return nil, time.Time{}
}

// Arguments returns the arguments that an answer gave a call in the place of the plan's; nil for none.
func (qs *questions) Arguments(c Call) []byte {
	if x := qs.weighings[c]; x != nil {
		return x.arguments
	}
	if a, _ := qs.Answered(c); a != nil && c.Step != ThePlan {
		return a.Arguments
	}
	return nil
}

// AccountOf returns the answer that counted for a call, as it is told of in documents; nil where none did.
func (qs *questions) AccountOf(c Call) *outcome.Answered {
	return accountOf(qs.asked[c])
}

// accountOf is AccountOf for a question, of which there may be none.
func accountOf(q *Question) *outcome.Answered {
	if q == nil || q.answer == nil {
		return nil
	}
	a, at := q.answer, q.answered
	d := &outcome.Answered{Reason: a.Reason, By: a.By, Verified: a.Verified, Arguments: a.Arguments, At: at, Digest: a.Digest}
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
func (qs *questions) waitsForPerson(c Call) string {
	q := qs.Question(c)
	what := "an approval"
	switch {
	case q.Asks != nil:
		what = "an answer to its tool"
	case q.Kind == outcome.Ask:
		what = "an answer"
	}
	if !q.Until.IsZero() {
		what += " until " + q.Until.UTC().Format(time.RFC3339)
	}
	return what
}
