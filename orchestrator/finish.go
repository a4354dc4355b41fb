package orchestrator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// documentVersion is the version of the history document's form.
const documentVersion = 1

// view is the run as it is now, for a job: what the loop forgets or works out meanwhile, it doesn't share.
func (r *run) view() *run {
	v := *r
	v.entries = maps.Clone(r.entries)
	return &v
}

// finish writes the history document of a run whose last step is decided, then tells whoever waits. The machine isn't
// touched by the loop any more: it ignores what comes after the last deciding record.
func (lc *lifecycle) finish(r *run) {
	view := r.view()
	missing := lc.deadLetters.missing(r)
	lc.memory.reserve(view.weight(), func(ctx context.Context) {
		if err := lc.deadLetters.writeAll(ctx, missing); err != nil { // a dead letter stands before its run is over
			lc.post(func() { lc.finished(r, nil, err) })
			return
		}
		doc := lc.documents.of(ctx, view)
		if ctx.Err() != nil {
			return
		}
		stands, err := lc.stand(ctx, view.id, view.bucket(), doc)
		if err == nil && view.rejected {
			lc.dismiss(ctx, view.id, view.generation)
		}
		lc.post(func() { lc.finished(r, stands, err) })
	})
}

// finished takes up what a run came to: doc is the document that stands, nil where that is none of this run's any more.
func (lc *lifecycle) finished(r *run, doc *outcome.Run, err error) {
	if r.phase != finishing {
		if doc != nil && err == nil && r.rejected {
			lc.announcer.end(r.id, r.client, doc) // its id was so free that the next plan came before this
		}
		return
	}
	if err != nil {
		if lc.ctx.Err() == nil {
			lc.log.Error("an outcome can't be stored: trying again", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", err)
			lc.later(time.Second, func() {
				if r.phase == finishing {
					lc.finish(r)
				}
			})
		}
		return
	}
	if doc != nil {
		lc.announcer.end(r.id, r.client, doc)
	}
	if r.rejected { // it has left the ledger
		lc.forget(r)
		return
	}
	if doc == nil {
		lc.forget(r)
		lc.reaper.orphan(r.id, r.generation)
		return
	}
	r.phase, r.doneAt = finished, lc.clock.Now()
	lc.dispatcher.releaseAll(r)
	lc.announcer.forget(r)
	r.drop()
	lc.reaper.finished(r)
}

// answerAgain meets a plan whose run id has finished before: the same plan gets the same outcome, another a conflict.
// Either way the new plan record goes.
func (lc *lifecycle) answerAgain(r *run, before *outcome.Run) {
	switch {
	case before.Generation == r.generation && before.Status != outcome.Rejected:
		// Our own: finished, and this process had not read so far.
		r.phase, r.doneAt = finished, lc.clock.Now()
		r.drop()
		lc.announcer.end(r.id, r.client, before)
		lc.reaper.finished(r)
		return
	case before.Generation > r.generation: // this one was over before that could be submitted
	case before.Digest == r.digest:
		lc.announcer.end(r.id, r.client, before)
	default:
		lc.announcer.conflict(r.id, r.client, before.Digest, r.digest)
	}
	id, generation := r.id, r.generation
	lc.forget(r)
	lc.reaper.orphan(id, generation)
}

// documents builds those of runs, for their history and for who looks at one.
type documents struct {
	*env
	values *values
	times  *ledgerTime
}

// of builds the full document of a run, finished or not. Values that lie in blobs are read for the outcome only.
func (d *documents) of(ctx context.Context, r *run) *outcome.Run {
	doc := &outcome.Run{
		Version: documentVersion, Run: r.id.Plain(), Tenant: r.id.Tenant, Generation: r.generation, Digest: r.digest,
		Status: outcome.Running, Submitted: r.submitted, Plan: r.planJSON(), Context: r.context.Keys(),
	}
	if r.start != nil && r.start.Rejected() {
		doc.Status, doc.Finished = outcome.Rejected, r.judged
		doc.Outcome = &outcome.Outcome{
			Run: doc.Run, Status: outcome.Rejected, Generation: r.generation, Problems: r.start.Problems, Warnings: r.start.Warnings,
		}
		return doc
	}
	m := r.machine
	if m == nil {
		return doc
	}
	now := d.times.of(r)
	doc.Status, doc.Stats, doc.StoppedBy, doc.Started = m.Status(), m.Stats(), m.StoppedBy(), m.Started()
	if u := r.start.Reuse; u != nil {
		doc.RetryOf, doc.RetryFrom = u.Of, u.From
	}
	inOutcome := map[string]bool{}
	if m.Finished() {
		doc.Finished = m.LastTime()
		doc.Outcome = d.outcome(ctx, r)
		for _, res := range doc.Outcome.Results {
			inOutcome[res.Step] = true
		}
	}
	doc.Steps = make([]outcome.Step, len(r.plan.Steps))
	room := room{results: max(maxInline-int(doc.Stats.BytesReturned), 0), errors: maxErrors}
	for i := range doc.Steps {
		doc.Steps[i] = m.Step(machine.Call{Step: i}, now)
		d.items(r, i, &doc.Steps[i], now)
		if !inOutcome[doc.Steps[i].ID] {
			d.result(ctx, r, i, &doc.Steps[i])
			d.fit(ctx, r, &doc.Steps[i], &room)
		}
		if m.Finished() {
			d.calls(ctx, r, i, &doc.Steps[i], inOutcome[doc.Steps[i].ID], &room)
		}
		room.fitErrors(&doc.Steps[i])
	}
	return doc
}

// result adds the result of a successful step. That of a for_each step is what references to it see.
func (d *documents) result(ctx context.Context, r *run, i int, st *outcome.Step) {
	s := r.source(i)
	st.Result, st.Blob, st.Text = s.value, s.blob, s.text && s.blob != nil
	if s.list && r.machine.Finished() {
		st.Result, _ = d.values.read(ctx, &s) // too large to be put together: its items are there
	}
}

func (d *documents) items(r *run, i int, st *outcome.Step, now time.Time) {
	n, ok := r.machine.Items(i)
	if !ok {
		return
	}
	st.Items = make([]outcome.Step, n)
	for item := range st.Items {
		st.Items[item] = r.machine.Step(machine.Call{Step: i, Item: item + 1}, now)
	}
}

// maxOutcome bounds, in bytes, the results that one outcome may hold.
const maxOutcome = 56 << 20

func (d *documents) outcome(ctx context.Context, r *run) *outcome.Outcome {
	total := int64(0)
	var left []outcome.StepError
	o := r.machine.Outcome(r.id.Plain(), func(i int) []byte {
		res := r.machine.Result(machine.Call{Step: i})
		if total += res.Size; total > maxOutcome {
			left = append(left, outcome.StepError{Step: r.plan.Steps[i].ID, Code: fault.TooLarge,
				Message: "the step succeeded, but the outcome would be larger than 56 MiB with its result",
				Hint:    "name fewer steps in output_steps, or read the result from the run's document"})
			return nil
		}
		s := r.source(i)
		v, err := d.values.read(ctx, &s)
		if err != nil {
			left = append(left, outcome.StepError{Step: r.plan.Steps[i].ID, Code: err.Code, Message: err.Message, Hint: err.Hint})
			return nil
		}
		if r.plan.Steps[i].ForEach != nil {
			return envelope(v)
		}
		return v
	})
	o.Generation = r.generation
	o.Warnings = append(slices.Clip(r.start.Warnings), d.foundNothing(ctx, r)...)
	fitTexts(o.Errors)
	if len(left) > 0 {
		o.Errors = append(o.Errors, left...)
		kept := o.Results[:0]
		for _, res := range o.Results {
			if res.JSON != nil {
				kept = append(kept, res)
			}
		}
		o.Results = kept
	}
	return o
}

// envelope gives what the outcome shows of a for_each step: the entries, and how many of each kind there are.
func envelope(entries []byte) []byte {
	ok, failed := 0, 0
	gjson.ParseBytes(entries).ForEach(func(_, e gjson.Result) bool {
		if e.Get("status").Str == "ok" {
			ok++
		} else {
			failed++
		}
		return true
	})
	return plan.Envelope(entries, ok, failed)
}

// planJSON gives the plan as it can stand inside a JSON document; a plan that isn't JSON stands there as a string.
func (r *run) planJSON() json.RawMessage {
	if r.body == nil || r.plan != nil || json.Valid(r.body) { // a plan that could be parsed is
		return r.body
	}
	s, _ := json.Marshal(text.Clip(string(r.body), 64<<10)) // strings can't fail
	return s
}

func (a *announcer) end(id subjects.Run, client string, doc *outcome.Run) {
	var body []byte
	if doc.Outcome != nil && doc.Stats.BytesReturned <= wire.InlineLimit {
		body = doc.Outcome.JSON()
	}
	if body == nil || len(body) > wire.InlineLimit {
		body = doc.HeadWithOutcome()
	}
	a.publish(subjects.Event(id, subjects.EventEnd), body)
	if client != "" {
		a.publish(subjects.Notify(id, client), body)
	}
}
