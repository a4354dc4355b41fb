package orchestrator

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// evaluator evaluates what has to read blobs, or takes long, beside the loop, and records what it came to. The machine
// goes on with the record, whoever wrote it; until it is there the sweep asks for it again. Nothing else of the run
// waits.
type evaluator struct {
	*env
	values  *values
	memory  *memory
	agentry *agentry
	over    func(*run) // is told of a run that another owner has finished and purged
}

// condition evaluates the condition of a step whose dependencies are over.
func (ev *evaluator) condition(r *run, step int) {
	ev.beside(r, asked{step, machine.AskedCondition}, (*inputs).largest, func(x *evaluation) {
		holds, err := x.in.plan.Steps[x.in.step].If.HoldsFor(x.resolver(), nil, x.result)
		if x.err != nil {
			err = fault.New(fault.ConditionFailed, "%s", x.err.Message)
		}
		h, body := wire.Told{Holds: holds, Error: err}.Message()
		ev.tell(x, subjects.ToldIf, h, body)
	})
}

// value derives the value of a step whose dependencies are over.
func (ev *evaluator) value(r *run, d machine.Derive) {
	bucket := r.bucket()
	ev.beside(r, asked{d.Step, machine.AskedValue}, (*inputs).mostOfValue, func(x *evaluation) {
		effort := plan.FullEffort
		value, err := x.resolver().Derive(x.in.step, d.Room, &effort, x.result)
		if held := x.in.plan.Steps[x.in.step].Held; err == nil && x.err == nil && held != nil {
			err = held.Check(value, full())
		}
		told := wire.ToldValue{Value: value}
		if err != nil {
			told = wire.ToldValue{Error: err}
		}
		if x.err != nil {
			told = wire.ToldValue{Error: x.err}
		}
		if len(told.Value) > wire.InlineLimit {
			name := func(unique string) string {
				return subjects.RunBlobName(x.id, x.generation, subjects.ToldValue, unique)
			}
			h, err := ev.values.put(x.ctx, bucket, name, told.Value)
			if err != nil {
				return // only when stopping: the next owner derives it
			}
			h.Checked = true
			told = wire.ToldValue{Handle: h}
		}
		h, body := told.Message()
		ev.tell(x, subjects.ToldValue, h, body)
	})
}

// full is what a check beside the loop may take.
func full() *int {
	n := plan.FullCheck
	return &n
}

// fit holds what a call returned against the schema of the state.
func (ev *evaluator) fit(r *run, step int) {
	held := r.machine.PlanStep(step).Held
	ev.beside(r, asked{step, machine.AskedFit}, (*inputs).largest, func(x *evaluation) {
		value, _ := x.Last()
		told := wire.Told{Holds: true}
		if told.Error = x.err; told.Error != nil {
			told.Error = held.Unreadable(x.err.Message)
		} else {
			told.Error = held.Check(value, full())
		}
		told.Holds = told.Error == nil
		h, body := told.Message()
		ev.tell(x, subjects.ToldState, h, body)
	})
}

// until evaluates whether a loop is over with an iteration.
func (ev *evaluator) until(r *run, c machine.Call) {
	ev.beside(r, asked{c.Step, machine.AskedUntil}, (*inputs).largest, func(x *evaluation) {
		holds, err := x.in.plan.Steps[x.in.step].Repeat.Until.HoldsOf(x.resolver(), x.in.item, nil, x.result)
		if x.err != nil {
			err = fault.New(fault.ConditionFailed, "%s", x.err.Message)
		}
		h, body := wire.Told{Holds: holds, Error: err}.Message()
		ev.tell(x, subjects.ToldUntil, h, body)
	})
}

// evaluation is one of something of a step, beside the loop.
type evaluation struct {
	reader
	id         subjects.Run
	generation uint64
	token      string // of the step
}

// beside evaluates what a step waits for beside the loop, once at a time. most bounds the memory that it takes.
func (ev *evaluator) beside(r *run, of asked, most func(*inputs) int64, do func(x *evaluation)) {
	if r.evaluating[of] || r.machine.Asks(of.step) != of.what {
		return
	}
	if r.evaluating == nil {
		r.evaluating = map[asked]bool{}
	}
	r.evaluating[of] = true
	in := r.unread(machine.Call{Step: of.step})
	switch of.what {
	case machine.AskedUntil: // to which the iteration itself is the last
		in.last = sourceOf(r, r.machine.Result(in.call))
	case machine.AskedFit: // which is not over with its result yet
		in.last = sourceOf(r, r.machine.Decided(in.call))
	default: // the iteration before
	}
	in.gather(r)
	x := &evaluation{reader{values: ev.values, in: &in}, r.id, r.generation, r.token(in.call)}
	ev.memory.reserve(most(&in), func(ctx context.Context) {
		defer ev.post(func() { delete(r.evaluating, of) })
		x.ctx = ctx
		do(x)
	})
}

