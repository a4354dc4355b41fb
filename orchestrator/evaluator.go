package orchestrator

import (
	"context"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// evaluator evaluates what has to read blobs, beside the loop, and records what it came to. The machine goes on with
// the record, whoever wrote it; until it is there the sweep asks for it again. Nothing else of the run waits.
type evaluator struct {
	*env
	values *values
	memory *memory
}

// condition evaluates the condition of a step whose dependencies are over.
func (ev *evaluator) condition(r *run, step int) {
	if r.evaluating[step] || !r.machine.Judging(step) {
		return
	}
	if r.evaluating == nil {
		r.evaluating = map[int]bool{}
	}
	r.evaluating[step] = true
	in := r.unread(machine.Call{Step: step})
	in.gather(r)
	id, generation, token := r.id, r.generation, r.token(in.call)
	ev.memory.reserve(in.largest(), func(ctx context.Context) {
		defer ev.post(func() { delete(r.evaluating, step) })
		x := reader{values: ev.values, ctx: ctx, in: &in}
		holds, err := in.plan.Steps[in.step].If.Holds(in.plan, x.result, in.fate)
		if x.err != nil {
			err = fault.New(fault.ConditionFailed, "%s", x.err.Message)
		}
		if ctx.Err() == nil {
			ev.tell(ctx, id, generation, token, wire.Told{Holds: holds, Error: err})
		}
	})
}

// tell creates the record of what a condition came to. Whose record is first counts.
func (ev *evaluator) tell(ctx context.Context, id subjects.Run, generation uint64, step string, told wire.Told) {
	h, body := told.Message()
	subject := subjects.ToldRecord(id, generation, step, subjects.ToldIf, ev.store.Shards())
	ev.store.CreateAsync(ctx, subject, h, body, nil, func(_ kv.Decision, _ uint64, err error) {
		if err != nil && ctx.Err() == nil {
			ev.log.Error("what a condition came to could not be recorded; the sweep tries again", "run", id.Plain(), "step", step, "error", err)
		}
	})
}
