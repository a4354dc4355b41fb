package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/tool"
)

// part is one part of a tool's contract, in words.
type part struct{ name, value string }

// terms puts a contract and the tenants into words. Both of two contracts have the same terms.
func terms(c *tool.Contract, tenants []string) []part {
	delivery := "at least once"
	if c.AtMostOnce {
		delivery = "at most once"
	}
	return []part{
		{"mode", string(c.Mode)},
		{"limit", fmt.Sprint(c.Limit)},
		{"attempts", fmt.Sprint(c.MaxAttempts)},
		{"backoff", backoffWords(c.Backoff)},
		{"timeout", c.Timeout.String()},
		{"wait timeout", orNone(c.WaitTimeout)},
		{"delivery", delivery},
		{"batch", batchWords(c.Batch)},
		{"depends on", dependencyWords(c.DependsOn)},
		{"approval", cmp.Or(oneLine(string(c.Approval)), "none")},
		{"error propagation", string(c.ErrorPropagation)},
		{"request", requestWords(c)},
		{"notes", noteWords(c.Note)},
		{"questions", asksWords(c.Asks)},
		{"context", contextWords(c.Context)},
		{"tenants", cmp.Or(strings.Join(tenants, ", "), "all")},
	}
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

func noteWords(relied bool) string {
	if relied {
		return "relied on"
	}
	return "none needed"
}

func asksWords(may bool) string {
	if may {
		return "it may ask a person in the middle of a call"
	}
	return "none"
}

func requestWords(c *tool.Contract) string {
	switch {
	case c.WholeRequest:
		return "whole"
	case c.PartContent:
		return "in parts, a small last one in it"
	}
	return "in parts"
}

func backoffWords(b tool.Backoff) string {
	if b.Strategy == tool.None {
		return "none"
	}
	s := fmt.Sprintf("%s from %s to %s", b.Strategy, b.Initial, b.Max)
	if b.Jitter > 0 {
		s += fmt.Sprintf(", jitter %v", b.Jitter)
	}
	return s
}

func batchWords(b *tool.Batch) string {
	if b == nil {
		return "none"
	}
	return fmt.Sprintf("%d in %q, within %s", b.MaxItems, b.Argument, b.Wait())
}

func dependencyWords(list []tool.Dependency) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = d.Tool
		if len(d.RequiredFields) > 0 {
			words[i] += " (" + strings.Join(d.RequiredFields, ", ") + ")"
		}
	}
	return cmp.Or(strings.Join(words, ", "), "nothing")
}

func contextWords(f tool.ContextFilter) string {
	s := string(cmp.Or(f.Filter, tool.PassThrough))
	if len(f.Keys) > 0 {
		s += " " + strings.Join(f.Keys, ", ")
	}
	return s
}

// usual are the terms that go without saying where they have these values.
var usual = map[string]string{
	"wait timeout": "none", "batch": "none", "depends on": "nothing", "context": "pass-through", "tenants": "all",
	"request": "in parts",
	"notes":   "none needed",
}

// ofTemplates are the terms that mean something of a tool that is a plan or an agent.
var ofTemplates = []string{"depends on", "approval", "tenants"}

// contractRows returns the contract as it counts, and beside it what was declared where an operator has overridden it.
func (a *app) contractRows(t *tool.Registered) *table {
	rows := &table{}
	dim := a.style.dim
	declared := terms(&t.Contract, t.Tenants)
	if t.Override != nil {
		if c, err := t.Definition.Contract(); err == nil {
			declared = terms(&c, t.Definition.Tenants)
		}
	}
	for i, now := range terms(&t.Contract, t.Tenants) {
		if usual[now.name] == now.value && declared[i] == now || !t.Hosted() && !slices.Contains(ofTemplates, now.name) {
			continue
		}
		row := []cell{{text: now.name, paint: dim}, plain(oneLine(now.value))}
		if declared[i] != now {
			row = append(row, cell{text: "declared: " + oneLine(declared[i].value), paint: dim})
		}
		rows.add(row...)
		if t.Agent() && now.name == "approval" { // which is of calls of it
			rows.add(cell{text: "round approval", paint: dim}, plain(roundsApproval(t.Definition)))
		}
	}
	if t.Override != nil {
		by := "an operator"
		if t.Override.By != "" {
			by = oneLine(t.Override.By)
		}
		rows.add(cell{text: "overridden", paint: dim}, plain("by "+by))
	}
	rows.add(cell{text: "digest", paint: dim}, plain(t.Digest))
	return rows
}

// roundsApproval says whether somebody is asked about the rounds of an agent.
func roundsApproval(d *tool.Definition) string {
	var of struct{ Approval json.RawMessage }
	if json.Unmarshal(d.Agent, &of) != nil || len(of.Approval) == 0 || string(of.Approval) == "null" {
		return "none"
	}
	return "a person is asked about each"
}

// tenantRow says that a contract is one tenant's.
func (a *app) tenantRow(rows *table, o *tool.Override) {
	by := cmp.Or(oneLine(o.By), "an operator")
	rows.add(cell{text: "for " + a.flags.tenant, paint: a.style.dim}, plain("overridden by "+by))
}

// changes says what differs between two entries of a tool.
func changes(before, after *tool.Registered) []string {
	var all []string
	old := terms(&before.Contract, before.Tenants)
	for i, now := range terms(&after.Contract, after.Tenants) {
		if old[i] != now {
			all = append(all, fmt.Sprintf("%s %s → %s", now.name, old[i].value, now.value))
		}
	}
	b, n := before.Definition, after.Definition
	for _, p := range []struct {
		name    string
		differs bool
	}{
		{"title", b.Title != n.Title}, {"description", b.Description != n.Description},
		{"input schema", !sameJSON(b.InputSchema, n.InputSchema)}, {"output schema", !sameJSON(b.OutputSchema, n.OutputSchema)},
		{"annotations", !reflect.DeepEqual(b.Annotations, n.Annotations)},
	} {
		if p.differs {
			all = append(all, p.name)
		}
	}
	if len(all) == 0 && before.Digest != after.Digest {
		all = []string{"other members of the definition"}
	}
	return all
}

func sameJSON(a, b []byte) bool {
	var x, y any
	_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y) // both were read before; an absent schema is nil
	return reflect.DeepEqual(x, y)
}
