package orchestrator

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// driver feeds the machines of runs with records, lists and deadlines, and carries out what they ask for.
type driver struct {
	*env
	times       *ledgerTime
	timers      *timers
	values      *values
	memory      *memory
	dispatcher  *dispatcher
	decider     *decider
	deadLetters *deadLetters
	announcer   *announcer
	suspects    *suspects
	finish      func(*run) // is told of a run whose last step is decided

	effects machine.Effects // scratch
}

// begin starts the machine of a run, with what was recorded of it so far.
func (dr *driver) begin(r *run, now time.Time) {
	dr.effects.Reset()
	r.machine.Begin(&dr.effects)
	dr.expand(r, now)
	if !r.recovered {
		dr.announcer.start(r)
	}
	dr.unpark(r, now)
	dr.perform(r, now)
}

// take takes a record of a run that goes on.
func (dr *driver) take(r *run, e entry) {
	if r.blind() {
		r.parked = append(r.parked, e)
		return
	}
	now := dr.times.of(r)
	dr.effects.Reset()
	if dr.apply(r, e, now) {
		dr.perform(r, now)
	}
}

// outstanding tells each of the attempts of a run that should be out. What is to be decided or stopped is so once more,
// which is harmless.
func (dr *driver) outstanding(r *run, each func(d machine.Dispatch, now time.Time)) {
	now := dr.times.of(r)
	dr.effects.Reset()
	r.machine.Outstanding(now, &dr.effects)
	dr.expand(r, now)
	for _, d := range dr.effects.Dispatch {
		each(d, now)
	}
	dr.effects.Dispatch = dr.effects.Dispatch[:0]
	dr.perform(r, now)
}

// tick wakes runs at their deadlines.
func (dr *driver) tick() {
	mono := dr.clock.Mono()
	for r := dr.timers.due(mono); r != nil; r = dr.timers.due(mono) {
		if r.phase != running {
			continue
		}
		now := r.time.At(mono)
		dr.effects.Reset()
		r.machine.Tick(now, &dr.effects)
		dr.perform(r, now)
	}
}

// perform carries out the effects gathered for a run.
func (dr *driver) perform(r *run, now time.Time) {
	eff := &dr.effects
	defer func() { // events come after what somebody waits for
		for _, c := range eff.Settled {
			dr.announcer.step(r, c)
		}
	}()
	if eff.Finished {
		r.phase = finishing
		dr.timers.set(r, time.Time{})
		dr.finish(r)
		return
	}
	for _, c := range eff.Settled {
		dr.deadLetters.write(r, c)
	}
	if r.recovered && len(eff.Dispatch) > 0 {
		// What an earlier owner may have sent is compared with what is out before anything is sent again; while a blob
		// is fetched, records that decide some of it are still to be read.
		r.recovered = r.blind()
		dr.suspects.add(r, longGone)
		dr.suspects.compareSoon()
	} else {
		for _, d := range eff.Dispatch {
			if !r.machine.Wanted(d.Call, d.Attempt) {
				continue // decided by a record that was read together with the one that asked for it
			}
			if d.Attempt > 1 {
				dr.announcer.retry(r, d)
			}
			dr.dispatcher.offer(r, d, 0)
		}
	}
	if len(eff.Decide) > 0 {
		dr.decider.decide(r, eff.Decide)
	}
	for _, d := range eff.Late {
		dr.decider.late(r, d)
	}
	if eff.Stop != nil {
		dr.decider.stop(r, eff.Stop, func(kv.Decision, error) {})
	}
	dr.timers.set(r, r.machine.NextDeadline())
}

func (r *run) attempt(c machine.Call, number int) subjects.Attempt {
	s := &r.plan.Steps[c.Step]
	a := subjects.Attempt{Run: r.id, Generation: r.generation, Tool: s.Tool, Step: s.ID, Number: number}
	if c.Item > 0 {
		a.Step = subjects.ItemToken(s.ID, c.Item-1)
	}
	return a
}

func (r *run) shard(step int) int { return r.start.Tools[r.plan.Steps[step].Tool].Shard }

func (r *run) ackWait(step int) time.Duration {
	return time.Duration(r.start.Tools[r.plan.Steps[step].Tool].AckWait) * time.Millisecond
}

// sending is one attempt on its way to a worker: everything that is needed beside the loop.
type sending struct {
	attempt  subjects.Attempt
	dispatch kv.Dispatch
	step     wire.Step
	inputs   inputs
	flight   *flight // nil for one that waits for its time
}

