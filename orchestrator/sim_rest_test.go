package orchestrator

import (
	"fmt"
	"strings"
)

// restless is I9: once the faults are over everything comes to rest. It says what has not, "" for nothing.
func (w *world) restless() string {
	for _, x := range w.truths.order {
		switch {
		case !w.truths.hasOutcome(x):
			return fmt.Sprintf("%s/%d has no outcome", x.id.ID, x.gen)
		case !x.gone:
			return fmt.Sprintf("%s/%d lies in the ledger still: %s", x.id.ID, x.gen, w.known(x))
		}
	}
	for _, s := range w.shards {
		if len(s.all) > 0 {
			return fmt.Sprintf("%s is left in the ledger, and %d others", s.all[0].Subject, len(s.all)-1)
		}
	}
	if len(w.steps.all) > 0 {
		return fmt.Sprintf("the step %s is pending", w.steps.all[0].subject)
	}
	for key := range w.questions.entries {
		return "the question " + key + " is left"
	}
	for _, o := range w.owners {
		if why := o.restless(); why != "" {
			return o.name + ": " + why
		}
	}
	return ""
}

// known tells what the orchestrators know of a run.
func (w *world) known(x *truth) string {
	var all []string
	for _, o := range w.owners {
		l := o.loops.of(x.id.Partition())
		c := l.cursors.owned[x.id.Partition()]
		state := fmt.Sprintf("%s owns it: %t", o.name, c != nil)
		if c != nil {
			state += fmt.Sprintf(" (caught up %t, at %d)", c.caughtUp, c.last)
		}
		if r := l.runs.byID[x.id]; r != nil {
			state += fmt.Sprintf(", has generation %d in phase %d, last %d, over %t", r.generation, r.phase, r.lastSeq, r.over)
		}
		all = append(all, state)
	}
	return strings.Join(all, "; ")
}

func (o *orch) restless() string {
	if o.dead {
		return "it is dead"
	}
	for _, l := range o.loops.all {
		if why := restless(l); why != "" {
			return why
		}
	}
	if o.jobs.working > 0 {
		return "a job goes on"
	}
	return ""
}

func restless(l *loop) string {
	for id, r := range l.runs.byID {
		return fmt.Sprintf("the run %s/%d is kept in phase %d", id.ID, r.generation, r.phase)
	}
	for name, w := range l.dispatcher.windows {
		if w.out != 0 || w.held != 0 {
			return fmt.Sprintf("%d calls of %s take room and %d are held back, of no run", w.out, name, w.held)
		}
		if p := w.stake.pool; p != nil && p.out.Load()+p.claims.Load()+p.waiting.Load() != 0 {
			return fmt.Sprintf("of %s the loops count %d calls together, %d windows that want some and %d that wait", name, p.out.Load(), p.claims.Load(), p.waiting.Load())
		}
	}
	for tenant := range l.dispatcher.burdens {
		return "bytes of " + tenant + " are counted, of no run"
	}
	if ps := l.dispatcher.tenants; ps != nil && len(ps.byName) > 0 {
		return "loops share bytes of tenants that have no run"
	}
	if len(l.driver.timers.heap) > 0 {
		return "a timer is set"
	}
	return ""
}
