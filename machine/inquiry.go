package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// The worker of a call may ask a person in the middle of its work. That is what its attempt came to: the call then waits
// as one that is asked about does, with no message, lease or room of its own, and the answer begins the next attempt,
// which is handed what was asked and what was answered. So a worker that is killed has lost nothing, and one that holds a
// lease never waits for a person.

// MaxAsked is how often the worker of a call may ask a person.
const MaxAsked = 16

// MaxAnswer is the longest answer that a worker is handed, in bytes: it travels in a header.
const MaxAnswer = 16 << 10

// Asks is what a worker asks a person.
type Asks struct {
	// Body is that of the record: what is asked, and what the next worker has to find again. What it says is for others
	// to read.
	Body []byte
}

// inquiry returns the last question of the worker of a call, nil where none has asked.
func (qs *questions) inquiry(c Call) *Question {
	if all := qs.inquiries[c]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Inquiry returns the last question of the worker of a call that was answered, and the answer: what its next attempts are
// handed. nil where there is none.
func (qs *questions) Inquiry(c Call) (*Question, *Answer) {
	if q := qs.inquiry(c); q != nil && q.answer != nil && q.answer.Value != nil {
		return q, q.answer
	}
	return nil, nil
}

// Refused reports whether the worker of a call got no answer to what it asked last, by what somebody said or because
// nobody did.
func (qs *questions) Refused(c Call) bool {
	q := qs.inquiry(c)
	return q != nil && q.answer != nil && q.answer.Value == nil
}

// MayAsk returns how many more questions the worker of a call may ask.
func MayAsk(r *Run, c Call) int {
	if !r.Contract(c.Step).Asks {
		return 0
	}
	return max(MaxAsked-len(r.inquiries[c]), 0)
}

// Inquiries returns what documents say of the answers to the worker of a call, in their order, and behind them of those
// to guards.
func (qs *questions) Inquiries(c Call) (all []*outcome.Answered) {
	for _, list := range [...][]*Question{qs.inquiries[c], qs.guardAnswers[c]} {
		for _, q := range list {
			if a := accountOf(q); a != nil {
				all = append(all, a)
			}
		}
	}
	return all
}

// failures returns how many attempts of a call have failed with this one: those that ended with a question have not.
func failures(r *Run, res *Result) int { return res.Attempt - len(r.inquiries[res.Call]) }

// mayAsk returns what the record of an attempt says, or why a worker that asks may not.
func mayAsk(r *Run, i int, res *Result) *Result {
	if res.Asks == nil || r.calls[i].state == expanding {
		return res
	}
	no := *res
	switch c := r.Contract(r.calls[i].Step); {
	case !c.Asks:
		no.Error = fault.New(fault.ToolTerminal, "the tool asks a person, which its contract does not say that it may").
			WithHint(`write "x-orchestration": {"asks": true} in the tool's definition, or an override; runs that begin then may wait for a person`)
	case MayAsk(r, res.Call) == 0:
		no.Error = fault.New(fault.ToolTerminal, "the tool asks for the %dth time, and a call may ask %d times", MaxAsked+1, MaxAsked).
			WithHint("have it ask for several things at a time")
	default:
		return res
	}
	no.Asks = nil
	return &no
}

// inquire lets a call wait for a person whom its worker asks. It leaves its room to others meanwhile.
func inquire(r *Run, i int, res *Result, at time.Time, out *Effects) {
	s := &r.calls[i]
	r.scopeOf(i).bounded().take(-1)
	s.state, s.attempt = asking, int32(res.Attempt)
	c, name := s.Call, r.nameOf(s.Call)
	q := &Question{
		Call: c, Kind: outcome.Ask, Digest: digestInquiry(r, name, res), Since: at, Asks: res.Asks, Attempt: res.Attempt,
		Number: r.spent[name] + 1, open: true,
	}
	if before := r.asked[c]; before != nil {
		q.Number = max(q.Number, before.Number+1)
	}
	if before := r.inquiry(c); before != nil {
		q.Number = max(q.Number, before.Number+1)
	}
	if r.inquiries == nil {
		r.inquiries = map[Call][]*Question{}
	}
	r.inquiries[c] = append(r.inquiries[c], q)
	if by := r.calls[timed(r, i)].deadline.time(); !by.IsZero() {
		q.Until = by
		r.deadlines.add(deadline{at: by, question: q})
	}
	out.Ask = append(out.Ask, c)
}

// timed returns whose time a call has: its own, or, of an item, that of its step.
func timed(r *Run, i int) int {
	if s := &r.calls[i]; s.Item > 0 && s.deadline == 0 {
		return s.Step
	}
	return i
}

// workerAnswered goes on with a call whose worker has asked.
func workerAnswered(r *Run, i int, q *Question, a *Answer, at time.Time, out *Effects) {
	switch {
	case a.Error != nil:
		unanswered(r, i, a.Error, at, out)
	case a.Value == nil:
		unanswered(r, i, r.refusal(q), at, out)
	default:
		if x := r.scopeOf(i).bounded(); x != nil {
			x.hold(i)
			return
		}
		goOn(r, i, at, out)
	}
}

// unanswered ends a call whose worker is not answered.
func unanswered(r *Run, i int, why *fault.Error, at time.Time, out *Effects) {
	no := *r.calls[i].result // who executed it, and when
	no.Asks, no.Error = nil, why
	r.calls[i].result = &no
	r.end(i, failed, at, out)
}

// goOn asks for the attempt that follows an answer. The time of its step may have come up while nobody could be asked to
// decide anything, so it is waited for again.
func goOn(r *Run, i int, at time.Time, out *Effects) {
	s := &r.calls[i]
	s.state, s.attempt, s.at = ready, s.attempt+1, instantOf(at)
	if of := timed(r, i); r.calls[of].deadline != 0 {
		r.deadlines.add(deadline{at: r.calls[of].deadline.time(), call: of})
	}
	r.send(i, at, out)
}

// digestInquiry names what a worker asks: the run, the call, the attempt, and all that the record says.
func digestInquiry(r *Run, name string, res *Result) string {
	h := sha256.New()
	for _, text := range [...]string{"stepjet asks 1", r.start.Key, name, strconv.Itoa(res.Attempt), string(res.Asks.Body)} {
		digestText(h, text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
