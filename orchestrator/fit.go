package orchestrator

import (
	"context"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// A run's document is one object of at most 64 MiB. It is kept within that here, so that no plan and no tool can make a run
// whose outcome can't be stored.
const (
	// maxInline bounds, in bytes, the results that a document holds, those of the outcome included; of the others each gets
	// a blob.
	maxInline = 48 << 20
	// maxErrors bounds the errors of the outcome, and again those of the steps; beyond it they lose their details and keep
	// the beginning of their message.
	maxErrors = 1 << 20
	// shortText is what such a message keeps.
	shortText = 128
)

// room is what is left for steps in a document.
type room struct{ results, errors int }

// fit puts a step's result into a blob where the document has no room for it. A run that goes on shows its size alone.
func (d *documents) fit(ctx context.Context, r *run, st *outcome.Step, room *room) {
	if len(st.Result) <= room.results {
		room.results -= len(st.Result)
		return
	}
	if r.machine.Finished() {
		name := func(unique string) string { return subjects.RunBlobName(r.id, r.generation, "result", unique) }
		if st.Blob, _ = d.values.put(ctx, r.bucket(), name, st.Result); st.Blob == nil {
			return // only when stopping: the next owner writes the document
		}
		st.Text = false
	}
	st.Result = nil
}

// fitErrors shortens the errors of a step and its items where the document has no room for them.
func (room *room) fitErrors(st *outcome.Step) {
	if e := st.Error; e != nil {
		if size := len(e.Message) + len(e.Hint) + len(e.Details); size <= room.errors {
			room.errors -= size
		} else {
			short := *e
			short.Message, short.Hint, short.Details = text.Clip(e.Message, shortText), text.Clip(e.Hint, shortText), nil
			st.Error = &short
		}
	}
	for i := range st.Items {
		room.fitErrors(&st.Items[i])
	}
}

// fitTexts shortens the messages of an outcome's errors where there is no room for them.
func fitTexts(errors []outcome.StepError) {
	left := maxErrors
	for i := range errors {
		e := &errors[i]
		if size := len(e.Message) + len(e.Hint); size <= left {
			left -= size
		} else {
			e.Message, e.Hint = text.Clip(e.Message, shortText), text.Clip(e.Hint, shortText)
		}
	}
}

// storeDocument writes the document, without what its items came to one by one where it is too large with that.
func (lc *lifecycle) storeDocument(ctx context.Context, id subjects.Run, bucket string, doc *outcome.Run) (created bool, err error) {
	created, err = lc.store.CreateHistory(ctx, id, bucket, doc)
	if fault.CodeOf(err) == fault.TooLarge {
		for i := range doc.Steps {
			doc.Steps[i].Items = nil
		}
		created, err = lc.store.CreateHistory(ctx, id, bucket, doc)
	}
	return created, err
}

// weight is about how much memory it takes to write a run's document: its outcome, put together, and the whole of it.
func (r *run) weight() int64 {
	if r.machine == nil {
		return 3 * int64(len(r.body))
	}
	total := int64(0)
	for _, i := range r.plan.Outputs {
		if res := r.machine.Result(machine.Call{Step: i}); res != nil {
			total += res.Size
		}
	}
	return 3 * (min(total, maxOutcome) + int64(len(r.body)) + 512*int64(len(r.plan.Steps)))
}
