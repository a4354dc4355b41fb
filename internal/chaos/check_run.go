package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/reference"
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
	if r.accepted && c.ev.Kept && len(r.plans) == 0 {
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
		case o.Digest != digest(r.doc.Outcome.JSON()):
			c.violation("I1", r, "its agent was told another outcome (%s) than the history holds (%s)", o.Status, r.doc.Status)
		}
	}
	if len(r.outcomes) > 1 {
		c.count(sometimesAsked)
	}
}

// checkOrphans is I8 and I9: no record is left of a generation that has no plan.
func (c *checker) checkOrphans(r *runView) {
	for _, x := range r.records {
		if _, ok := r.plans[x.rec.Generation]; !ok {
			c.violation("I8", r, "a record is left of generation %d, whose plan is gone", x.rec.Generation)
			return
		}
	}
}

// checkRecords is I2: one record for each attempt, one success for each step, and no attempt before the last was a failure.
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
	id, _, _ := subjects.SplitItem(token)
	p, err := reference.Parse(r.work.Plan)
	return err == nil && slices.ContainsFunc(p.Steps, func(s reference.PlanStep) bool { return s.ID == id })
}

// checkDocument is I5 and I6: what the run came to is what the sequential reference makes of its plan, and of its records.
func (c *checker) checkDocument(r *runView) {
	if r.doc == nil || r.doc.Outcome == nil || r.work == nil || r.doc.Status == outcome.Rejected {
		if r.doc != nil && r.doc.Status == outcome.Rejected {
			c.violation("I6", r, "a valid plan was rejected: %v", r.doc.Outcome.Problems)
		}
		return
	}
	if r.doc.Status == outcome.Cancelled {
		c.count(sometimesCancelled)
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
	if decided, ok := r.decisions(); ok && r.stands() {
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
		c.violation("I6", r, "%d results and %d errors, and the reference has %d and %d", len(got.Results), len(got.Errors), len(want.Results), len(want.Errors))
		return
	}
	for i, w := range want.Results {
		if g := got.Results[i]; g.Step != w.Step || valueDigest(r.value(g)) != valueDigest(w.JSON) {
			c.violation("I6", r, "the result of step %s is %.200q, and in the reference %.200q", g.Step, g.JSON, w.JSON)
		}
	}
	for i, w := range want.Errors {
		if g := got.Errors[i]; g.Step != w.Step || string(g.Code) != w.Code || w.Code == "skipped" && g.Message != w.Message {
			c.violation("I6", r, "step %s failed with %s, and in the reference step %s with %s", g.Step, g.Code, w.Step, w.Code)
		}
	}
}

// value gives a step's result as references see it: of a for_each the entries, without the envelope around them.
func (r *runView) value(res outcome.Result) []byte {
	p, err := reference.Parse(r.work.Plan)
	if err != nil || !slices.ContainsFunc(p.Steps, func(s reference.PlanStep) bool { return s.ID == res.Step && s.ForEach }) {
		return res.JSON
	}
	var envelope struct {
		Results []map[string]any `json:"results"`
	}
	d := json.NewDecoder(bytes.NewReader(res.JSON))
	d.UseNumber()
	if d.Decode(&envelope) != nil {
		return nil
	}
	for _, entry := range envelope.Results {
		if f, ok := entry["error"].(map[string]any); ok {
			delete(f, "hint") // for a reader; the reference knows none
		}
	}
	value, _ := json.Marshal(envelope.Results) // it was JSON
	return value
}

// checkSkipped is I5: a step was skipped if and only if a direct dependency that isn't optional did not succeed.
func (c *checker) checkSkipped(r *runView) {
	p, err := reference.Parse(r.work.Plan)
	if err != nil || len(p.Steps) != len(r.doc.Steps) {
		c.violation("I8", r, "%d steps in the document, and other ones in the plan", len(r.doc.Steps))
		return
	}
	for i, s := range p.Steps {
		blocked := slices.ContainsFunc(s.Deps, func(d int) bool {
			status := r.doc.Steps[d].Status
			return !p.Steps[d].Optional && (status == outcome.StepFailed || status == outcome.StepSkipped)
		})
		got := r.doc.Steps[i].Status
		if got == outcome.StepCancelled {
			continue // the run was stopped before its dependency failed
		}
		if blocked != (got == outcome.StepSkipped) {
			c.violation("I5", r, "step %s is %s, and whether a dependency failed is %v", s.ID, got, blocked)
		} else if blocked {
			c.count(sometimesSkipped)
		}
		if n := len(r.doc.Steps[i].Items); n > 0 {
			c.count(sometimesItems)
		}
	}
}

// checkArguments is I6 for what the tools were given.
func (c *checker) checkArguments(r *runView, want *reference.Result) {
	for _, e := range r.executions {
		if e.Kind != evBegin {
			continue
		}
		id, item, isItem := subjects.SplitItem(e.Step)
		step, ok := want.Steps[id]
		args := step.Arguments
		if isItem && item < len(step.Items) {
			args = step.Items[item].Arguments
		}
		if isItem && args == nil && step.Status == "failed" {
			continue // its siblings ran beside the one that failed; the reference takes one after the other
		}
		if !ok || args == nil || valueDigest(args) != e.Args {
			c.violation("I6", r, "step %s was called with other arguments than the reference has", e.Step)
		}
	}
}

// changed reports whether the run started with other contracts than its case has.
func (r *runView) changed() bool {
	for name, k := range r.frozen {
		if r.work.Contracts[name] != k {
			return true
		}
	}
	return false
}

// noSecret is I10 for something that was stored or said.
func (c *checker) noSecret(where, text string) {
	if at := strings.Index(text, secretMark); at >= 0 {
		c.violation("I10", nil, "a secret in %s: …%s…", where, text[at:min(len(text), at+60)])
	}
}

func (c *checker) checkSecrets() {
	for where, text := range c.ev.Texts {
		c.noSecret(where, text)
	}
	for _, d := range c.ev.Dead {
		r := c.run(d.Tenant, d.Run)
		if r.doc == nil || len(d.Arguments) > 0 && !json.Valid(d.Arguments) {
			c.violation("I8", r, "a dead letter of step %s without its run", d.Step)
		}
	}
}

func (r *runView) String() string { return fmt.Sprint(r.key.tenant, "/", r.key.id) }
