package chaos

import (
	"github.com/stepjet/stepjet/internal/lab/journal"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// nestedHas is has for a plan with plans within its steps.
func (r *runView) nestedHas(token string) bool {
	p, _ := plan.Parse(r.work.Plan, nil)
	if p == nil {
		return false
	}
	_, _, ok := p.Find(token)
	return ok
}

// checkNested is I6 for a plan with plans within its steps: where nothing but its tools had a say it comes to what it
// comes to in the reference, to which such a step is a tool, and its tools were called with what the reference has.
func (c *checker) checkNested(r *runView) {
	if r.disturbed() || r.doc.Status == outcome.Cancelled || r.doc.Status == outcome.Expired {
		return // the reference runs such a plan by itself, and knows neither what a worker's death nor when a stop came to
	}
	contracts := r.work.Contracts
	if r.frozen != nil {
		contracts = r.frozen
	}
	all, err := r.work.nested.Run(contracts)
	if err != nil {
		c.violation("I6", r, "the reference can't run the plan: %v", err)
		return
	}
	c.count(sometimesNested)
	account := map[string]string{}
	accountOf(r.doc.Steps, account)
	if problem := reference.Differ(account, all); problem != "" {
		c.violation("I6", r, "%s", problem)
	}
	if want := all[""].Status; want != string(r.doc.Status) {
		c.violation("I6", r, "it came to %s, and the reference to %s", r.doc.Status, want)
	}
	if !r.itemFailed() {
		c.checkNestedArguments(r, all)
		c.checkNestedValues(r, all[""])
		c.checkNestedTold(r, all)
	}
}

// checkNestedValues compares what the run returned, values among it: what was told of those is part of that.
func (c *checker) checkNestedValues(r *runView, want *reference.Result) {
	got := r.doc.Outcome
	if (want.Output == nil) != (got.Output == nil) || want.Output != nil && valueDigest(got.Output) != valueDigest(want.Output) {
		c.violation("I6", r, "the output is %.200q, and in the reference %.200q", got.Output, want.Output)
	}
	if len(got.Results) != len(want.Results) {
		c.violation("I6", r, "%d results, and the reference has %d", len(got.Results), len(want.Results))
		return
	}
	for i, w := range want.Results {
		g := got.Results[i]
		if list := gjson.GetBytes(g.JSON, "results"); list.IsArray() && gjson.GetBytes(g.JSON, "summary").Exists() { // of a for_each
			g.JSON = []byte(list.Raw)
		}
		if g.Step != w.Step || valueDigest(g.JSON) != valueDigest(w.JSON) {
			c.violation("I6", r, "the result of step %s is %.200q, and in the reference of %s %.200q", g.Step, g.JSON, w.Step, w.JSON)
		}
	}
}

// accountOf adds how steps ended, and all that they are made of.
func accountOf(steps []outcome.Step, account map[string]string) {
	for i := range steps {
		s := &steps[i]
		account[s.ID] = string(s.Status)
		if s.Error != nil {
			account[s.ID] += " " + string(s.Error.Code)
		}
		accountOf(s.Items, account)
		accountOf(s.Steps, account)
	}
}

// itemFailed reports whether an item failed: references may see its error, of which the reference knows less.
func (r *runView) itemFailed() bool {
	return slices.ContainsFunc(r.records, func(x record) bool {
		_, _, isItem := subjects.SplitItem(x.rec.Attempt.Step)
		return isItem && x.result.Error != nil
	})
}

// checkNestedArguments is checkArguments for them.
func (c *checker) checkNestedArguments(r *runView, all map[string]*reference.Result) {
	want := map[string][]byte{}
	for token, res := range all {
		for id, s := range res.Steps {
			want[token+id] = s.Arguments
			for n, item := range s.Items {
				want[subjects.ItemToken(token+id, n)] = item.Arguments
			}
		}
	}
	for _, e := range r.executions {
		args := want[e.Step] // nil beside an item that failed: the reference takes one after the other
		if e.Kind == journal.Begin && args != nil && valueDigest(args) != e.Args {
			c.violation("I6", r, "step %s was called with other arguments than the reference has", e.Step)
		}
	}
}