// dispatch resolves a call's arguments and sends the attempt to its tool. repair is 0 for the first time. f, where it is
// not nil, learns where the message lies.
func (di *dispatcher) dispatch(r *run, d machine.Dispatch, repair int, f *flight) {
	s := sending{attempt: r.attempt(d.Call, d.Attempt), inputs: r.inputs(d.Call), flight: f}
	s.dispatch = kv.Dispatch{Attempt: s.attempt, Shard: r.shard(d.Step), At: d.At, Repair: repair}
	if f != nil {
		s.dispatch.Seq = &f.seq
	}
	contract := r.machine.Contract(d.Step)
	s.step = wire.Step{
		Result: subjects.StepRecord(s.attempt, di.store.Shards()), Key: s.attempt.Key(), Attempt: d.Attempt, Timeout: contract.Timeout,
		Retried:    r.retriedKey(d.Call),
		Definition: r.start.Tools[s.attempt.Tool].Digest, StartBy: r.machine.StartBy(d.Call), Context: r.contextOf(d.Step).All,
		Trace:  r.trace.Of(s.attempt),
		Bucket: r.bucket(),
	}
	if contract.AtMostOnce {
		s.step.Claim = subjects.ClaimRecord(s.attempt, di.store.Shards())
	}
	if at, asked := r.machine.Deadline(d.Step); asked {
		s.step.Deadline = at
	}
	if s.inputs.inBlobs {
		di.weigh(f, di.sendBeside(s))
		return
	}
	di.weigh(f, di.send(di.ctx, s))
}

// sendBeside resolves and publishes beside the loop what lies in blobs, or has to go into one. It gives the bytes that this
// takes at most.
func (di *dispatcher) sendBeside(s sending) int64 {
	s.inputs.resolver = nil // that of a run is for one goroutine
	most := s.inputs.most(false)
	di.memory.reserve(most, func(ctx context.Context) {
		bytes := di.send(ctx, s)
		di.post(func() { di.weigh(s.flight, bytes) })
	})
	return most
}

// send resolves and publishes, and returns the bytes that are out for it. On the loop, where the inputs have a resolver, nothing
// large is built.
func (di *dispatcher) send(ctx context.Context, s sending) int64 {
	args, err := di.values.arguments(ctx, &s.inputs)
	if err != nil && err.Code == fault.TooLarge && s.inputs.resolver != nil {
		return di.sendBeside(s)
	}
	if err != nil {
		if ctx.Err() == nil {
			di.decider.fail(s.attempt, err, s.step.Trace)
		}
		return 0
	}
	if len(args) > wire.InlineLimit {
		di.sendLarge(ctx, s, args)
		return int64(len(args))
	}
	s.dispatch.Header, s.dispatch.Body = s.step.Header(), args
	di.store.DispatchAsync(di.ctx, s.dispatch, di.sent(&s))
	return int64(len(args))
}

func (di *dispatcher) sendLarge(ctx context.Context, s sending, args []byte) {
	handle, err := di.values.put(ctx, s.step.Bucket, s.attempt.BlobName, args)
	if err != nil {
		return // only when stopping: the next owner sends it
	}
	s.step.Handle = handle
	s.dispatch.Header = s.step.Header()
	di.store.DispatchAsync(ctx, s.dispatch, di.sent(&s))
}

func (di *dispatcher) sent(s *sending) func(error) {
	a, f := s.attempt, s.flight
	if s.dispatch.Repair > 0 {
		f = nil
	}
	return func(err error) {
		switch {
		case err != nil && di.ctx.Err() == nil:
			di.log.Error("a step could not be dispatched; the sweep tries again", "step", a.MessageID(), "tool", a.Tool, "error", err)
		case err == nil && f != nil && f.seq.Load() == 0:
			di.post(func() { di.sentBefore(f) })
		}
	}
}

// sentBefore compares the run of an attempt that its stream did not take, since it had one of it before: whether that is there still.
func (di *dispatcher) sentBefore(f *flight) {
	if r := f.line.run; !f.landed && r.phase == running && !r.blind() {
		di.suspects.add(r, longGone)
		di.suspects.compareSoon()
	}
}

func invalidArguments(name string, bad []tool.Violation) *fault.Error {
	const most = 5
	err := fault.New(fault.InvalidArguments, "the resolved arguments don't fit the input schema of %s:", name)
	for i, v := range bad {
		if i == most {
			err.Message += " …"
			break
		}
		err.Message += " " + placeOf(v) + ": " + v.Message + ";"
	}
	hint := "a referenced result has another form than the tool expects; refer to the field that fits, or convert it with a step between"
	if i := slices.IndexFunc(bad, func(v tool.Violation) bool { return v.Hint != "" }); i >= 0 {
		hint = "what would fit at " + placeOf(bad[i]) + ": " + bad[i].Hint + "; " + hint
	}
	return err.WithHint("%s", hint)
}

func placeOf(v tool.Violation) string {
	if v.Pointer == "" {
		return "the arguments"
	}
	return v.Pointer
}

// decider writes the records that no worker writes: of attempts that failed before any had them, that none may decide any
// more, and of runs that stop.
type decider struct {
	*env
	times *ledgerTime
}

