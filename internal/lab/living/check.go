package living

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// What is held against the invariants of living runs, each by its name: how often it was looked at.
const (
	I11 = "I11: amendment held against all that was told of it, and all that ran"
	I12 = "I12: step that was discarded, or written again, while it waited"
	I13 = "I13: call that needed an approval, or answer that was to nothing"
	I14 = "I14: call of an iteration after the first"
	I15 = "I15: call held against the one content of its id"

	Stale    = "amendment that did nothing where it stood"
	Refused  = "amendment that a person rejected"
	Repeat   = "amendment of which more than one client's life, or owner, was told"
	Approved = "living run of an approved plan"
)

// Judge takes what a check finds.
type Judge interface {
	Violation(invariant, format string, args ...any)
	Count(what string)
}

// Run is what is known of a living run that is over.
type Run struct {
	Plan *Plan
	Doc  *outcome.Run
	// Story are its records, in the ledger's order.
	Story []Record
	// Clients is what its clients say, Calls each call as it was sent and as it began.
	Clients, Calls []journal.Event
	// Disturbed says that some record says what no tool said.
	Disturbed bool
}

// Record is one record of a living run.
type Record struct {
	subjects.Record
	Time   time.Time
	Header nats.Header
	Data   []byte
}

// Written returns what a step of the run's own plan would be called with by each content that it ever had, oldest first, as
// digests; "" for one that refers to what has no result.
func (r *Run) Written(id string) (digests []string, err error) {
	t, err := r.tell()
	if err != nil || t.scopes[subjects.RootScope].steps[id] == nil {
		return nil, err
	}
	last := t.scopes[subjects.RootScope].steps[id]
	for _, s := range append(slices.Clip(last.before), last) {
		args, known := t.arguments(subjects.RootScope, s, id)
		if !known {
			digests = append(digests, "")
			continue
		}
		digests = append(digests, Digest(args))
	}
	return digests, nil
}

type check struct {
	*Run
	Judge
}

// Check is I11 to I15. What an amendment does, what is discarded while it waits, and with what each step is called follows
// from the records in the ledger's order by the few rules that living runs have (tale).
func (r *Run) Check(j Judge) {
	c := &check{r, j}
	for _, e := range c.Clients {
		if e.Kind == journal.Forged {
			c.Count(I13)
			if e.Code == "" {
				c.Violation("I13", "an answer to nothing that was asked counts for step %s", e.Step)
			}
		}
	}
	t, err := r.tell()
	if err != nil {
		c.Violation("I8", "its records can't be read: %v", err)
		return
	}
	if c.Plan.Approved {
		c.Count(Approved)
	}
	c.checkRevisions(t)
	c.checkShape(t)
	for _, e := range c.Calls {
		c.checkCall(t, e)
	}
	c.checkDiscarded(t)
}

// checkRevisions is I11 for what was told: each number is of one amendment, each amendment is in force once, and whoever
// was told of it, by whichever owner and version, was told the same.
func (c *check) checkRevisions(t *tale) {
	inForce := map[string]int{}
	for _, a := range t.amends {
		c.Count(I11)
		if a.number != a.expected {
			c.Violation("I11", "revision %d of %s stands after revision %d", a.number, a.scope, a.expected-1)
		}
		switch a.became {
		case becameInForce:
			inForce[a.By]++
			if inForce[a.By] > 1 && strings.HasPrefix(a.By, "c") {
				c.Violation("I11", "the amendment %s is in force twice", a.By)
			}
		case becameStale:
			c.Count(Stale)
		case becameRejected:
			c.Count(Refused)
		}
	}
	told := map[string]int{}
	for _, e := range c.Clients {
		if e.Kind != journal.Amended || !isKnown(&e) && e.Attempt < 2 { // else it was refused, and nothing stands
			continue
		}
		c.Count(I11)
		key := fmt.Sprint(e.Step, " ", e.Revision)
		if told[key]++; told[key] > 1 {
			c.Count(Repeat)
		}
		a := t.amend(e.Step, e.Revision)
		switch {
		case a == nil:
			c.Violation("I11", "a client was told of revision %d of %s, of which there is no record", e.Revision, e.Step)
		case a.By != e.Key:
			c.Violation("I11", "the client of %s was told of revision %d of %s, which is that of %s", e.Key, e.Revision, e.Step, a.By)
		case !c.Disturbed && string(a.became) != e.Code:
			c.Violation("I11", "the client of %s was told %q of revision %d of %s, and by the records it is %q", e.Key, e.Code, e.Revision, e.Step, a.became)
		}
	}
}

// checkShape is I11 for the document: its plans have the steps that the amendments in force make, and no others.
func (c *check) checkShape(t *tale) {
	if c.Disturbed {
		return // a worker's death may decide what waits
	}
	if n := len(t.scopes[subjects.RootScope].numbers); c.Doc.Revision != n {
		c.Violation("I11", "the document is of revision %d, and the ledger has %d", c.Doc.Revision, n)
	}
	c.checkSteps(t.scopes[subjects.RootScope], "", c.Doc.Steps)
	i := slices.IndexFunc(c.Doc.Steps, func(s outcome.Step) bool { return s.ID == liveSub })
	if i >= 0 && len(c.Doc.Steps[i].Steps) > 0 {
		c.checkSteps(t.scopes[liveSub], liveSub+"/", c.Doc.Steps[i].Steps)
	}
}

