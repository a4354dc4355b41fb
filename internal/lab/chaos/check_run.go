package chaos

import (
	"math"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// checkOutcome is I1 and I8: an accepted run has one outcome, everybody was told the same, and nobody made up a run.
func (c *checker) checkOutcome(r *runView) {
	if len(r.submits) == 0 {
		c.violation("I8", r, "nobody submitted this run")
		return
	}
	for gen, sent := range r.plans {
		if !r.submits[sent] {
			c.violation("I8", r, "nobody sent the plan that the ledger holds at %d", gen)
		}
	}
	if r.accepted && r.doc == nil && !c.ev.Expires {
		c.violation("I1", r, "accepted, and it has no outcome")
	}
	if r.accepted && c.ev.Kept && len(r.plans) == 0 && (r.doc == nil || r.doc.Status != outcome.Rejected) {
		c.violation("I1", r, "the accepted plan is not in the ledger any more")
	}
	if r.doc != nil && !r.submits[r.doc.Digest] {
		c.violation("I8", r, "the outcome is that of a plan that nobody sent")
	}
	for _, o := range r.outcomes {
		switch {
		case o.Code == string(fault.NotFound) && c.ev.Expires: // it is forgotten already
		case o.Code != "":
			c.violation("I9", r, "its agent gave up waiting: %s", o.Code)
		case r.doc == nil || r.doc.Outcome == nil || c.ev.Expires: // it may have been the run before
		case rejects(&o) && o.Generation < r.doc.Generation: // and another end took its place
			c.violation("I6", r, "its agent was told that a valid plan was rejected")
		case o.Digest != digest(r.doc.Outcome.JSON()):
			c.violation("I1", r, "its agent was told another outcome (%s) than the history holds (%s)", o.Status, r.doc.Status)
		}
	}
	if len(r.outcomes) > 1 {
		c.count(sometimesAsked)
	}
}

// checkOrphans is I8 and I9: no record is left of a generation that has no plan, and no plan that was rejected.
func (c *checker) checkOrphans(r *runView) {
	for gen, stands := range r.standing {
		if stands && c.rejected[r.key][gen] {
			c.violation("I8", r, "the plan of generation %d was rejected, and it is left", gen)
		}
	}
	for _, x := range r.records {
		if !x.purged && !r.standing[x.rec.Generation] {
			c.violation("I8", r, "a record is left of generation %d, whose plan is gone", x.rec.Generation)
			return
		}
	}
}

// checkTold is I2 for conditions, values and outputs: one record says what each came to.
func (c *checker) checkTold(r *runView) {
	told := map[attemptKey]bool{}
	for _, x := range r.records {
		if x.rec.Kind != subjects.ToldKind {
			continue
		}
		c.count(sometimesTold)
		key := attemptKey{gen: x.rec.Generation, step: x.rec.Step + " " + x.rec.What}
		if told[key] {
			c.violation("I2", r, "what the %s of step %s came to has two records", x.rec.What, x.rec.Step)
		}
		told[key] = true
		if r.work != nil && !r.tells(x.rec) {
			c.violation("I8", r, "a record says what the %s of step %s came to, which the plan hasn't got", x.rec.What, x.rec.Step)
		}
	}
}

// checkRecords is I2: one record for each attempt, one success for each step, and no attempt before the last was a
// failure.
func (c *checker) checkRecords(r *runView) {
	type step struct {
		gen uint64
		id  string
	}
	last := map[step]int{}
	done := map[step]bool{}
	for _, x := range r.records {
		if x.rec.Kind != subjects.StepKind {
			continue
		}
		s := step{x.rec.Generation, x.rec.Attempt.Step}
		switch n := x.rec.Attempt.Number; {
		case done[s]:
			c.violation("I2", r, "step %s has attempt %d after its success", s.id, n)
		case n != last[s]+1:
			c.violation("I2", r, "step %s has attempt %d after %d", s.id, n, last[s])
		default:
			last[s] = n
			if n > 1 {
				c.count(sometimesRetried)
			}
		}
		done[s] = done[s] || x.result.Error == nil
		if x.result.Error != nil {
			c.countCode(x.result.Error.Code)
		}
		if x.overdue() {
			c.count(sometimesOverdue)
		}
		if r.work != nil && !r.has(s.id) {
			c.violation("I8", r, "the record of a step %s that the plan hasn't got", s.id)
		}
	}
}

func (c *checker) countCode(code fault.Code) {
	switch code {
	case fault.OutcomeUnknown:
		c.count(sometimesUnknown)
	case fault.WorkerLost:
		c.count(sometimesLost)
	}
}

// has reports whether the plan has the step of a token.
func (r *runView) has(token string) bool {
	if r.work.nested != nil {
		return r.nestedHas(token)
	}
	if r.work.living != nil || r.work.state != nil {
		return true // what it has, amendments say, or the dialect makes of its calls
	}
	id, _, _ := subjects.SplitItem(token)
	p, err := reference.Parse(r.work.Plan)
	return err == nil && slices.ContainsFunc(p.Steps, func(s reference.PlanStep) bool { return s.ID == id })
}

// checkDocument is I5 and I6: what the run came to is what the sequential reference makes of its plan, and of its
// records.
func (c *checker) checkDocument(r *runView) {
	if r.doc == nil || r.doc.Outcome == nil || r.work == nil || r.doc.Status == outcome.Rejected {
		if r.doc != nil && r.doc.Status == outcome.Rejected {
			c.violation("I6", r, "a valid plan was rejected: %v", r.doc.Outcome.Problems)
		}
		return
	}
	switch {
	case r.doc.Status == outcome.Cancelled:
		c.count(sometimesCancelled)
	case r.doc.Status == outcome.Expired:
		c.count(sometimesExpired)
	case r.work.Kind == kindLate:
		c.count(sometimesInTime)
	}
	if r.work.living != nil || r.work.state != nil {
		return // checkLiving
	}
	if r.work.nested != nil {
		c.checkNested(r)
		return
	}
	c.checkSkipped(r)
	contracts := r.work.Contracts
	if r.frozen != nil {
		if r.changed() {
			c.count(sometimesFrozen)
		}
		contracts = r.frozen
	}
	if r.work.Strict() && !r.disturbed() {
		want, err := reference.Run(r.work.Plan, contracts, r.work.Call)
		if err != nil {
			c.violation("I6", r, "the reference can't run the plan: %v", err)
			return
		}
		c.count(sometimesStrict)
		c.compare(r, want)
		c.checkArguments(r, want)
	}
	if decided, ok := r.decisions(r.doc.Generation, math.MaxInt64); ok && r.stands() {
		want, err := reference.RunStopped(r.work.Plan, contracts, decided)
		if err != nil {
			c.violation("I3", r, "the records can't be those of a run: %v", err)
			return
		}
		c.count(sometimesReplayed)
		c.compare(r, want)
	}
}

func (c *checker) compare(r *runView, want *reference.Result) {
	got := r.doc.Outcome
	if want.Status != string(got.Status) {
		c.violation("I6", r, "it came to %s, and the reference to %s", got.Status, want.Status)
		return
	}
	if len(got.Results) != len(want.Results) || len(got.Errors) != len(want.Errors) {
		c.violation("I6", r, "%d results and %d errors, and the reference has %d and %d", len(got.Results), len(got.Errors),
			len(want.Results), len(want.Errors))
		return
	}
	for i, w := range want.Results {
		if g := got.Results[i]; g.Step != w.Step || valueDigest(r.value(g)) != valueDigest(w.JSON) {
			c.violation("I6", r, "the result of step %s is %.200q, and in the reference %.200q", g.Step, g.JSON, w.JSON)
		}
	}
	if (want.Output == nil) != (got.Output == nil) || want.Output != nil && valueDigest(got.Output) != valueDigest(want.Output) {
		c.violation("I6", r, "the output is %.200q, and in the reference %.200q", got.Output, want.Output)
	}
	if !slices.Equal(got.NotTaken, want.NotTaken) {
		c.violation("I6", r, "%v were not taken, and in the reference %v", got.NotTaken, want.NotTaken)
	}
	for i, w := range want.Errors {
		if g := got.Errors[i]; g.HandledBy != w.HandledBy {
			c.violation("I6", r, "the failure of %s was handled by %q, and in the reference by %q", g.Step, g.HandledBy, w.HandledBy)
		}
		if g := got.Errors[i]; g.Step != w.Step || string(g.Code) != w.Code || w.Code == "skipped" && g.Message != w.Message {
			c.violation("I6", r, "step %s failed with %s, and in the reference step %s with %s", g.Step, g.Code, w.Step, w.Code)
		}
	}
}
