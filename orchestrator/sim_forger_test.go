package orchestrator

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// forgedHeader marks what the forger wrote, for the observer. Nobody else knows of it.
const forgedHeader = "Forged"

// forge lets somebody who hosts a tool write a record that no step was given to it for: whatever the permissions of a
// worker allow, which is everything that ends in "step.<tool>.…".
func (w *world) forge() bool {
	x := w.anyRun()
	if x == nil || w.healed {
		return false
	}
	g := pickOne(w, x.gen, x.gen, x.gen, x.gen-1, x.gen+1, x.gen+uint64(w.Intn(40)), 1<<40)
	a := subjects.Attempt{Run: x.id, Generation: g, Tool: pickOne(w, simTools...), Step: pickOne(w, "no-such-step", "no-such-step=0"), Number: 1 + w.Intn(3)}
	if x.start != nil && !x.start.Rejected() && w.chance(2) {
		s := x.plan.Steps[w.Intn(len(x.plan.Steps))]
		a.Step = s.ID
		if s.ForEach != nil {
			a.Step = subjects.ItemToken(s.ID, w.Intn(3))
		}
		if w.chance(2) {
			if a.Tool = s.Tool; s.Plan != nil || s.Value {
				a.Tool = subjects.CompositeTool
			}
		}
		if w.chance(3) {
			a.Generation = x.gen
		}
		if a.Generation == x.gen && a.Tool == s.Tool && a.Number > 1 && !x.out[a.Step][a.Number] {
			a.Number = 1 + 1000*w.Intn(2)
		}
	}
	subject := subjects.StepRecord(a, len(w.shards))
	stem := subjects.LedgerPrefix(subjects.LedgerShard(x.id.Partition(), len(w.shards))) + strconv.Itoa(x.id.Partition()) + "." + x.id.Tenant + "." + x.id.ID + "."
	switch w.Intn(6) {
	case 0:
		subject = stem + strconv.FormatUint(g, 10) + ".step." + pickOne(w, "x", "x.zz", "x.zz.0", "x.zz.abc", "x.zz.01", "x.zz.99999999999999999999", "x.zz.1.claim", "x.zz.1.other")
	case 1: // where no run has its records
		subject = stem + pickOne(w, "abc", "0", "00"+strconv.FormatUint(g, 10)) + ".step.x.zz.1"
	case 2:
		a.ID = "other" + strconv.Itoa(w.Intn(20)) // of another partition, most likely
		subject = stem[:len(stem)-len(x.id.ID)-1] + a.ID + "." + strconv.FormatUint(g, 10) + ".step.x.zz.1"
	}
	h := nats.Header{forgedHeader: {"yes"}}
	if v := pickOne(w, "", "1", "2", "9", "junk"); v != "" {
		h[subjects.HeaderVersion] = []string{v}
	}
	if w.streamOf(subject).bySubj[subject] != nil {
		return false
	}
	done, _ := w.streamOf(subject).create(subject, h, fmt.Appendf(nil, `{"forged":%d}`, w.number), nil)
	return done == stored
}

// forged takes note of what the forger wrote. What is of an attempt that the run has out, or will have, decides it:
// whoever hosts a tool is trusted with that. All else has to be without any effect.
func (t *truths) forged(rec subjects.Record, e *kv.Entry) {
	t.w.stats["a forged record"]++
	x := t.of(rec.Run, rec.Generation)
	if rec.Kind != subjects.StepKind || x == nil || x.gone || x.start == nil || x.start.Rejected() {
		return
	}
	a := rec.Attempt
	step, known := x.stepOf(a)
	if !known {
		return
	}
	if a.Number > x.most(a.Step, step) {
		return
	}
	err, why := wire.AboveRun(e.Header, 1), "a forged record of another version"
	if err == nil {
		err, why = x.misfits(a.Step, &wire.Result{Body: e.Data}), "a forged record that does not fit the state"
	}
	x.disturbed = true
	if !x.out[a.Step][a.Number] { // nobody can tell from outside when it counts
		x.early = true
		t.w.stats["a record forged before its attempt was dispatched"]++
		return
	}
	if x.records[a.Step] == nil {
		x.records[a.Step] = map[int]*fault.Error{}
	}
	x.records[a.Step][a.Number] = err
	x.final[a.Step], x.succeeded[a.Step] = true, err == nil
	d := reference.Decided{Step: a.Step, Reply: reference.Reply{Body: e.Data}}
	if err != nil {
		t.w.stats[why+" decided an attempt"]++
		_, _, isItem := subjects.SplitItem(a.Step)
		x.hinted = x.hinted || isItem
		d.Reply = reference.Reply{Err: &reference.Err{Code: string(err.Code), Message: err.Message}}
	}
	x.decided = append(x.decided, d)
}

// forgeries lets the forger be at work for as long as there are faults.
func (w *world) forgeries() {
	w.at(w.upTo(max(w.knobs.between, 50*time.Millisecond)), func() {
		if w.now > w.knobs.faults {
			return
		}
		w.forge()
		w.forgeries()
	})
}
