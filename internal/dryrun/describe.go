package dryrun

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// describe writes down what the run came to.
func (t *trial) describe(d *outcome.DryRun) {
	for _, wave := range t.plan.Waves() {
		d.Waves = append(d.Waves, t.ids(wave))
	}
	if t.plan.TimeoutSet {
		d.TimeoutMS = t.plan.Timeout.Milliseconds()
	}
	for i := range t.steps {
		if t.plan.Steps[i].Value {
			t.describeValue(i)
		}
		d.Steps = append(d.Steps, t.step(i))
		d.Calls += t.steps[i].calls
		d.Guessed = d.Guessed || t.steps[i].guessed || t.plan.Steps[i].If != nil
	}
	used := t.used()
	for _, k := range used {
		d.Tools = append(d.Tools, k.describe())
	}
	d.Notices = t.notices(used)
	d.Doubts, d.DoubtsLeftOut, d.Cut = t.doubts, t.leftOut, t.cut
	if t.cut != "" {
		return
	}
	o := t.machine.Outcome("", t.output)
	if t.cut != "" { // by the results that are returned
		d.Cut = t.cut
		return
	}
	d.Status, d.Results, d.Output, d.Errors, d.NotTaken = o.Status, o.Results, o.Output, o.Errors, o.NotTaken
}

// used returns the tools that the plan calls, by name: the catalog knows those that they depend on, too.
func (t *trial) used() (tools []*known) {
	for i := range t.steps {
		if k := t.steps[i].tool; k != nil && !t.plan.Steps[i].Ask && !slices.Contains(tools, k) {
			tools = append(tools, k)
		}
	}
	slices.SortFunc(tools, func(a, b *known) int { return strings.Compare(a.name, b.name) })
	return tools
}

// output returns a result as an outcome has it.
func (t *trial) output(step int) []byte {
	switch s := &t.plan.Steps[step]; {
	case s.ForEach == nil:
		return t.machine.Result(machine.Call{Step: step}).Value
	case s.Value:
		return plan.Envelope(t.machine.Result(machine.Call{Step: step}).Value)
	}
	entries := t.entriesOf(step)
	if entries == nil {
		return nil
	}
	return plan.Envelope(entries)
}

func (t *trial) ids(steps []int) (ids []string) {
	for _, i := range steps {
		ids = append(ids, t.plan.Steps[i].ID)
	}
	return ids
}

func (t *trial) step(i int) outcome.DryStep {
	x, p := &t.steps[i], &t.plan.Steps[i]
	d := outcome.DryStep{
		ID: p.ID, Tool: p.Tool, Wave: p.Depth + 1, DependsOn: t.ids(p.Deps), Optional: p.Optional,
		TimeoutMS: p.Timeout.Milliseconds(), Calls: x.calls, Guessed: x.guessed, Arguments: x.shown,
		Status: t.machine.StepStatus(i),
	}
	if x.size > maxShown {
		d.ArgumentBytes = x.size
	}
	if res := t.machine.Result(machine.Call{Step: i}); p.Value && res != nil && res.Size <= maxShown {
		d.Value = res.Value
	}
	return d
}

// describeValue doubts what is wrong with a value that rests on made-up results.
func (t *trial) describeValue(i int) {
	c := machine.Call{Step: i}
	err, _ := t.machine.Failure(c)
	switch {
	case err != nil && !t.certain(i):
		t.doubt(i, "/value", err)
	case t.machine.Result(c) != nil && t.plan.Steps[i].ForEach == nil:
		t.nothing(c, nil)
	}
}

func (k *known) describe() outcome.DryTool {
	c := &k.Contract
	return outcome.DryTool{
		Tool: k.name, Calls: k.calls, AtOnce: k.atOnce, Limit: c.Limit, MaxAttempts: c.MaxAttempts,
		TimeoutMS: c.Timeout.Milliseconds(), WaitTimeoutMS: c.WaitTimeout.Milliseconds(),
		Destructive: k.destructive(), Returns: k.returns(), From: k.from,
	}
}

// destructive reports whether the tool says that it may destroy or overwrite. As in MCP, the hint means nothing of a
// tool that only reads.
func (k *known) destructive() bool {
	a := k.Definition.Annotations
	return a != nil && a.DestructiveHint != nil && *a.DestructiveHint && (a.ReadOnlyHint == nil || !*a.ReadOnlyHint)
}
