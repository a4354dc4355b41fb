package orchestrator

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
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
	prefix := strings.TrimSuffix(subjects.PartitionFilter(a.Partition(), len(t.w.shards)), ">")
	if at, listed := t.lists[by.name+prefix]; listed && (!ok || at < looked) { // a message may come long after that
		looked, ok = at, true
	}
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

// items reports whether an item of a for_each step that was sent is open, and whether one has failed for good and thereby
// its step. Then no item of it is tried again: those are open that have an attempt without a record.
func (x *truth) items(step int) (open, failed bool) {
	failFast := x.contract(step).ErrorPropagation == tool.FailFast
	for token := range x.final {
		failed = failed || failFast && x.itemOf(token, step) && !x.succeeded[token]
	}
	for token := range x.out {
		if x.itemOf(token, step) && !x.final[token] {
			open = open || !failed || x.undecided(token)
		}
	}
	return open, failed
}

func (x *truth) itemOf(token string, step int) bool {
	id, _, isItem := subjects.SplitItem(token)
	return isItem && id == x.plan.Steps[step].ID
}

// undecided reports whether an attempt is out that has no record.
func (x *truth) undecided(token string) bool {
	for number := range x.out[token] {
		if _, decided := x.records[token][number]; !decided {
			return true
		}
	}
	return false
}

// spoils reports whether a step is known not to have succeeded, so that its dependents are skipped.
func (x *truth) spoils(step int) bool {
	p := &x.plan.Steps[step]
	if p.Optional {
		return false
	}
	if p.ForEach != nil {
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

// checkI10: no secret outside of its scope.
func (t *truths) checkI10(where string, body []byte) {
	if strings.Contains(string(body), simSecret) {
		t.w.violate("I10", "a secret at %s: %s", where, body)
	}
}
