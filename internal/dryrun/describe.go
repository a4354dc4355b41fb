package dryrun

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// described is a run as it is written down: what was learnt of the steps of the plans, however often they were entered.
type described struct {
	*trial
	of map[*plan.Step][]int // the numbers that each step has in the run, in the order in which it came by
}

// describe writes down what the run came to.
func (t *trial) describe(d *outcome.DryRun) {
	w := described{t, map[*plan.Step][]int{}}
	for c := range t.machine.All() {
		if c.Item == 0 {
			s := t.machine.PlanStep(c.Step)
			w.of[s] = append(w.of[s], c.Step)
		}
	}
	for _, wave := range t.plan.Waves() {
		d.Waves = append(d.Waves, idsOf(t.plan, "", wave))
	}
	if t.plan.TimeoutSet {
		d.TimeoutMS = t.plan.Timeout.Milliseconds()
	}
	d.Steps = w.steps(t.plan, "")
	for s := range t.plan.All() {
		d.Guessed = d.Guessed || s.If != nil || s.Repeat != nil && s.Repeat.Until != nil
		for _, step := range w.of[s] {
			d.Calls += t.at(step).calls
			d.Guessed = d.Guessed || t.at(step).guessed
		}
	}
	used := t.used()
	for _, k := range used {
		d.Tools = append(d.Tools, k.describe())
	}
	d.Notices = w.notices(used)
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
	for s := range t.plan.All() {
		if k := t.catalog.known[s.Tool]; k != nil && !s.Ask && s.Plan == nil && !slices.Contains(tools, k) {
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

// idsOf names steps of a plan; within says what stands before the ids of one that is a step's own.
func idsOf(p *plan.Plan, within string, steps []int) (ids []string) {
	for _, i := range steps {
		ids = append(ids, within+p.Steps[i].ID)
	}
	return ids
}

// steps describes those of a plan, and of the plans within it that were entered.
func (w *described) steps(p *plan.Plan, within string) (all []outcome.DryStep) {
	for i := range p.Steps {
		s := &p.Steps[i]
		numbers := w.of[s]
		if len(numbers) == 0 {
			continue // of a composite that was not entered
		}
		if s.Value {
			w.value(numbers[0])
		}
		d := w.step(s, numbers)
		d.ID, d.DependsOn = within+s.ID, idsOf(p, within, s.Deps)
		if s.Repeat != nil {
			w.iterations(s, &d)
		} else if s.Plan != nil {
			d.Steps = w.steps(s.Plan, d.ID+"/")
		}
		all = append(all, d)
	}
	return all
}

// step describes one: with all its calls, and else as it stood where it came by first.
func (w *described) step(s *plan.Step, numbers []int) outcome.DryStep {
	x := w.at(numbers[0])
	d := outcome.DryStep{
		Tool: s.Tool, Wave: s.Depth + 1, Optional: s.Optional, TimeoutMS: s.Timeout.Milliseconds(), Guessed: x.guessed,
		Arguments: x.shown, Status: w.machine.StepStatus(numbers[0]),
	}
	for _, n := range numbers {
		d.Calls += w.at(n).calls
	}
	if x.size > maxShown {
		d.ArgumentBytes = x.size
	}
	if res := w.machine.Result(machine.Call{Step: numbers[0]}); s.Value && res != nil && res.Size <= maxShown {
		d.Value = res.Value
	}
	return d
}

// iterations describes what a loop does: with the calls of all iterations, and else as it stands in the first.
func (w *described) iterations(s *plan.Step, d *outcome.DryStep) {
	each := s.Does()
	d.Tool, d.Repeat = each.Tool, s.Repeat.Text()
	if numbers := w.of[each]; len(numbers) > 0 {
		x := w.step(each, numbers)
		d.Calls, d.Arguments, d.ArgumentBytes = x.Calls, x.Arguments, x.ArgumentBytes
	}
	if each.Plan != nil {
		d.Steps = w.steps(each.Plan, d.ID+"/")
	}
}

// value doubts what is wrong with a value that rests on made-up results.
func (w *described) value(i int) {
	c := machine.Call{Step: i}
	err, _ := w.machine.Failure(c)
	switch {
	case err != nil && !w.certain(i):
		w.doubtOf(c, "/value", err)
	case w.machine.Result(c) != nil && w.machine.PlanStep(i).ForEach == nil:
		w.nothing(c, nil)
	}
}

func (k *known) describe() outcome.DryTool {
	c := &k.Contract
	return outcome.DryTool{
		Tool: k.name, Calls: k.calls, AtOnce: k.atOnce, Limit: c.Limit, MaxAttempts: c.MaxAttempts,
		TimeoutMS: c.Timeout.Milliseconds(), WaitTimeoutMS: c.WaitTimeout.Milliseconds(),
		Destructive: k.Definition.Annotations.Destructive(), Returns: k.returns(), From: k.from,
	}
}
