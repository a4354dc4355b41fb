package orchestrator

import (
	"context"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
)

// expand reads the lists that the machine asks for and tells it how long they are. What lies in a blob is
// read beside the loop.
func (dr *driver) expand(r *run, now time.Time) {
	for len(dr.effects.Expand) > 0 {
		step := dr.effects.Expand[0]
		dr.effects.Expand = dr.effects.Expand[1:]
		if r.reading[step] || !r.machine.Expanding(step) {
			continue
		}
		in := inputs{plan: r.plan, resolver: r.resolver, call: machine.Call{Step: step}}
		in.gather(r)
		if in.inBlobs {
			dr.expandLater(r, in)
			continue
		}
		list, err := dr.values.list(dr.ctx, &in)
		if err != nil && err.Code == fault.TooLarge { // for here
			in.resolver = nil
			dr.expandLater(r, in)
			continue
		}
		dr.expanded(r, step, list, err, now)
	}
}

// expandLater reads a list that is large, or whose parts lie in blobs.
func (dr *driver) expandLater(r *run, in inputs) {
	step := in.call.Step
	if r.reading == nil {
		r.reading = map[int]bool{}
	}
	r.reading[step] = true
	dr.memory.reserve(in.most(true), func(ctx context.Context) {
		list, err := dr.values.list(ctx, &in)
		dr.post(func() {
			delete(r.reading, step)
			if r.phase != running || ctx.Err() != nil {
				return
			}
			now := dr.times.of(r)
			dr.effects.Reset()
			dr.expanded(r, step, list, err, now)
			dr.expand(r, now)
			dr.unpark(r, now)
			dr.perform(r, now)
		})
	})
}

func (v *values) list(ctx context.Context, in *inputs) ([][]byte, *fault.Error) {
	x := reader{values: v, ctx: ctx, in: in}
	if in.resolver != nil {
		return in.resolver.Items(in.call.Step, x.result)
	}
	list, err := in.plan.Items(in.call.Step, x.result)
	if x.err != nil {
		return nil, x.err
	}
	return list, err
}

// expanded tells the machine of a list, or records that there is none. The record is that of the step's own first
// attempt, which is never sent.
func (dr *driver) expanded(r *run, step int, list [][]byte, err *fault.Error, now time.Time) {
	if err != nil {
		dr.decider.fail(r.attempt(machine.Call{Step: step}, 1), err, r.trace)
		return
	}
	if r.lists == nil {
		r.lists = map[int][][]byte{}
	}
	r.lists[step] = list
	r.takeOver(step, list)
	r.machine.Expand(step, len(list), now, &dr.effects)
}
