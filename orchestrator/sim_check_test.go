package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// The invariants of the design's reliability page, each where it can first be broken.

// checkI1: one terminal outcome for each accepted plan, which never changes.
func (t *truths) checkI1(x *truth, doc *outcome.Run) {
	switch {
	case doc.Status == outcome.Running || doc.Status == "":
		t.w.violate("I1", "an outcome that is none: %s", doc.Status)
	case doc.Digest != x.digest:
		t.w.violate("I1", "the outcome of another plan: %s, not %s", doc.Digest, x.digest)
	case x.gone:
		t.w.violate("I1", "%s/%d, which was over and purged, got an outcome", x.id.ID, x.gen)
	}
	if h := t.history[x.id]; h != nil && !h.expired {
		t.w.violate("I1", "%s has two outcomes", x.id.ID)
	}
}

// checkKept: a plan is purged only once an outcome stands.
func (t *truths) checkKept(x *truth) {
	if t.history[x.id] == nil {
		t.w.violate("I1", "the plan %s/%d was purged without an outcome", x.id.ID, x.gen)
	}
}

// checkI2: one immutable record for each attempt, one success for each step, and an attempt only after the one before
// it was decided a failure that may be tried again.
func (t *truths) checkI2(x *truth, a subjects.Attempt, err *fault.Error, step int) {
	before := x.records[a.Step]
	if _, again := before[a.Number]; again {
		t.w.violate("I2", "a second record of %s", a.MessageID())
	}
	if err == nil && x.succeeded[a.Step] {
		t.w.violate("I2", "a second success of %s", a.Key())
	}
	t.checkAttempt("I2", x, a, step)
}

func (t *truths) checkAttempt(invariant string, x *truth, a subjects.Attempt, step int) {
	most, _ := x.contract(step).Policy(x.plan.Steps[step].Retry)
	if a.Number > most {
		t.w.violate(invariant, "%s: the frozen contract allows %d attempts", a.MessageID(), most)
	}
	if a.Number == 1 {
		return
	}
	last, decided := x.records[a.Step][a.Number-1]
	if !decided || last == nil || !last.Retryable || !last.Code.Retryable() {
		t.w.violate(invariant, "%s: the attempt before it was not decided a failure that may be tried again", a.MessageID())
	}
}

// dispatched checks I3 and I8: no dispatch before dependencies, none of what nobody submitted. What the sweep sends again
// was looked for first.
func (t *truths) dispatched(m *message, repair int, by *process) {
	a := m.attempt
	x := t.of(a.Run, a.Generation)
	if x == nil || x.plan == nil {
		t.w.violate("I8", "a dispatch of what nobody submitted: %s", a.MessageID())
		return
	}
	i, known := x.stepOf(a)
	if !known || x.start == nil || x.start.rejected() {
		t.w.violate("I8", "a dispatch of a step that the plan doesn't have, or before it was started: %s", a.MessageID())
		return
	}
	t.w.stats["dispatch"]++
	t.checkAttempt("I3", x, a, i)
	t.checkI3(x, a, i)
	if x.out[a.Step] == nil {
		x.out[a.Step] = map[int]bool{}
	}
	x.out[a.Step][a.Number] = true
	if repair == 0 {
		if x.gone {
			t.w.stats["dispatch for a purged run"]++
		}
		return
	}
	t.w.stats["dispatch by the sweep"]++
	record := subjects.StepRecord(a, len(t.w.shards))
	looked, ok := x.readBacks[by.name+record]
	if e := t.w.streamOf(record).bySubj[record]; !ok || e != nil && e.Time.Sub(epoch) < looked {
		t.w.violate("I7", "the sweep sent %s again without looking for its record", a.MessageID())
	}
	if x.gone && x.planChecks[by.name] == 0 {
		t.w.violate("I7", "the sweep sent %s again, though its run was over and purged", a.MessageID())
	}
}

// checkI3: all dependencies are over, and those that are not optional have succeeded.
func (t *truths) checkI3(x *truth, a subjects.Attempt, step int) {
	for _, d := range x.plan.Steps[step].Deps {
		if !x.over(d) || !x.plan.Steps[d].Optional && x.spoils(d) {
			t.w.violate("I3", "%s was dispatched before its dependency %s", a.MessageID(), x.plan.Steps[d].ID)
		}
	}
}

