package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// What is held against the invariants of living runs, each by its name: how often it was looked at.
const (
	sometimesI11 = "I11: amendment held against all that was told of it, and all that ran"
	sometimesI12 = "I12: step that was discarded, or written again, while it waited"
	sometimesI13 = "I13: call that needed an approval, or answer that was to nothing"
	sometimesI14 = "I14: call of an iteration after the first"
	sometimesI15 = "I15: call held against the one content of its id"

	sometimesStale    = "amendment that did nothing where it stood"
	sometimesRefused  = "amendment that a person rejected"
	sometimesRepeat   = "amendment of which more than one client's life, or owner, was told"
	sometimesApproved = "living run of an approved plan"
)

// checkLiving is I11 to I15. What an amendment does, what is discarded while it waits, and with what each step is called
// follows from the records in the ledger's order by the few rules that living runs have (tale), without a line of plan
// or machine.
func (c *checker) checkLiving(r *runView) {
	if r.doc == nil || r.work == nil || r.work.living == nil || r.doc.Outcome == nil {
		return
	}
	for _, e := range r.livers {
		if e.Kind == evForged {
			c.count(sometimesI13)
			if e.Code == "" {
				c.violation("I13", r, "an answer to nothing that was asked counts for step %s", e.Step)
			}
		}
	}
	t, err := r.tell()
	if err != nil {
		c.violation("I8", r, "its records can't be read: %v", err)
		return
	}
	if r.work.living.approved {
		c.count(sometimesApproved)
	}
	c.checkRevisions(r, t)
	c.checkShape(r, t)
	calls := slices.Clone(r.sent)
	for _, e := range r.executions {
		if e.Kind == evBegin {
			calls = append(calls, e)
		}
	}
	for _, e := range calls {
		c.checkCall(r, t, e)
	}
	c.checkDiscarded(r, t, calls)
}

// checkRevisions is I11 for what was told: each number is of one amendment, each amendment is in force once, and whoever
// was told of it, by whichever owner and version, was told the same.
func (c *checker) checkRevisions(r *runView, t *tale) {
	inForce := map[string]int{}
	for _, a := range t.amends {
		c.count(sometimesI11)
		if a.number != a.expected {
			c.violation("I11", r, "revision %d of %s stands after revision %d", a.number, a.scope, a.expected-1)
		}
		switch a.became {
		case becameInForce:
			inForce[a.By]++
			if inForce[a.By] > 1 && strings.HasPrefix(a.By, "c") {
				c.violation("I11", r, "the amendment %s is in force twice", a.By)
			}
		case becameStale:
			c.count(sometimesStale)
		case becameRejected:
			c.count(sometimesRefused)
		}
	}
	told := map[string]int{}
	for _, e := range r.livers {
		if e.Kind != evAmended || !e.isKnown() && e.Attempt < 2 { // else it was refused, and nothing stands
			continue
		}
		c.count(sometimesI11)
		key := fmt.Sprint(e.Step, " ", e.Revision)
		if told[key]++; told[key] > 1 {
			c.count(sometimesRepeat)
		}
		a := t.amend(e.Step, e.Revision)
		switch {
		case a == nil:
			c.violation("I11", r, "a client was told of revision %d of %s, of which there is no record", e.Revision, e.Step)
		case a.By != e.Key:
			c.violation("I11", r, "the client of %s was told of revision %d of %s, which is that of %s", e.Key, e.Revision, e.Step, a.By)
		case !r.disturbed() && string(a.became) != e.Code:
			c.violation("I11", r, "the client of %s was told %q of revision %d of %s, and by the records it is %q", e.Key, e.Code, e.Revision, e.Step, a.became)
		}
	}
}

// checkShape is I11 for the document: its plans have the steps that the amendments in force make, and no others.
func (c *checker) checkShape(r *runView, t *tale) {
	if r.disturbed() {
		return // a worker's death may decide what waits
	}
	if n := len(t.scopes[subjects.RootScope].numbers); r.doc.Revision != n {
		c.violation("I11", r, "the document is of revision %d, and the ledger has %d", r.doc.Revision, n)
	}
	c.checkSteps(r, t.scopes[subjects.RootScope], "", r.doc.Steps)
	i := slices.IndexFunc(r.doc.Steps, func(s outcome.Step) bool { return s.ID == liveSub })
	if i >= 0 && len(r.doc.Steps[i].Steps) > 0 {
		c.checkSteps(r, t.scopes[liveSub], liveSub+"/", r.doc.Steps[i].Steps)
	}
}

func (c *checker) checkSteps(r *runView, s *taleScope, within string, steps []outcome.Step) {
	there := map[string]bool{}
	for i := range steps {
		id := strings.TrimPrefix(steps[i].ID, within)
		there[id] = true
		want := s.steps[id]
		switch c.count(sometimesI11); {
		case want == nil:
			c.violation("I11", r, "the document has the step %s, which no amendment in force adds", steps[i].ID)
		case (want.discarded != nil) != steps[i].Discarded:
			c.violation("I11", r, "step %s is discarded in the document: %v, and by the amendments in force: %v", steps[i].ID, steps[i].Discarded, want.discarded != nil)
		}
	}
	for id := range s.steps {
		if !there[id] {
			c.violation("I11", r, "the document lacks the step %s%s, which an amendment in force adds", within, id)
		}
	}
}