// fail records that an attempt failed before any worker had it.
func (dc *decider) fail(a subjects.Attempt, err *fault.Error, trace wire.Trace) {
	h, body := ownRecord(dc.cfg.Name, err, trace.Of(a))
	dc.store.CreateAsync(dc.ctx, subjects.StepRecord(a, dc.store.Shards()), h, body, nil, dc.recorded(a))
}

func (dc *decider) recorded(a subjects.Attempt) func(kv.Decision, uint64, error) {
	return func(_ kv.Decision, _ uint64, err error) {
		if err != nil && dc.ctx.Err() == nil {
			dc.log.Error("a record could not be created; the sweep tries again", "step", a.MessageID(), "error", err)
		}
	}
}

// withdrawn is an attempt that was decided without its worker.
type withdrawn struct {
	attempt subjects.Attempt
	shard   int
	sent    bool // or held back by this owner, so that nothing of it is out
	err     *fault.Error
}

// decide creates records for attempts that no worker may decide any more, and only then takes back what is out of them:
// were the message gone first and this process with it, nobody would decide.
func (dc *decider) decide(r *run, all []machine.Decide) {
	list := make([]withdrawn, len(all))
	for i, d := range all {
		held := r.holds(machine.Dispatch{Call: d.Call, Attempt: d.Attempt})
		list[i] = withdrawn{r.attempt(d.Call, d.Attempt), r.shard(d.Step), !held, d.Error}
	}
	trace, wholeRun := r.trace, dc.isAll(r, all)
	dc.job(func(ctx context.Context) {
		if !dc.createAll(ctx, list, trace) {
			return
		}
		list = slices.DeleteFunc(list, func(x withdrawn) bool { return !x.sent })
		dc.withdraw(ctx, list, wholeRun) // before the cancels: a slot that they free must not go to one of these
		for _, x := range list {
			_ = dc.bus.Publish(subjects.Cancel(x.attempt), nil) // at most once: a worker that misses it wastes its time
		}
	})
}

// isAll reports whether a run stops and some attempts are all that it has out. Of others, what one of them asked for may not have
// been decided yet.
func (dc *decider) isAll(r *run, all []machine.Decide) bool {
	if len(all) == 1 || !r.machine.Stopping() {
		return false
	}
	var out machine.Effects
	r.machine.Outstanding(dc.times.of(r), &out)
	return len(out.Decide) == len(all)
}

// createAll creates the records side by side and waits for all; false if any could not be.
func (dc *decider) createAll(ctx context.Context, list []withdrawn, trace wire.Trace) bool {
	done, wait := dc.jobs.together(len(list))
	var failed atomic.Bool
	for _, x := range list {
		h, body := ownRecord(dc.cfg.Name, x.err, trace.Of(x.attempt))
		dc.store.CreateAsync(ctx, subjects.StepRecord(x.attempt, dc.store.Shards()), h, body, nil, func(d kv.Decision, seq uint64, err error) {
			if err != nil {
				failed.Store(true)
			}
			dc.recorded(x.attempt)(d, seq, err)
			done()
		})
	}
	wait()
	return !failed.Load()
}

// withdraw takes messages out of the step streams. A run that stops has nothing out that may stay, so its messages go
// tool by tool; never across tools, which would leave the slots of leased steps taken. The last comes first, so that a
// slot that one of them leaves doesn't go to the next.
func (dc *decider) withdraw(ctx context.Context, list []withdrawn, wholeRun bool) {
	done := map[string]bool{}
	for _, x := range slices.Backward(list) {
		var err error
		switch {
		case !wholeRun:
			err = dc.store.PurgeAttempt(ctx, x.attempt, x.shard)
		case !done[x.attempt.Tool]:
			done[x.attempt.Tool] = true
			err = dc.store.PurgeSteps(ctx, x.attempt.Run, x.attempt.Generation, x.attempt.Tool, x.shard)
		}
		if err != nil && ctx.Err() == nil {
			dc.log.Warn("a withdrawn step could not be removed; its worker's record will be refused", "step", x.attempt.MessageID(), "error", err)
		}
	}
}

// stop creates the one stop record of a run; the ledger's order decides who was first.
func (dc *decider) stop(r *run, s *machine.Stop, done func(kv.Decision, error)) {
	subject := subjects.StopRecord(r.id, r.generation, dc.store.Shards())
	fence := &kv.Fence{Subject: subjects.PlanRecord(r.id, dc.store.Shards()), Seq: r.generation}
	h, body := wire.Stop(*s).Message()
	dc.store.CreateAsync(dc.ctx, subject, h, body, fence, func(d kv.Decision, _ uint64, err error) {
		if err != nil && dc.ctx.Err() == nil {
			dc.log.Error("a run could not be stopped", "run", r.id.Plain(), "error", err)
		}
		done(d, err)
	})
}
