package orchestrator

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
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
	case x.outcome != nil && !bytes.Equal(x.outcome, doc.Outcome.JSON()):
		t.w.violate("I1", "%s/%d has two outcomes", x.id.ID, x.gen)
	case x.gone && x.outcome == nil:
		t.w.violate("I1", "%s/%d, which was over and purged, got an outcome", x.id.ID, x.gen)
	}
	if h := t.history[x.id]; h != nil && !h.expired && !h.removed {
		t.w.violate("I1", "%s has two outcomes", x.id.ID)
	}
}

// hasOutcome reports whether somebody who submitted a plan, and takes no earlier rejection for its outcome, finds one.
func (t *truths) hasOutcome(x *truth) bool {
	h := t.history[x.id]
	return h != nil && !h.removed && (h.gen >= x.gen || !h.rejected())
}

// checkKept: a plan is purged only once an outcome stands.
func (t *truths) checkKept(x *truth) {
	if !t.hasOutcome(x) {
		t.w.violate("I1", "the plan %s/%d was purged without an outcome", x.id.ID, x.gen)
	}
}

// historyPurged checks that nothing leaves the history but what expires, and a rejection that a later plan replaces.
func (t *truths) historyPurged(e *kv.Entry) {
	var doc outcome.Run
	_ = json.Unmarshal(e.Data, &doc)
	h := t.history[subjects.NewRun(doc.Tenant, doc.Run)]
	if h == nil || h.expired {
		return
	}
	later := slices.ContainsFunc(t.order, func(x *truth) bool { return x.id == subjects.NewRun(doc.Tenant, doc.Run) && x.gen > h.gen && !x.gone })
	if !h.rejected() || !later {
		t.w.violate("I1", "the outcome of %s/%d was removed from the history", doc.Run, doc.Generation)
	}
	h.removed = true
	t.w.stats["a rejection that gave way to a later outcome"]++
}

// checkFree: what is begun has an id that is free, and what was rejected a moment ago is rejected for the same reasons.
func (t *truths) checkFree(x *truth) {
	h := t.history[x.id]
	if h == nil || h.expired {
		return
	}
	_, dated := subjects.MadeAt(x.id.ID)
	young := h.doc.Digest == x.digest && x.submitted.Sub(h.doc.Finished).Abs() < 10*time.Second
	switch {
	case !h.rejected() || h.gen >= x.gen || h.removed:
		t.w.violate("I1", "%s/%d was started, though the history has the run", x.id.ID, x.gen)
	case dated: // perhaps not looked up
	case young && !reflect.DeepEqual(x.start.Problems, h.doc.Outcome.Problems):
		t.w.violate("I1", "%s/%d was judged anew %v after its rejection", x.id.ID, x.gen, x.submitted.Sub(h.doc.Finished))
	case young && !x.start.Since.Equal(h.doc.Finished), !young && !x.start.Since.IsZero():
		t.w.violate("I1", "%s/%d says that it was rejected at %v, and not at %v", x.id.ID, x.gen, x.start.Since, h.doc.Finished)
	case young:
		t.w.stats["a rejection given again"]++
	default:
		t.w.stats["judged again after its rejection"]++
	}
}

// checkI2: one immutable record for each attempt, one success for each step, and an attempt only after the one before
// it was decided a failure that may be tried again.
func (t *truths) checkI2(x *truth, a subjects.Attempt, err *fault.Error, step *plan.Step) {
	before := x.records[a.Step]
	if _, again := before[a.Number]; again {
		t.w.violate("I2", "a second record of %s", a.MessageID())
	}
	if err == nil && x.succeeded[a.Step] {
		t.w.violate("I2", "a second success of %s", a.Key())
	}
	t.checkAttempt("I2", x, a, step)
}