// checkCall is I11, I13, I14 and I15 for a call that was sent, or began.
func (c *checker) checkCall(r *runView, t *tale, e Event) {
	s, scope := t.stepOf(e.Step)
	if s == nil {
		c.violation("I11", r, "step %s was %s, which no amendment in force adds", e.Step, did(e))
		return
	}
	c.count(sometimesI11)
	if s.added != nil && s.added.inForceAt.UnixNano() > e.At {
		c.violation("I11", r, "step %s was %s before the amendment that adds it was in force", e.Step, did(e))
	}
	c.checkApproved(r, t, s, e)
	c.checkTurn(r, t, e)
	want, known := t.arguments(scope, s, e.Step)
	if !known {
		return // what it refers to has no result: no machine of ours makes a call of that, which I3 says below
	}
	c.count(sometimesI15)
	if valueDigest(want) != e.Args {
		c.violation("I15", r, "step %s was %s with other arguments than %s, which is its content", e.Step, did(e), want)
	}
	if after := t.needs(scope, s); after.UnixNano() > e.At {
		c.violation("I3", r, "step %s was %s before what it refers to had succeeded", e.Step, did(e))
	}
}

func did(e Event) string {
	if e.Kind == evBegin {
		return "called by " + e.Who
	}
	return "sent"
}

// checkApproved is I13: before a call that needs an approval there is the record of it, and it is made with what was
// approved of.
func (c *checker) checkApproved(r *runView, t *tale, s *taleStep, e Event) {
	before := func(what string, a *taleAnswer) {
		c.count(sometimesI13)
		if a == nil || a.Decision != wire.Approve || a.at.UnixNano() > e.At {
			c.violation("I13", r, "step %s was %s before %s was approved of", e.Step, did(e), what)
		}
	}
	if r.work.living.approved {
		before("its plan", t.approval)
		if s.added != nil {
			before("the amendment "+s.added.By, s.added.answer)
		}
	}
	if !s.Asks {
		return
	}
	a := t.answers[e.Step]
	before("it", a)
	if a == nil || a.Decision != wire.Approve {
		return
	}
	shown := a.question.Args
	if a.Arguments != nil {
		shown = valueDigest(a.Arguments)
	}
	if shown != e.Args {
		c.violation("I13", r, "step %s was %s with other arguments than those that were approved of", e.Step, did(e))
	}
}

// checkTurn is I14: before a call of an iteration each call of the one before has succeeded, and no iteration follows
// the last.
func (c *checker) checkTurn(r *runView, t *tale, e Event) {
	loop, number, within, ok := iterationOf(e.Step)
	if !ok || number == 0 {
		return
	}
	c.count(sometimesI14)
	if number >= r.work.living.loops {
		c.violation("I14", r, "step %s was %s after the last iteration", e.Step, did(e))
	}
	calls := []string{subjects.Iteration(loop, number-1)}
	if within != "" {
		calls = []string{calls[0] + "/s", calls[0] + "/t"}
	}
	for _, call := range calls {
		if at, ok := t.succeeded[call]; !ok || at.UnixNano() > e.At {
			c.violation("I14", r, "step %s was %s before %s had succeeded", e.Step, did(e), call)
		}
	}
}

// checkDiscarded is I12: what was discarded while it waited is never sent, and has no record of an attempt; and what was
// written again while it waited does not run as it was before.
func (c *checker) checkDiscarded(r *runView, t *tale, calls []Event) {
	if r.disturbed() {
		return
	}
	for scope, x := range t.scopes {
		for id, s := range x.steps {
			token := t.token(scope, id)
			if s.discarded != nil && s.waited {
				c.count(sometimesI12)
				if i := slices.IndexFunc(calls, func(e Event) bool { return e.Step == token }); i >= 0 {
					c.violation("I12", r, "step %s was discarded by %s while it waited, and was %s", token, s.discarded.By, did(calls[i]))
				}
				if _, decided := r.decided[attemptKey{r.doc.Generation, token, 1}]; decided {
					c.violation("I12", r, "step %s was discarded by %s while it waited, and has a record", token, s.discarded.By)
				}
			}
			for _, old := range s.before {
				c.count(sometimesI12)
				args, known := t.arguments(scope, old, token)
				is, _ := t.arguments(scope, s, token)
				if !known || valueDigest(args) == valueDigest(is) {
					continue
				}
				if i := slices.IndexFunc(calls, func(e Event) bool { return e.Step == token && e.Args == valueDigest(args) }); i >= 0 {
					c.violation("I12", r, "step %s was written again while it waited, and was %s as it was before", token, did(calls[i]))
				}
			}
		}
	}
}
