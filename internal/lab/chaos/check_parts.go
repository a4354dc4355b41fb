package chaos

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// value returns a step's result as references see it: of a for_each the entries, without the envelope around them.
func (r *runView) value(res outcome.Result) []byte {
	p, err := reference.Parse(r.work.Plan)
	if err != nil || !slices.ContainsFunc(p.Steps, func(s reference.PlanStep) bool {
		return s.ID == res.Step && s.ForEach
	}) {
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

// checkSkipped is I5: a step was skipped if and only if a direct dependency that isn't optional did not succeed; in
// language 2, if a failure reaches it that nothing it refers to takes the place of.
func (c *checker) checkSkipped(r *runView) {
	p, err := reference.Parse(r.work.Plan)
	if err != nil || len(p.Steps) != len(r.doc.Steps) {
		c.violation("I8", r, "%d steps in the document, and other ones in the plan", len(r.doc.Steps))
		return
	}
	spoiled := p.Spoiled(func(i int) string { return string(r.doc.Steps[i].Status) })
	for i, s := range p.Steps {
		blocked := spoiled[i] || !p.Second && slices.ContainsFunc(s.Deps, func(d int) bool {
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
		if got == outcome.StepNotTaken {
			c.count(sometimesNotTaken)
		}
		if n := len(r.doc.Steps[i].Items); n > 0 {
			c.count(sometimesItems)
		}
	}
}

// checkArguments is I6 for what the tools were given.
func (c *checker) checkArguments(r *runView, want *reference.Result) {
	for _, e := range r.executions {
		if e.Kind != journal.Begin {
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