// over reports whether a step's end follows from the records.
func (x *truth) over(step int) bool {
	p := &x.plan.Steps[step]
	switch {
	case x.succeeded[p.ID] || x.final[p.ID]:
		return true
	case slices.ContainsFunc(p.Deps, x.spoils):
		return true
	case p.ForEach == nil:
		return false
	}
	// How many items there are only the list knows: those that were sent have to be over.
	open, _ := x.items(step)
	return !open && !slices.ContainsFunc(p.Deps, func(d int) bool { return !x.over(d) })
}

// items reports whether an item of a for_each step that was sent is open, and whether one failed.
func (x *truth) items(step int) (open, failed bool) {
	for token := range x.out {
		if id, _, isItem := subjects.SplitItem(token); isItem && id == x.plan.Steps[step].ID {
			open = open || !x.final[token]
		}
	}
	for token := range x.final {
		if id, _, isItem := subjects.SplitItem(token); isItem && id == x.plan.Steps[step].ID {
			failed = failed || !x.succeeded[token]
		}
	}
	return open, failed
}

// spoils reports whether a step is known not to have succeeded, so that its dependents are skipped.
func (x *truth) spoils(step int) bool {
	p := &x.plan.Steps[step]
	if p.Optional {
		return false
	}
	if p.ForEach != nil && x.contract(step).ErrorPropagation == tool.FailFast {
		if open, failed := x.items(step); failed && !open {
			return true
		}
	}
	return x.final[p.ID] && !x.succeeded[p.ID] || slices.ContainsFunc(p.Deps, x.spoils)
}

// withdrawn: a step is taken back only once it is decided; else nobody might decide it.
func (t *truths) withdrawn(a subjects.Attempt) {
	x := t.of(a.Run, a.Generation)
	if _, decided := x.records[a.Step][a.Number]; !decided && !x.gone {
		t.w.violate("I2", "%s was taken back before it was decided", a.MessageID())
	}
}

// checkI4: never more leases of a tool than its limit.
func (w *world) checkI4(c *consumer) {
	n := 0
	for _, until := range c.leases {
		if until >= w.now {
			n++
		}
	}
	if n > c.limit {
		w.violate("I4", "%d leases of %s, whose limit is %d", n, c.tool, c.limit)
	}
}

// checkI5: a step was skipped if and only if a direct dependency that isn't optional did not succeed. A run that stops
// early cancels instead what had not become ready by then.
func (t *truths) checkI5(x *truth, doc *outcome.Run) {
	for i := range x.plan.Steps {
		spoiled, interrupted := false, false
		for _, d := range x.plan.Steps[i].Deps {
			if x.plan.Steps[d].Optional {
				continue
			}
			switch doc.Steps[d].Status {
			case outcome.StepFailed, outcome.StepSkipped:
				spoiled = true
			case outcome.StepCancelled:
				interrupted = true
			}
		}
		skipped := doc.Steps[i].Status == outcome.StepSkipped
		mayBeCancelled := (x.stopped || x.plan.OnFailure == plan.Stop || interrupted) && doc.Steps[i].Status == outcome.StepCancelled
		if skipped && !spoiled || spoiled && !skipped && !mayBeCancelled {
			t.w.violate("I5", "step %s of %s is %s", doc.Steps[i].ID, x.body, doc.Steps[i].Status)
		}
	}
}

// checkDocument checks I5 and I6 on the document of a run that is over.
func (t *truths) checkDocument(x *truth, doc *outcome.Run) {
	if doc.Status == outcome.Rejected {
		if x.start == nil || !x.start.rejected() || len(x.out) > 0 {
			t.w.violate("I8", "%s was rejected and yet begun", x.id.ID)
		}
		return
	}
	if x.start == nil || x.start.rejected() || x.plan == nil {
		t.w.violate("I8", "%s has an outcome and was never begun", x.id.ID)
		return
	}
	t.checkI5(x, doc)
	if !x.reused {
		t.checkI6(x, doc)
	}
}

