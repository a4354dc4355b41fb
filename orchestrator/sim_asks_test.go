package orchestrator

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// In most worlds tools may ask people in the middle of a call, and some do, once or several times, before and after
// attempts that fail. Whoever answers what plans ask answers them too.

// inquiring is whether this is a world whose tools say that they ask.
func (w *world) inquiring() bool { return w.seed%4 != 1 }

// inquiries is what the ledger says of the tools of a run that ask, by step token.
type inquiries struct {
	count  map[string]int  // attempts that ended so
	asking map[string]bool // the last of them has no answer yet
	told   map[string]wire.Answer
}

func newInquiries() *inquiries {
	return &inquiries{count: map[string]int{}, asking: map[string]bool{}, told: map[string]wire.Answer{}}
}

// inquired is how an attempt is noted that ended with a question: another may follow it.
var inquired = fault.New(fault.ToolFailed, "it asks")

// inquiry takes note of the record of an attempt whose worker asks, and returns what it comes to.
func (t *truths) inquiry(x *truth, a subjects.Attempt, c *tool.Contract) *fault.Error {
	i := x.inquiries
	switch {
	case !c.Asks, i.count[a.Step] == 16:
		t.w.stats["a tool asked that may not"]++
		return fault.New(fault.ToolTerminal, "it may not ask").WithHint("of an item, references see what is said of it")
	}
	i.count[a.Step]++
	i.asking[a.Step] = true
	t.w.stats["a tool asked"]++
	return inquired
}

// most returns how many attempts a call may have by now.
func (x *truth) most(token string, step *plan.Step) int {
	n, _ := x.contract(step).Policy(step.Retry)
	return n + x.inquiries.count[token]
}

// inquiryAnswered takes note of the record of an answer to a tool that asks, and reports whether it is one.
func (t *truths) inquiryAnswered(x *truth, rec subjects.Record, a wire.Answer, said *reference.Answer) bool {
	i := x.inquiries
	if !i.asking[rec.Step] {
		return false
	}
	if a.Decision == wire.Expire {
		said.Refusal, said.Hint = "nobody answered what the tool asks before the step's timeout was over", "give the step a longer timeout, or none: it then waits as long as the run"
	}
	x.decided = append(x.decided, reference.Decided{Step: rec.Step, Answer: said})
	if said.Other || a.Decision == wire.Approve {
		t.w.stats["a void answer"]++
		return true
	}
	delete(i.asking, rec.Step)
	if i.told[rec.Step] = a; a.Value != nil {
		t.w.stats["a tool was answered"]++
		return true
	}
	t.w.stats["a tool was not answered: "+a.Decision]++
	x.disturbed, x.final[rec.Step] = true, true
	return true
}

// checkReply: an attempt is told what was said to the last question of its call, and none is out before.
func (t *truths) checkReply(x *truth, m *message) {
	token, i := m.attempt.Step, x.inquiries
	step, err := wire.ParseStep(m.header)
	switch _, decided := x.records[token][m.attempt.Number]; {
	case err != nil || x.early || decided:
	case i.asking[token]:
		t.w.violate("I13", "%s was dispatched before its tool was answered", m.attempt.MessageID())
	case i.count[token] > 0 && (step.Reply == nil || !sameJSON(step.Reply.Answer, i.told[token].Value)):
		t.w.violate("I13", "%s is told %v, and not %s", m.attempt.MessageID(), step.Reply, i.told[token].Value)
	case i.count[token] == 0 && step.Reply != nil:
		t.w.violate("I13", "%s is told something, and its tool has asked nothing", m.attempt.MessageID())
	case i.count[token] > 0:
		t.w.stats["dispatch with an answer to its tool"]++
	}
}

// asksOf is what a tool of the world asks.
func asksOf(attempt string) *wire.Asks {
	return &wire.Asks{Asked: tool.Asked{Question: "Which, in " + attempt + "?"}, State: json.RawMessage(`{"of":"` + attempt + `"}`)}
}