func (t *truths) checkAttempt(invariant string, x *truth, a subjects.Attempt, step *plan.Step) {
	if x.early {
		return
	}
	if most := x.most(a.Step, step); a.Number > most {
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

// dispatched checks I3 and I8: no dispatch before dependencies, none of what nobody submitted. What the sweep sends
// again was looked for first.
func (t *truths) dispatched(m *message, due time.Time, repair int, by *process) {
	a := m.attempt
	x := t.of(a.Run, a.Generation)
	if x == nil || x.plan == nil {
		t.w.violate("I8", "a dispatch of what nobody submitted: %s", a.MessageID())
		return
	}
	step, known := x.stepOf(a)
	if !known || x.start == nil || x.start.Rejected() {
		t.w.violate("I8", "a dispatch of a step that the plan doesn't have, or before it was started: %s", a.MessageID())
		return
	}
	t.w.stats["dispatch"]++
	t.checkAttempt("I3", x, a, step)
	t.checkReply(x, m)
	if x.agent {
		x.askedAbout(m)
		x.spent.begins(a, x.out[a.Step])
		t.partsSent(x, m)
		t.agentDispatched(x, a)
	} else {
		t.checkI3(x, a)
		t.checkI13(x, a, step)
		t.checkI14(x, a)
	}
	if x.out[a.Step] == nil {
		x.out[a.Step] = map[int]bool{}
	}
	x.out[a.Step][a.Number] = true
	t.mayBegin(x, m, due)
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
	at, listed := t.lists[by.name+prefix]
	if listed && (!ok || at < looked) { // a message may come long after that
		looked, ok = at, true
	}
	if e := t.w.streamOf(record).bySubj[record]; !ok || e != nil && e.Time.Sub(epoch) < looked {
		t.w.violate("I7", "the sweep sent %s again without looking for its record", a.MessageID())
	}
	if x.gone && x.planChecks[by.name] == 0 && !(listed && t.stands(x.id)) { // a list can't tell one plan from the next
		t.w.violate("I7", "the sweep sent %s again, though its run was over and purged", a.MessageID())
	}
}

// stands reports whether a plan of a run stands, whichever.
func (t *truths) stands(id subjects.Run) bool {
	return slices.ContainsFunc(t.order, func(x *truth) bool { return x.id == id && !x.gone })
}

// checkI3: all dependencies are over, and those that are not optional have succeeded. In language 2 what may begin is
// told by the records as the reference interpreter reads them.
func (t *truths) checkI3(x *truth, a subjects.Attempt) {
	if x.early {
		return
	}
	if x.plan.Language > 1 {
		t.checkTaken(x, a)
		return
	}
	id, _, _ := subjects.SplitItem(a.Step)
	step, _ := x.plan.Index(id)
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

// items reports whether an item of a for_each step that was sent is open, and whether one has failed for good and
// thereby its step. Then no item of it is tried again: those are open that have an attempt without a record.
func (x *truth) items(step int) (open, failed bool) {
	failFast := x.contract(&x.plan.Steps[step]).ErrorPropagation == tool.FailFast
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

// checkPatience sees that an owner takes the worker that claimed a step for lost only once nobody can be at it any
// more.
func (t *truths) checkPatience(x *truth, a subjects.Attempt, step *plan.Step, at time.Time) {
	t.w.stats["an attempt whose claim outlived its worker"]++
	claim := t.w.streamOf(subjects.ClaimRecord(a, len(t.w.shards))).bySubj[subjects.ClaimRecord(a, len(t.w.shards))]
	if x.early || claim == nil {
		return
	}
	lease := time.Duration(x.start.Tools[a.Tool].AckWait) * time.Millisecond
	if had := at.Sub(claim.Time); had <= x.contract(step).Timeout+lease {
		t.w.violate("I7", "%s was taken for lost %v after it was claimed", a.MessageID(), had)
	}
}

// withdrawn: a step is taken back only once it is decided; else nobody might decide it.
func (t *truths) withdrawn(a subjects.Attempt) {
	x := t.of(a.Run, a.Generation)
	if _, decided := x.records[a.Step][a.Number]; !decided && !x.gone && !x.early {
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
	of := a.Step
	if a.Tool == simWriter { // each attempt is told what has begun before it
		of = attemptKeyOf(a.Step, a.Number)
	}
	if before := x.args[of]; before != nil && !bytes.Equal(before, args) {
		t.w.violate("I6", "%s was called with %s, and before with %s", a.MessageID(), args, before)
	}
	x.args[of] = args
	planned, _ := x.stepOf(a)
	if x.effects[a.Step]++; x.effects[a.Step] > 1+x.inquiries.count[a.Step] && x.contract(planned).AtMostOnce {
		t.w.violate("I7", "%s of an at_most_once tool was executed %d times", a.Key(), x.effects[a.Step])
	}
}

// checkDead: what used up its attempts has its dead letter before the run is over.
func (t *truths) checkDead(x *truth, doc *outcome.Run) {
	eachStep(doc.Steps, func(st *outcome.Step) {
		planned, isItem, ok := x.plan.Find(st.ID)
		if !ok || st.Status != outcome.StepFailed || planned.Plan != nil || planned.ForEach != nil && !isItem {
			return
		}
		if st.Error == nil {
			t.w.violate("I9", "the step %s failed, and nothing says of what", st.ID)
			return
		}
		executed := st.Attempts > 0 || st.Error.Code == fault.Timeout || st.Error.Code == fault.WorkerLost || st.Error.Code == fault.OutcomeUnknown
		if st.Answer != nil && st.Ready.IsZero() { // a person decided it, or nobody did in time
			executed = false
		}
		if n := len(st.Answers); n > 0 && st.Answers[n-1].Decision != outcome.DecisionAnswered { // likewise, of what its tool asked
			executed = false
		}
		key := subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(x.id, x.gen, st.ID))
		if executed != t.dead[key] {
			t.w.violate("I9", "the run is over, and of the failed step %s (%d attempts, %v) there is a dead letter: %t", st.ID, st.Attempts, st.Error, t.dead[key])
		}
	})
}

// checkI10: no secret outside of its scope.
func (t *truths) checkI10(where string, body []byte) {
	if strings.Contains(string(body), simSecret) {
		t.w.violate("I10", "a secret at %s: %s", where, body)
	}
}

// checkExpired sees that nobody takes a run for expired before it is, whatever the clocks of orchestrators show.
func (t *truths) checkExpired(x *truth, s wire.Stop, at time.Time) {
	if s.Reason == outcome.Expired && x.plan != nil && at.Before(x.submitted.Add(x.plan.Timeout)) {
		t.w.violate("time", "%s expired after %v, though it had %v", x.id.ID, at.Sub(x.submitted), x.plan.Timeout)
	}
}