// checkI6: the outcome is the one that the sequential interpreter comes to, from the records of the ledger and, where
// nothing but the tools had a say, from the tools alone.
func (t *truths) checkI6(x *truth, doc *outcome.Run) {
	contracts := map[string]reference.Contract{}
	for name, f := range x.start.Tools {
		contracts[name] = reference.Contract{MaxAttempts: f.Contract.MaxAttempts, PartialSuccess: f.Contract.ErrorPropagation == "partial-success"}
	}
	want, err := reference.RunStopped(x.body, contracts, x.decided)
	if err != nil {
		t.w.violate("I6", "the records of %s are those of no run: %v\n%s", x.id.ID, err, x.body)
		return
	}
	if x.listOfOnce() || x.hinted {
		t.w.stats["not compared"]++
		return
	}
	if problem := differs(x, doc, want, false); problem != "" {
		t.w.violate("I6", "%s\n%s", problem, x.body)
		return
	}
	t.w.stats["compared with the records"]++
	if x.disturbed || x.stopped || x.plan.OnFailure == plan.Stop || x.once() {
		return
	}
	want, err = reference.Run(x.body, contracts, t.cases[x.digest].Call)
	if err != nil {
		panic(err)
	}
	if problem := differs(x, doc, want, true); problem != "" {
		t.w.violate("I6", "alone with its tools: %s\n%s", problem, x.body)
	}
	t.w.stats["compared with the tools"]++
}

// once reports whether an at_most_once tool was used, which the reference knows nothing of.
func (x *truth) once() bool {
	return slices.ContainsFunc(x.plan.Steps, func(s plan.Step) bool { return x.start.Tools[s.Tool].Contract.AtMostOnce })
}

// listOfOnce reports whether one was used for items, the errors of which references can see.
func (x *truth) listOfOnce() bool {
	return slices.ContainsFunc(x.plan.Steps, func(s plan.Step) bool {
		return s.ForEach != nil && x.start.Tools[s.Tool].Contract.AtMostOnce
	})
}

func differs(x *truth, doc *outcome.Run, want *reference.Result, calm bool) string {
	got := doc.Outcome
	if want.Status != string(got.Status) {
		return fmt.Sprintf("status %s, not %s", got.Status, want.Status)
	}
	for i := range doc.Steps {
		st, ref := &doc.Steps[i], want.Steps[doc.Steps[i].ID]
		if ref.Status != string(st.Status) {
			return fmt.Sprintf("step %s is %s, not %s", st.ID, st.Status, ref.Status)
		}
		if seen := x.args[st.ID]; seen != nil && ref.Arguments != nil && !sameJSON(seen, ref.Arguments) {
			return fmt.Sprintf("step %s was called with %s, not %s", st.ID, seen, ref.Arguments)
		}
		for n, item := range ref.Items {
			if seen := x.args[subjects.ItemToken(st.ID, n)]; seen != nil && item.Arguments != nil && !sameJSON(seen, item.Arguments) {
				return fmt.Sprintf("item %d of step %s was called with %s, not %s", n, st.ID, seen, item.Arguments)
			}
		}
	}
	if len(want.Results) != len(got.Results) || len(want.Errors) != len(got.Errors) {
		return fmt.Sprintf("%d results and %d errors, not %d and %d", len(got.Results), len(got.Errors), len(want.Results), len(want.Errors))
	}
	for i, r := range want.Results {
		value := got.Results[i].JSON
		if at, _ := x.plan.Index(r.Step); x.plan.Steps[at].ForEach != nil {
			var envelope struct{ Results json.RawMessage }
			_ = json.Unmarshal(value, &envelope)
			value = envelope.Results
		}
		if r.Step != got.Results[i].Step || !sameJSON(r.JSON, value) {
			return fmt.Sprintf("the result of %s is %s, not %s", r.Step, got.Results[i].JSON, r.JSON)
		}
	}
	for i, e := range want.Errors {
		g := got.Errors[i]
		at, _ := x.plan.Index(e.Step)
		if calm && x.plan.Steps[at].ForEach != nil {
			e.Attempts = g.Attempts // of how many items were executed before one failed fast, the order decides
		}
		if e.Step != g.Step || e.Code != string(g.Code) || e.Attempts != g.Attempts {
			return fmt.Sprintf("the error of %s is %+v, not %+v", e.Step, g, e)
		}
	}
	return ""
}

