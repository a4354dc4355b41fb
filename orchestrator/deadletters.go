package orchestrator

import (
	"context"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// deadLetter is a call that used up its attempts, and what its dead letter is made of.
type deadLetter struct {
	id     subjects.Run
	bucket string
	letter outcome.DeadLetter
	inputs inputs
	note   *doneBefore[machine.Call]
	call   machine.Call
}

// deadLetters writes those of calls that were executed and failed for good.
type deadLetters struct {
	*env
	values *values
}

// write keeps a dead letter of a call that was executed and failed for good. It is written at once, for who watches,
// and made sure of before the run is over.
func (d *deadLetters) write(r *run, c machine.Call) {
	if x := d.of(r, c); x != nil {
		d.job(func(ctx context.Context) { _ = d.writeAll(ctx, []*deadLetter{x}) }) // finish makes sure
	}
}

// missing returns those of a run that is over that are not known to be written yet.
func (d *deadLetters) missing(r *run) []*deadLetter {
	if r.machine == nil { // rejected
		return nil
	}
	var all []*deadLetter
	for c := range r.machine.All() {
		if x := d.of(r, c); x != nil {
			all = append(all, x)
		}
	}
	return all
}

// of returns what a call's dead letter is made of; nil where it needs none.
func (d *deadLetters) of(r *run, c machine.Call) *deadLetter {
	err, attempts := died(r, c)
	if err == nil || r.deadLetters.has(c) {
		return nil
	}
	if r.deadLetters == nil {
		r.deadLetters = &doneBefore[machine.Call]{}
	}
	res, a := r.machine.Decided(c), r.attempt(c, 1)
	var permissions []string
	if p := r.start.Permits; p != nil {
		permissions = p.Permissions
	}
	return &deadLetter{
		id: r.id, bucket: r.bucket(), call: c, inputs: r.inputs(c), note: r.deadLetters,
		letter: outcome.DeadLetter{
			Run: r.id.Plain(), Tenant: r.id.Tenant, Generation: r.generation, Step: a.Step, Tool: a.Tool, Attempts: attempts,
			Approval: machine.PlanAsks(r.machine, c), Permissions: permissions, Context: r.contextOf(c.Step).Keys(), Error: err, Worker: res.Worker, Failed: r.machine.Step(c, r.submitted).Decided, Key: a.Key(),
		},
	}
}

func (d *deadLetters) writeAll(ctx context.Context, list []*deadLetter) error {
	for _, x := range list {
		x.inputs.resolver = nil // that of the run is the loop's
		if args, err := d.values.arguments(ctx, &x.inputs); err == nil {
			x.letter.Arguments = args
		} else if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := d.store.CreateDead(ctx, x.id, x.bucket, &x.letter); err != nil {
			if ctx.Err() == nil {
				d.log.Warn("a dead letter could not be written; it is tried again when the run is over", "tenant", x.letter.Tenant, "run", x.letter.Run, "step", x.letter.Step, "error", err)
			}
			return err
		}
		x.note.add(x.call)
	}
	return nil
}