// approval finds out whether the contract of a call's tool, or a guard of its agent, asks for an approval, and records it
// whatever it came to: so the ledger says of each call of such a tool whether a person was to be asked, and of which guard,
// and all owners agree. What can't be told means yes.
func (ev *evaluator) approval(r *run, c machine.Call) {
	which := machine.Weighs(r.machine, c)
	key := weighedCall{c, which.Number}
	if r.weighing[key] || !r.machine.Weighing(c) {
		return
	}
	if r.weighing == nil {
		r.weighing = map[weighedCall]bool{}
	}
	r.weighing[key] = true
	in, rule := r.inputs(c), r.machine.Contract(c.Step)
	in.resolver = nil // that of the run is for one goroutine
	x := &evaluation{reader{values: ev.values, in: &in}, r.id, r.generation, r.token(c)}
	guards := ev.agentry.weighs(r, c)
	ev.memory.reserve(in.most(false)+guards.size(), func(ctx context.Context) {
		defer ev.post(func() { delete(r.weighing, key) })
		x.ctx = ctx
		args, err := ev.values.arguments(ctx, &in)
		told := wire.Told{Holds: true, Error: err}
		if err == nil {
			if told.Holds = which.Asks; !which.Asks && which.Number == 1 {
				told.Holds, told.Error = rule.WantsApproval(args)
			}
			_, no, failed := guards.found(ctx, ev.values, args)
			if no != nil {
				told.Holds, told.Guard = true, no.Guard+1
			}
			told.Error = cmp.Or(told.Error, failed)
		}
		if ctx.Err() != nil {
			return
		}
		h, body := told.Message()
		ev.record(x, subjects.ToldAgainRecord(x.id, x.generation, x.token, which.Number, ev.store.Shards()), subjects.ToldApproval, h, body)
	})
}

// output makes the output of a composite whose steps are over, or of the plan, and records what it came to.
func (ev *evaluator) output(r *run, of machine.Call) {
	if r.shaping[of] || !r.machine.Shaping(of) {
		return
	}
	if r.shaping == nil {
		r.shaping = map[machine.Call]bool{}
	}
	r.shaping[of] = true
	in, isLoop := r.unshaped(of)
	lenient, id, generation, bucket := r.machine.Lenient(of), r.id, r.generation, r.bucket()
	token := subjects.RootScope
	var template *plan.Template
	if of.Step != machine.ThePlan {
		token, template = machine.ShapingToken(r.machine, of), r.step(of.Step).Template
	}
	most := int64(maxOutcome)
	if !isLoop {
		most = min(most, in.plan.MostOutput(in.sizeOf))
	}
	ev.memory.reserve(most+in.largest(), func(ctx context.Context) {
		defer ev.post(func() { delete(r.shaping, of) })
		x := reader{values: ev.values, ctx: ctx, in: &in}
		told := wire.Result{Worker: ownerMark + ev.cfg.Name}
		if isLoop {
			told.Body, told.Error = x.list()
		} else {
			told.Body, told.Error = x.resolver().Limit(maxOutcome).Output(lenient, x.result)
		}
		if x.err != nil {
			told.Error = x.err
		}
		if told.Error == nil {
			told.Error = template.Returns(told.Body)
		}
		if told.Error == nil && len(told.Body) > wire.InlineLimit {
			name := func(unique string) string { return subjects.RunBlobName(id, generation, "output", unique) }
			if told.Handle, _ = ev.values.put(ctx, bucket, name, told.Body); told.Handle != nil {
				told.Handle.Checked = true
			}
		}
		if ctx.Err() == nil {
			h, body := told.Message()
			ev.tell(&evaluation{reader: x, id: id, generation: generation, token: token}, subjects.ToldOutput, h, body)
		}
	})
}

// tell creates the record of what something of a step came to. Whose record is first counts.
func (ev *evaluator) tell(x *evaluation, what string, h nats.Header, body []byte) {
	ev.record(x, subjects.ToldRecord(x.id, x.generation, x.token, what, ev.store.Shards()), what, h, body)
}

// record is tell under a subject of its own.
func (ev *evaluator) record(x *evaluation, subject, what string, h nats.Header, body []byte) {
	if x.ctx.Err() != nil {
		return
	}
	ev.store.CreateAsync(x.ctx, subject, h, body, nil, func(_ kv.Decision, _ uint64, err error) {
		if err != nil && x.ctx.Err() == nil {
			ev.log.Error("what was evaluated could not be recorded; the sweep tries again", "tenant", x.id.Tenant, "run", x.id.Plain(), "step", x.token, "what", what, "error", err)
		}
	})
}

// readAgain gives back to the machine of a run what it has let go of, beside the loop, and then goes on; until then the
// records of the run wait. Where a record is gone because another owner has finished the run, it is over.
func (ev *evaluator) readAgain(r *run, missing []*machine.Result, then func()) {
	sources, size := make([]source, len(missing)), int64(0)
	for i, res := range missing {
		sources[i] = sourceOf(r, res)
		size += res.Size
	}
	ev.memory.reserve(size, func(ctx context.Context) {
		all := make([][]byte, len(sources))
		var err *fault.Error
		for i := 0; i < len(sources) && err == nil; i++ {
			all[i], err = ev.values.read(ctx, &sources[i])
		}
		purged := err != nil && ev.purged(ctx, r.id, r.generation)
		ev.post(func() {
			switch {
			case r.phase != running || ctx.Err() != nil:
				return
			case purged:
				ev.over(r)
				return
			case err != nil:
				ev.log.Warn("what a run has returned can't be read again: trying again", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", err)
				ev.later(time.Second, func() {
					if r.phase == running {
						ev.readAgain(r, missing, then)
					}
				})
				return
			}
			for i, res := range missing {
				machine.GiveBack(r.machine, res, all[i])
			}
			then()
		})
	})
}

// purged reports whether a run's plan is not there any more.
func (ev *evaluator) purged(ctx context.Context, id subjects.Run, generation uint64) bool {
	e, err := ev.store.Read(ctx, subjects.PlanRecord(id, ev.store.Shards()))
	if err != nil {
		return fault.CodeOf(err) == fault.NotFound
	}
	return e.Seq != generation
}