// sameJSON compares by value, with the exact digits of numbers: text in templates may be escaped in several ways.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(b []byte) string {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return err.Error()
		}
		s, _ := json.Marshal(v)
		return string(s)
	}
	return read(a) == read(b)
}

// checkI7: every effect belongs to an attempt that was dispatched, its arguments are those of all others of the step,
// and an at_most_once tool has one at most.
func (t *truths) checkI7(a subjects.Attempt, step *wire.Step, args []byte) {
	x := t.of(a.Run, a.Generation)
	if x == nil || !x.out[a.Step][a.Number] {
		t.w.violate("I7", "%s was executed and never dispatched", a.MessageID())
		return
	}
	if x.gone {
		t.w.stats["effect after its run was purged"]++
	}
	if step.Key != a.Key() || step.Attempt != a.Number {
		t.w.violate("I7", "%s was executed under the key %s", a.MessageID(), step.Key)
	}
	if before := x.args[a.Step]; before != nil && !bytes.Equal(before, args) {
		t.w.violate("I6", "%s was called with %s, and before with %s", a.MessageID(), args, before)
	}
	x.args[a.Step] = args
	i, _ := x.stepOf(a)
	if x.effects[a.Step]++; x.effects[a.Step] > 1 && x.contract(i).AtMostOnce {
		t.w.violate("I7", "%s of an at_most_once tool was executed %d times", a.Key(), x.effects[a.Step])
	}
}

// checkDead: what used up its attempts has its dead letter before the run is over.
func (t *truths) checkDead(x *truth, doc *outcome.Run) {
	one := func(st *outcome.Step) {
		if st.Status != outcome.StepFailed || len(st.Items) > 0 {
			return
		}
		executed := st.Attempts > 0 || st.Error.Code == fault.Timeout || st.Error.Code == fault.WorkerLost || st.Error.Code == fault.OutcomeUnknown
		key := subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(x.id, x.gen, st.ID))
		if executed != t.dead[key] {
			t.w.violate("I9", "the run is over, and of the failed step %s (%d attempts, %v) there is a dead letter: %t", st.ID, st.Attempts, st.Error, t.dead[key])
		}
	}
	for i := range doc.Steps {
		if at, ok := x.plan.Index(doc.Steps[i].ID); ok && x.plan.Steps[at].ForEach == nil {
			one(&doc.Steps[i])
		}
		for n := range doc.Steps[i].Items {
			one(&doc.Steps[i].Items[n])
		}
	}
}

// restless is I9: once the faults are over everything comes to rest. It says what has not, "" for nothing.
func (w *world) restless() string {
	for _, x := range w.truths.order {
		switch {
		case w.truths.history[x.id] == nil:
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
		c := o.l.owned[x.id.Partition()]
		state := fmt.Sprintf("%s owns it: %t", o.name, c != nil)
		if c != nil {
			state += fmt.Sprintf(" (caught up %t, at %d)", c.caughtUp, c.last)
		}
		if r := o.l.runs[x.id]; r != nil {
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
	for id, r := range o.l.runs {
		return fmt.Sprintf("the run %s/%d is kept in phase %d", id.ID, r.generation, r.phase)
	}
	for name, w := range o.l.windows {
		if w.out != 0 || w.held != 0 {
			return fmt.Sprintf("%d calls of %s take room and %d are held back, of no run", w.out, name, w.held)
		}
	}
	switch {
	case len(o.l.timers.heap) > 0:
		return "a timer is set"
	case o.jobs.working > 0:
		return "a job goes on"
	}
	return ""
}

// checkI10: no secret outside of its scope.
func (t *truths) checkI10(where string, body []byte) {
	if strings.Contains(string(body), simSecret) {
		t.w.violate("I10", "a secret at %s: %s", where, body)
	}
}