func (c *check) checkSteps(s *taleScope, within string, steps []outcome.Step) {
	there := map[string]bool{}
	for i := range steps {
		id := strings.TrimPrefix(steps[i].ID, within)
		there[id] = true
		want := s.steps[id]
		switch c.Count(I11); {
		case want == nil:
			c.Violation("I11", "the document has the step %s, which no amendment in force adds", steps[i].ID)
		case (want.discarded != nil) != steps[i].Discarded:
			c.Violation("I11", "step %s is discarded in the document: %v, and by the amendments in force: %v", steps[i].ID, steps[i].Discarded, want.discarded != nil)
		}
	}
	for id := range s.steps {
		if !there[id] {
			c.Violation("I11", "the document lacks the step %s%s, which an amendment in force adds", within, id)
		}
	}
}

// checkCall is I11, I13, I14 and I15 for a call that was sent, or began.
func (c *check) checkCall(t *tale, e journal.Event) {
	s, scope := t.stepOf(e.Step)
	if s == nil {
		c.Violation("I11", "step %s was %s, which no amendment in force adds", e.Step, did(e))
		return
	}
	c.Count(I11)
	if s.added != nil && s.added.inForceAt.UnixNano() > e.At {
		c.Violation("I11", "step %s was %s before the amendment that adds it was in force", e.Step, did(e))
	}
	c.checkApproved(t, s, e)
	c.checkTurn(t, e)
	want, known := t.arguments(scope, s, e.Step)
	if !known {
		return // what it refers to has no result: no machine of ours makes a call of that, which I3 says below
	}
	c.Count(I15)
	if Digest(want) != e.Args {
		c.Violation("I15", "step %s was %s with other arguments than %s, which is its content", e.Step, did(e), want)
	}
	if after := t.needs(scope, s); after.UnixNano() > e.At {
		c.Violation("I3", "step %s was %s before what it refers to had succeeded", e.Step, did(e))
	}
}

func did(e journal.Event) string {
	if e.Kind == journal.Begin {
		return "called by " + e.Who
	}
	return "sent"
}

// checkApproved is I13: before a call that needs an approval there is the record of it, and it is made with what was
// approved of.
func (c *check) checkApproved(t *tale, s *taleStep, e journal.Event) {
	before := func(what string, a *taleAnswer) {
		c.Count(I13)
		if a == nil || a.Decision != wire.Approve || a.at.UnixNano() > e.At {
			c.Violation("I13", "step %s was %s before %s was approved of", e.Step, did(e), what)
		}
	}
	if c.Plan.Approved {
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
		shown = Digest(a.Arguments)
	}
	if shown != e.Args {
		c.Violation("I13", "step %s was %s with other arguments than those that were approved of", e.Step, did(e))
	}
}

// checkTurn is I14: before a call of an iteration each call of the one before has succeeded, and no iteration follows
// the last.
func (c *check) checkTurn(t *tale, e journal.Event) {
	loop, number, within, ok := iterationOf(e.Step)
	if !ok || number == 0 {
		return
	}
	c.Count(I14)
	if number >= c.Plan.loops {
		c.Violation("I14", "step %s was %s after the last iteration", e.Step, did(e))
	}
	calls := []string{subjects.Iteration(loop, number-1)}
	if within != "" {
		calls = []string{calls[0] + "/s", calls[0] + "/t"}
	}
	for _, call := range calls {
		if at, ok := t.succeeded[call]; !ok || at.UnixNano() > e.At {
			c.Violation("I14", "step %s was %s before %s had succeeded", e.Step, did(e), call)
		}
	}
}

// checkDiscarded is I12: what was discarded while it waited is never sent, and has no record of an attempt; and what was
// written again while it waited does not run as it was before.
func (c *check) checkDiscarded(t *tale) {
	if c.Disturbed {
		return
	}
	for scope, x := range t.scopes {
		for id, s := range x.steps {
			token := t.token(scope, id)
			if s.discarded != nil && s.waited {
				c.Count(I12)
				if i := slices.IndexFunc(c.Calls, func(e journal.Event) bool { return e.Step == token }); i >= 0 {
					c.Violation("I12", "step %s was discarded by %s while it waited, and was %s", token, s.discarded.By, did(c.Calls[i]))
				}
				if t.decided[token] {
					c.Violation("I12", "step %s was discarded by %s while it waited, and has a record", token, s.discarded.By)
				}
			}
			for _, old := range s.before {
				c.Count(I12)
				args, known := t.arguments(scope, old, token)
				is, _ := t.arguments(scope, s, token)
				if !known || Digest(args) == Digest(is) {
					continue
				}
				if i := slices.IndexFunc(c.Calls, func(e journal.Event) bool { return e.Step == token && e.Args == Digest(args) }); i >= 0 {
					c.Violation("I12", "step %s was written again while it waited, and was %s as it was before", token, did(c.Calls[i]))
				}
			}
		}
	}
}
